package isa

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text form has one item per line, in any order but with the items of each
// kind numbered from 0. A line is a word, what is told by position, and fields
// of the form key=value in any order; a field that is zero may be left out. Names
// are quoted as in Go. From # to the end of a line is a comment.
//
//	isa 1
//	program "two tiles"
//	clusters 1
//	capacity LB=65536 GB=1048576
//	peak macs/s=1.28e+14 vectorops/s=4e+12
//	label 0 "conv"
//	resource 0 "ddr" bytes/s=108000000000
//	queue 0 "dma" cluster=0
//	queue 1 "mme" cluster=0
//	command 0 ddr.load queue=0 label=0 cores=8 ps=300000 uses=0:4096 bytes=4096  # dma: conv
//	command 1 matrix queue=1 label=0 cores=8 ps=1000000 deps=0 macs=1000 write=LB  # mme: conv
//	buffer 0 LB label=0 cluster=0 address=0 bytes=4096 first=0 lasts=1  # conv

const textVersion = "1"

// TextError tells where a text is not a program.
type TextError struct {
	Name string // of the text
	Line int    // from 1; 0 for the text as a whole
	Err  error
}

func (e *TextError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err)
}

func (e *TextError) Unwrap() error { return e.Err }

// levelName is Level.String for any value.
func levelName(l Level) string {
	if l >= NumLevels {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return l.String()
}

// textLine builds a line.
type textLine []byte

func (l *textLine) word(s string) { *l = append(append(*l, s...), ' ') }

func (l *textLine) quote(s string) { *l = append(strconv.AppendQuote(*l, s), ' ') }

func (l *textLine) number(n int) { *l = append(strconv.AppendInt(*l, int64(n), 10), ' ') }

func (l *textLine) key(key string) { *l = append(append(*l, key...), '=') }

// must writes a field, may only if it is not zero.
func (l *textLine) must(key string, n int64) {
	l.key(key)
	*l = append(strconv.AppendInt(*l, n, 10), ' ')
}

func (l *textLine) may(key string, n int64) {
	if n != 0 {
		l.must(key, n)
	}
}

func (l *textLine) float(key string, x float64) {
	l.key(key)
	*l = append(strconv.AppendFloat(*l, x, 'g', -1, 64), ' ')
}

func (l *textLine) list(key string, ns []int32) {
	if len(ns) == 0 {
		return
	}
	l.key(key)
	for i, n := range ns {
		if i > 0 {
			*l = append(*l, ',')
		}
		*l = strconv.AppendInt(*l, int64(n), 10)
	}
	*l = append(*l, ' ')
}

// comment writes a name that the reader of a line of numbers will want to know.
func (l *textLine) comment(names ...string) {
	*l = append(*l, " # "...)
	for i, s := range names {
		if i > 0 {
			*l = append(*l, ": "...)
		}
		if strconv.CanBackquote(s) { // so no line break
			*l = append(*l, s...)
		} else {
			*l = strconv.AppendQuote(*l, s)
		}
	}
}

func (l *textLine) writeTo(w *bufio.Writer) {
	b := *l
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	w.Write(b)
	w.WriteByte('\n') // an error stays until Flush
	*l = (*l)[:0]
}

// WriteText writes the program as text, for eyes, tools and ParseText. The
// program need not pass its Check; ParseText reads back only one that does, and
// then gives the same program (but for empty slices, which come back as nil).
func (p *Program) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	var l textLine
	name := func(index int32, names int, of func(int32) string) string {
		if index < 0 || int(index) >= names {
			return "?"
		}
		return of(index)
	}
	labelName := func(i int32) string {
		return name(i, len(p.Labels), func(i int32) string { return p.Labels[i] })
	}
	queueName := func(i int32) string {
		return name(i, len(p.Queues), func(i int32) string { return p.Queues[i].Name })
	}

	l.word("isa " + textVersion)
	l.writeTo(out)
	l.word("program")
	l.quote(p.Name)
	l.writeTo(out)
	l.word("clusters")
	l.number(p.Clusters)
	l.writeTo(out)
	if p.Capacity != [NumLevels]int64{} {
		l.word("capacity")
		for level, bytes := range p.Capacity {
			l.may(Level(level).String(), bytes)
		}
		l.writeTo(out)
	}
	l.word("peak")
	l.float("macs/s", p.PeakMACsPerSecond)
	l.float("vectorops/s", p.PeakVectorOpsPerSecond)
	l.writeTo(out)
	for i, label := range p.Labels {
		l.word("label")
		l.number(i)
		l.quote(label)
		l.writeTo(out)
	}
	for i, r := range p.Resources {
		l.word("resource")
		l.number(i)
		l.quote(r.Name)
		l.must("bytes/s", r.BytesPerSecond)
		l.writeTo(out)
	}
	for i, q := range p.Queues {
		l.word("queue")
		l.number(i)
		l.quote(q.Name)
		l.must("cluster", int64(q.Cluster))
		l.writeTo(out)
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		l.word("command")
		l.number(i)
		l.word(c.Kind.String())
		l.must("queue", int64(c.Queue))
		l.must("label", int64(c.Label))
		l.may("iteration", int64(c.Iteration))
		l.may("cores", int64(c.Cores))
		l.may("ps", c.DurationPs)
		l.list("deps", c.Deps)
		if len(c.Uses) > 0 {
			l.key("uses")
			for j, u := range c.Uses {
				if j > 0 {
					l = append(l, ',')
				}
				l = strconv.AppendInt(l, int64(u.Resource), 10)
				l = append(l, ':')
				l = strconv.AppendInt(l, u.Bytes, 10)
			}
			l = append(l, ' ')
		}
		l.may("bytes", c.Bytes)
		l.may("macs", c.MACs)
		l.may("vectorops", c.VectorOps)
		if c.WriteLevel != NoLevel {
			l.key("write")
			l.word(levelName(c.WriteLevel))
		}
		l.comment(queueName(c.Queue), labelName(c.Label))
		l.writeTo(out)
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		l.word("buffer")
		l.number(i)
		l.word(levelName(b.Level))
		l.must("label", int64(b.Label))
		l.must("cluster", int64(b.Cluster))
		l.must("address", b.Address)
		l.must("bytes", b.Bytes)
		l.must("first", int64(b.First))
		l.list("lasts", b.Lasts)
		l.comment(labelName(b.Label))
		l.writeTo(out)
	}
	return out.Flush()
}

