package onnx

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
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

func (d *decoder) charge(n int64) error {
	d.budget -= n
	if d.budget < 0 {
		return errBudget
	}
	return nil
}

func (d *decoder) left() int64 { return d.end - d.pos }

func (d *decoder) varint() (uint64, error) {
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
	return v, d.discard(n)
}

func (d *decoder) discard(n int) error {
	m, err := d.br.Discard(n)
	d.pos += int64(m)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// skip jumps over n bytes.
func (d *decoder) skip(n int64) error {
	if n > d.left() {
		return fmt.Errorf("%d bytes announced, %d left", n, d.left())
	}
	if buffered := int64(d.br.Buffered()); d.seeker != nil && n > buffered {
		if _, err := d.seeker.Seek(n-buffered, io.SeekCurrent); err != nil {
			return err
		}
		d.br.Reset(d.seeker)
		d.pos += n
		return nil
	}
	for n > 0 {
		step := min(n, 1<<30)
		if err := d.discard(int(step)); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// read fills b.
func (d *decoder) read(b []byte) error {
	if int64(len(b)) > d.left() {
		return fmt.Errorf("%d bytes announced, %d left", len(b), d.left())
	}
	n, err := io.ReadFull(d.br, b)
	d.pos += int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// length reads the length of a length-delimited field.
func (d *decoder) length() (int64, error) {
	n, err := d.varint()
	if err != nil {
		return 0, err
	}
	if n > uint64(d.left()) {
		return 0, fmt.Errorf("%d bytes announced, %d left", n, d.left())
	}
	return int64(n), nil
}

// lengthOf is length with the field in its error.
func (d *decoder) lengthOf(h field) (int64, error) {
	n, err := d.length()
	if err != nil {
		err = fmt.Errorf("field %d of %s: %w", h.num, h.what, err)
	}
	return n, err
}

// field is the header of a field; what is the message's name, for errors.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	what string
}

func (f field) want(t protowire.Type) error {
	if f.typ != t {
		return fmt.Errorf("field %d of %s has wire type %d, expected %d", f.num, f.what, f.typ, t)
	}
	return nil
}

// fields calls f for each field of a message that ends at d.end. Content of which f consumes nothing is skipped.
func (d *decoder) fields(what string, f func(field) error) error {
	for d.left() > 0 {
		tag, err := d.varint()
		if err != nil {
			// The end of a stream of unknown size is known only now.
			if d.end == math.MaxInt64 && errors.Is(err, io.ErrUnexpectedEOF) && d.br.Buffered() == 0 {
				return nil
			}
			return err
		}
		num, typ := protowire.DecodeTag(tag)
		if num < protowire.MinValidNumber {
			return fmt.Errorf("%s has a field with number %d", what, num)
		}
		h, from := field{num, typ, what}, d.pos
		if err = f(h); err == nil && d.pos == from {
			err = d.skipField(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// message decodes a field that is a message.
func (d *decoder) message(h field, what string, f func(field) error) error {
	if err := h.want(protowire.BytesType); err != nil {
		return err
	}
	n, err := d.length()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return d.inside(n, func() error { return d.fields(what, f) })
}

// inside lets f read the next n bytes and no more.
func (d *decoder) inside(n int64, f func() error) error {
	outer := d.end
	d.end = d.pos + n
	if err := f(); err != nil {
		return err
	}
	d.end = outer
	return nil
}

// skipField jumps over a field that is not needed.
func (d *decoder) skipField(h field) error {
	switch h.typ {
	case protowire.VarintType:
		_, err := d.varint()
		return err
	case protowire.Fixed32Type:
		return d.skip(4)
	case protowire.Fixed64Type:
		return d.skip(8)
	case protowire.BytesType:
		n, err := d.lengthOf(h)
		if err != nil {
			return err
		}
		return d.skip(n)
	default:
		return fmt.Errorf("field %d of %s has wire type %d, which ONNX does not use", h.num, h.what, h.typ)
	}
}

// name reads a string that names something.
func (d *decoder) name(h field) (string, error) {
	if err := h.want(protowire.BytesType); err != nil {
		return "", err
	}
	n, err := d.lengthOf(h)
	if err != nil {
		return "", err
	}
	if n > maxName {
		return "", fmt.Errorf("field %d of %s is a name of %d bytes, more than %d", h.num, h.what, n, maxName)
	}
	if int64(len(d.scratch)) < n {
		d.scratch = make([]byte, n)
	}
	b := d.scratch[:n]
	if err := d.read(b); err != nil {
		return "", err
	}
	if s, ok := d.names[string(b)]; ok {
		return s, nil
	}
	if err := d.charge(n + 64); err != nil {
		return "", err
	}
	s := string(b)
	d.names[s] = s
	return s, nil
}

func (d *decoder) int(h field) (int64, error) {
	if err := h.want(protowire.VarintType); err != nil {
		return 0, err
	}
	v, err := d.varint()
	return int64(v), err
}

func (d *decoder) fixed32(h field) (uint32, error) {
	if err := h.want(protowire.Fixed32Type); err != nil {
		return 0, err
	}
	v, err := d.fixed(4)
	return uint32(v), err
}

// fixed reads a number of so many bytes.
func (d *decoder) fixed(size int) (uint64, error) {
	var b [8]byte
	err := d.read(b[:size])
	return binary.LittleEndian.Uint64(b[:]), err
}

// scalars calls f for each element of a repeated number, packed or not.
func (d *decoder) scalars(h field, elem protowire.Type, f func(uint64) error) error {
	one := func() error {
		var v uint64
		var err error
		switch elem {
		case protowire.VarintType:
			v, err = d.varint()
		case protowire.Fixed32Type:
			v, err = d.fixed(4)
		default:
			v, err = d.fixed(8)
		}
		if err != nil {
			return err
		}
		return f(v)
	}
	if h.typ == elem {
		return one()
	}
	if err := h.want(protowire.BytesType); err != nil {
		return err
	}
	n, err := d.lengthOf(h)
	if err != nil {
		return err
	}
	return d.inside(n, func() (err error) {
		for err == nil && d.left() > 0 {
			err = one()
		}
		return err
	})
}
