package onnx

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/internal/bail"
)

// decoder reads the protobuf wire format from a stream, message within message, and skips what is not asked for.
// Nothing is read ahead beyond a fixed buffer, and every length is checked against the message around it before any
// memory is reserved.
type decoder struct {
	br     *bufio.Reader
	seeker io.ReadSeeker // nil if the source can't seek
	pos    int64
	end    int64 // of the innermost message
	// budget is the memory, in rough bytes, that decoded structure may still take;
	// a file made of millions of empty nodes would otherwise swell a hundredfold.
	budget int64
	depth  int               // of graphs within attributes
	names  map[string]string // one copy of each name
	// scratch holds a name until it is known whether it is a new one.
	scratch []byte
}

const (
	bufferBytes = 64 << 10
	maxName     = 16 << 10
	maxBudget   = 192 << 20
)

var errBudget = fmt.Errorf("the graph without its weights needs more than %d MiB of memory", maxBudget>>20)

// newDecoder starts at the current position of r. If r is a file or otherwise
// can seek, its size bounds all lengths and payloads are jumped over.
func newDecoder(r io.Reader) (*decoder, error) {
	d := &decoder{end: math.MaxInt64, budget: maxBudget, names: map[string]string{}}
	if s, ok := r.(io.ReadSeeker); ok {
		here, err := s.Seek(0, io.SeekCurrent)
		if err == nil {
			size, err := s.Seek(0, io.SeekEnd)
			if err != nil {
				return nil, err
			}
			if _, err := s.Seek(here, io.SeekStart); err != nil {
				return nil, err
			}
			d.seeker, d.end = s, size-here
		}
	}
	d.br = bufio.NewReaderSize(r, bufferBytes)
	return d, nil
}

// fail ends the decoding.
func (d *decoder) fail(format string, args ...any) { bail.Check(fmt.Errorf(format, args...)) }

func (d *decoder) charge(n int64) {
	if d.budget -= n; d.budget < 0 {
		bail.Check(errBudget)
	}
}

func (d *decoder) left() int64 { return d.end - d.pos }

func (d *decoder) varint() uint64 { return bail.Of(d.tryVarint()) }

func (d *decoder) tryVarint() (uint64, error) {
	b, err := d.br.Peek(10)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if int64(len(b)) > d.left() {
		b = b[:d.left()]
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, protowire.ParseError(n)
	}
	d.discard(n)
	return v, nil
}

func (d *decoder) discard(n int) {
	m, err := d.br.Discard(n)
	d.moved(m, err)
}

// moved notes that the stream has gone on by so many bytes, or broke off.
func (d *decoder) moved(n int, err error) {
	d.pos += int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	bail.Check(err)
}

// announced checks that n bytes are there.
func (d *decoder) announced(n int64) {
	if n > d.left() {
		d.fail("%d bytes announced, %d left", n, d.left())
	}
}

// skip jumps over n bytes.
func (d *decoder) skip(n int64) {
	d.announced(n)
	if buffered := int64(d.br.Buffered()); d.seeker != nil && n > buffered {
		_, err := d.seeker.Seek(n-buffered, io.SeekCurrent)
		bail.Check(err)
		d.br.Reset(d.seeker)
		d.pos += n
		return
	}
	for n > 0 {
		step := min(n, 1<<30)
		d.discard(int(step))
		n -= step
	}
}

// read fills b.
func (d *decoder) read(b []byte) {
	d.announced(int64(len(b)))
	n, err := io.ReadFull(d.br, b)
	d.moved(n, err)
}

// length reads the length of a field, which errors call what; "": by its number.
func (d *decoder) length(h field, what string) int64 {
	n, err := d.tryVarint()
	if err == nil && n > uint64(d.left()) {
		err = fmt.Errorf("%d bytes announced, %d left", n, d.left())
	}
	if err != nil {
		d.fail("%s: %w", cmp.Or(what, fmt.Sprintf("field %d of %s", h.num, h.what)), err)
	}
	return int64(n)
}

// field is the header of a field; what is the message's name, for errors.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	what string
}

func (d *decoder) want(h field, t protowire.Type) {
	if h.typ != t {
		d.fail("field %d of %s has wire type %d, expected %d", h.num, h.what, h.typ, t)
	}
}

// fields calls f for each field of a message that ends at d.end. Content of which f consumes nothing is skipped.
func (d *decoder) fields(what string, f func(field)) {
	for d.left() > 0 {
		tag, err := d.tryVarint()
		// The end of a stream of unknown size is known only now.
		if d.end == math.MaxInt64 && errors.Is(err, io.ErrUnexpectedEOF) && d.br.Buffered() == 0 {
			return
		}
		bail.Check(err)
		num, typ := protowire.DecodeTag(tag)
		if num < protowire.MinValidNumber {
			d.fail("%s has a field with number %d", what, num)
		}
		h, from := field{num, typ, what}, d.pos
		if f(h); d.pos == from {
			d.skipField(h)
		}
	}
}

// message decodes a field that is a message.
func (d *decoder) message(h field, what string, f func(field)) {
	d.want(h, protowire.BytesType)
	d.inside(d.length(h, what), func() { d.fields(what, f) })
}

// inside lets f read the next n bytes and no more.
func (d *decoder) inside(n int64, f func()) {
	outer := d.end
	d.end = d.pos + n
	f()
	d.end = outer
}

// skipField jumps over a field that is not needed.
func (d *decoder) skipField(h field) {
	switch h.typ {
	case protowire.VarintType:
		d.varint()
	case protowire.Fixed32Type:
		d.skip(4)
	case protowire.Fixed64Type:
		d.skip(8)
	case protowire.BytesType:
		d.skip(d.length(h, ""))
	default:
		d.fail("field %d of %s has wire type %d, which ONNX does not use", h.num, h.what, h.typ)
	}
}

// name reads a string that names something.
func (d *decoder) name(h field) string {
	d.want(h, protowire.BytesType)
	n := d.length(h, "")
	if n > maxName {
		d.fail("field %d of %s is a name of %d bytes, more than %d", h.num, h.what, n, maxName)
	}
	if int64(len(d.scratch)) < n {
		d.scratch = make([]byte, n)
	}
	b := d.scratch[:n]
	d.read(b)
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	d.charge(n + 64)
	s := string(b)
	d.names[s] = s
	return s
}

func (d *decoder) int(h field) int64 {
	d.want(h, protowire.VarintType)
	return int64(d.varint())
}

func (d *decoder) fixed32(h field) uint32 {
	d.want(h, protowire.Fixed32Type)
	return uint32(d.fixed(4))
}

// fixed reads a number of so many bytes.
func (d *decoder) fixed(size int) uint64 {
	var b [8]byte
	d.read(b[:size])
	return binary.LittleEndian.Uint64(b[:])
}

// scalars calls f for each element of a repeated number, packed or not.
func (d *decoder) scalars(h field, elem protowire.Type, f func(uint64)) {
	one := func() {
		switch elem {
		case protowire.VarintType:
			f(d.varint())
		case protowire.Fixed32Type:
			f(d.fixed(4))
		default:
			f(d.fixed(8))
		}
	}
	if h.typ == elem {
		one()
		return
	}
	d.want(h, protowire.BytesType)
	d.inside(d.length(h, ""), func() {
		for d.left() > 0 {
			one()
		}
	})
}