// ParseText reads what WriteText writes and checks the program. Errors are
// *TextError with the name and the line; where a rule of Check is broken, it
// wraps a *ProblemError. Errors of r itself are wrapped too.
func ParseText(name string, r io.Reader) (*Program, error) {
	t := &textParser{p: &Program{}}
	fail := func(line int, err error) (*Program, error) { return nil, &TextError{name, line, err} }
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return fail(n, err)
		}
		if e := t.line(line, n); e != nil {
			return fail(n, e)
		}
		if err == io.EOF {
			break
		}
	}
	for _, item := range [...]string{"isa", "program", "clusters"} {
		if t.seen[item] == nil {
			return fail(0, fmt.Errorf("there is no line %q", item))
		}
	}
	if err := t.p.Check(); err != nil {
		problem := err.(*ProblemError)
		item, index := "command", problem.Index
		if index < 0 {
			// What is wrong with another item begins with its kind and number.
			fmt.Sscanf(problem.What, "%s %d", &item, &index)
		}
		line := 0
		if lines := t.seen[item]; index >= 0 && index < len(lines) {
			line = lines[index]
		}
		return fail(line, err)
	}
	return t.p, nil
}

// textParser reads a program line by line.
type textParser struct {
	p    *Program
	seen textLines
	rest string // of the present line
}

// textLines holds the lines of the items of each kind.
type textLines map[string][]int

func (t *textParser) line(s string, n int) error {
	t.rest = s
	item := t.next()
	if item == "" {
		return nil
	}
	if t.seen == nil {
		if item != "isa" {
			return fmt.Errorf("expected %q as the first line, got %q", "isa "+textVersion, item)
		}
		t.seen = textLines{}
	}
	lines := t.seen[item]
	t.seen[item] = append(lines, n)
	var err error
	switch item {
	case "isa", "program", "clusters", "capacity", "peak":
		if len(lines) > 0 {
			return fmt.Errorf("a second line %q; the first is line %d", item, lines[0])
		}
	case "label", "resource", "queue", "command", "buffer":
		var index int64
		if index, err = parseInteger(t.next(), 64); err != nil {
			return fmt.Errorf("number of %s: %w", item, err)
		}
		if index != int64(len(lines)) {
			return fmt.Errorf("%s %d, expected %d", item, index, len(lines))
		}
	default:
		return fmt.Errorf("unknown item %q", item)
	}
	p := t.p
	switch item {
	case "isa":
		if v := t.next(); v != textVersion {
			return fmt.Errorf("version %q of the text form, expected %q", v, textVersion)
		}
	case "program":
		p.Name, err = t.quoted()
	case "clusters":
		var clusters int64
		clusters, err = parseInteger(t.next(), strconv.IntSize)
		p.Clusters = int(clusters)
	case "capacity":
		return t.fields(func(key, value string) error {
			for level := range NumLevels {
				if key == level.String() {
					return set64(&p.Capacity[level], value)
				}
			}
			return errUnknownField
		})
	case "peak":
		return t.fields(func(key, value string) error {
			switch key {
			case "macs/s":
				return setFloat(&p.PeakMACsPerSecond, value)
			case "vectorops/s":
				return setFloat(&p.PeakVectorOpsPerSecond, value)
			}
			return errUnknownField
		})
	case "label":
		var s string
		s, err = t.quoted()
		p.Labels = append(p.Labels, s)
	case "resource":
		var r Resource
		if r.Name, err = t.quoted(); err != nil {
			return err
		}
		err = t.fields(func(key, value string) error {
			if key == "bytes/s" {
				return set64(&r.BytesPerSecond, value)
			}
			return errUnknownField
		})
		p.Resources = append(p.Resources, r)
		return err
	case "queue":
		var q Queue
		if q.Name, err = t.quoted(); err != nil {
			return err
		}
		err = t.fields(func(key, value string) error {
			if key == "cluster" {
				return set32(&q.Cluster, value)
			}
			return errUnknownField
		})
		p.Queues = append(p.Queues, q)
		return err
	case "command":
		return t.command()
	case "buffer":
		return t.buffer()
	}
	if err != nil {
		return err
	}
	if more := t.next(); more != "" {
		return fmt.Errorf("unexpected %q", more)
	}
	return nil
}

func (t *textParser) command() error {
	var c Command
	kind := t.next()
	for c.Kind < NumKinds && c.Kind.String() != kind {
		c.Kind++
	}
	if c.Kind == NumKinds {
		return fmt.Errorf("unknown kind of command %q", kind)
	}
	err := t.fields(func(key, value string) error {
		switch key {
		case "queue":
			return set32(&c.Queue, value)
		case "label":
			return set32(&c.Label, value)
		case "iteration":
			return set32(&c.Iteration, value)
		case "cores":
			return set32(&c.Cores, value)
		case "ps":
			return set64(&c.DurationPs, value)
		case "deps":
			return setList(&c.Deps, value)
		case "uses":
			c.Uses = make([]Use, 0, strings.Count(value, ",")+1)
			for s := range strings.SplitSeq(value, ",") {
				resource, bytes, ok := strings.Cut(s, ":")
				if !ok {
					return fmt.Errorf("%q is not of the form resource:bytes", s)
				}
				var u Use
				if err := set32(&u.Resource, resource); err != nil {
					return err
				}
				if err := set64(&u.Bytes, bytes); err != nil {
					return err
				}
				c.Uses = append(c.Uses, u)
			}
			return nil
		case "bytes":
			return set64(&c.Bytes, value)
		case "macs":
			return set64(&c.MACs, value)
		case "vectorops":
			return set64(&c.VectorOps, value)
		case "write":
			return setLevel(&c.WriteLevel, value)
		}
		return errUnknownField
	})
	t.p.Commands = append(t.p.Commands, c)
	return err
}

func (t *textParser) buffer() error {
	var b Buffer
	if err := setLevel(&b.Level, t.next()); err != nil {
		return err
	}
	err := t.fields(func(key, value string) error {
		switch key {
		case "label":
			return set32(&b.Label, value)
		case "cluster":
			return set32(&b.Cluster, value)
		case "address":
			return set64(&b.Address, value)
		case "bytes":
			return set64(&b.Bytes, value)
		case "first":
			return set32(&b.First, value)
		case "lasts":
			return setList(&b.Lasts, value)
		}
		return errUnknownField
	})
	t.p.Buffers = append(t.p.Buffers, b)
	return err
}

const textSpace = " \t\r\n"

// next returns the next word of the line, or "" at its end or a comment.
func (t *textParser) next() string {
	t.rest = strings.TrimLeft(t.rest, textSpace)
	end := strings.IndexAny(t.rest, textSpace+"#")
	if end < 0 {
		end = len(t.rest)
	}
	word := t.rest[:end]
	t.rest = t.rest[end:]
	return word
}

// quoted returns the next word, which is a Go string and may hold anything.
func (t *textParser) quoted() (string, error) {
	t.rest = strings.TrimLeft(t.rest, textSpace)
	q, err := strconv.QuotedPrefix(t.rest)
	if err != nil || q[0] != '"' {
		return "", errors.New("expected a quoted name")
	}
	t.rest = t.rest[len(q):]
	if t.rest != "" && !strings.ContainsRune(textSpace+"#", rune(t.rest[0])) {
		return "", fmt.Errorf("expected a space after %s", q)
	}
	return strconv.Unquote(q)
}

var errUnknownField = errors.New("unknown field")

// fields gives the rest of the line to set, which returns errUnknownField for a
// key that it does not know. No key may come twice.
func (t *textParser) fields(set func(key, value string) error) error {
	var seen [16]string
	n := 0
	for word := t.next(); word != ""; word = t.next() {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form key=value", word)
		}
		for _, s := range seen[:n] {
			if s == key {
				return fmt.Errorf("field %q comes twice", key)
			}
		}
		if err := set(key, value); err != nil {
			if err == errUnknownField {
				return fmt.Errorf("unknown field %q", key)
			}
			return fmt.Errorf("field %s: %w", key, err)
		}
		seen[n] = key // no item has as many known keys as seen has places
		n++
	}
	return nil
}

func parseInteger(s string, bits int) (int64, error) {
	n, err := strconv.ParseInt(s, 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s does not fit %d bits", s, bits)
	case err != nil:
		return 0, fmt.Errorf("%q is not an integer", s)
	}
	return n, nil
}

func set32(to *int32, s string) error {
	n, err := parseInteger(s, 32)
	*to = int32(n)
	return err
}

func set64(to *int64, s string) (err error) {
	*to, err = parseInteger(s, 64)
	return err
}

func setFloat(to *float64, s string) (err error) {
	if *to, err = strconv.ParseFloat(s, 64); err != nil {
		return fmt.Errorf("%q is not a number", s)
	}
	return nil
}

func setList(to *[]int32, s string) error {
	*to = make([]int32, 0, strings.Count(s, ",")+1)
	for s := range strings.SplitSeq(s, ",") {
		n, err := parseInteger(s, 32)
		if err != nil {
			return err
		}
		*to = append(*to, int32(n))
	}
	return nil
}

func setLevel(to *Level, s string) error {
	for level := NoLevel; level < NumLevels; level++ {
		if level.String() == s {
			*to = level
			return nil
		}
	}
	return fmt.Errorf("unknown level %q", s)
}
