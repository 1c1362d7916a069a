package isa

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The text form has one item per line, in any order but with the items of each
// kind numbered from 0. A line is a word, what its position says, and fields
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
//	queue 0 "dma" cluster=0 kind=ddr.load
//	queue 1 "mme" cluster=0 kind=mme
//	operator 0 "conv"
//	tensor 0 "image" bytes=2 shape=1,3,32,32 order=0,2,3,1
//	tensor 1 "conv.out" bytes=2 shape=1,8,32,32 order=0,2,3,1
//	task 0 instance=0 operators=0 reads=0@-1[0:1,0:3,0:17,0:32] writes=1@0[0:1,0:8,0:16/8,0:32]
//	command 0 ddr.load queue=0 label=0 cores=8 task=0 ps=300000 uses=0:4096 bytes=4096  # dma: conv
//	command 1 matrix queue=1 label=0 cores=8 task=0 part=1/2 ps=1000000 deps=0 macs=1000 write=LB  # mme: conv
//	buffer 0 LB label=0 cluster=0 address=0 bytes=4096 first=0 lasts=1  # conv

const textVersion = "1"

// TextError reports where a text is not a program.
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

func textList[T int32 | int64](l *textLine, key string, ns []T) {
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

// operands writes boxes of tensors, tensor@instance[low:high,...]; a dimension that is cut
// over cores is low:high/cores. Behind it may stand level:address and ~stage+bytes.
func (l *textLine) operands(key string, list []Operand) {
	if len(list) == 0 {
		return
	}
	l.key(key)
	for i, o := range list {
		if i > 0 {
			*l = append(*l, ';')
		}
		*l = append(strconv.AppendInt(*l, int64(o.Tensor), 10), '@')
		*l = append(strconv.AppendInt(*l, int64(o.Instance), 10), '[')
		for d, r := range o.Box {
			if d > 0 {
				*l = append(*l, ',')
			}
			*l = append(strconv.AppendInt(*l, r.Lo, 10), ':')
			*l = strconv.AppendInt(*l, r.Hi, 10)
			if o.Spread != nil && o.Spread[d] != 1 {
				*l = append(*l, '/')
				*l = strconv.AppendInt(*l, o.Spread[d], 10)
			}
		}
		*l = append(*l, ']')
		if o.Level != NoLevel {
			*l = append(append(*l, o.Level.String()...), ':')
			*l = strconv.AppendInt(*l, o.Address, 10)
		}
		if o.Stage != 0 || o.StageBytes != 0 {
			*l = strconv.AppendInt(append(*l, '~'), o.Stage, 10)
			*l = strconv.AppendInt(append(*l, '+'), o.StageBytes, 10)
		}
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
	p = p.Unfolded()
	out := bufio.NewWriter(w)
	var l textLine
	each := func(item string, n int, write func(i int)) {
		for i := range n {
			l.word(item)
			l.number(i)
			write(i)
			l.writeTo(out)
		}
	}
	l.head(out, p)
	each("label", len(p.Labels), func(i int) { l.quote(p.Labels[i]) })
	each("resource", len(p.Resources), func(i int) { l.resource(&p.Resources[i]) })
	each("queue", len(p.Queues), func(i int) { l.queue(&p.Queues[i]) })
	each("operator", len(p.Operators), func(i int) { l.quote(p.Operators[i]) })
	each("tensor", len(p.Tensors), func(i int) { l.tensor(&p.Tensors[i]) })
	each("task", len(p.Tasks), func(i int) { l.task(&p.Tasks[i]) })
	each("command", len(p.Commands), func(i int) { l.command(p, &p.Commands[i]) })
	each("buffer", len(p.Buffers), func(i int) { l.buffer(p, &p.Buffers[i]) })
	return out.Flush()
}

// head writes the lines that a program has one of.
func (l *textLine) head(out *bufio.Writer, p *Program) {
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
}

func (l *textLine) resource(r *Resource) {
	l.quote(r.Name)
	l.must("bytes/s", r.BytesPerSecond)
	if r.Kind != OtherResource {
		l.key("kind")
		l.word(r.Kind.String())
	}
}

func (l *textLine) queue(q *Queue) {
	l.quote(q.Name)
	l.must("cluster", int64(q.Cluster))
	if q.Kind != OtherQueue {
		l.key("kind")
		l.word(q.Kind.String())
	}
}

func (l *textLine) tensor(t *Tensor) {
	l.quote(t.Name)
	l.must("bytes", t.ElementBytes)
	textList(l, "shape", t.Shape)
	textList(l, "order", t.Order)
}

func (l *textLine) task(t *Task) {
	l.must("instance", int64(t.Instance))
	textList(l, "operators", t.Operators)
	l.operands("reads", t.Reads)
	l.operands("writes", t.Writes)
	textList(l, "columns", t.Columns)
	textList(l, "reduction", t.Reduction)
	l.may("tiles", int64(t.Tiles))
	l.may("repeat", int64(t.Repeat))
	l.may("depth", int64(t.Depth))
	l.may("slices", int64(t.Slices))
	l.may("products", int64(t.Products))
	l.may("positions", int64(t.Positions))
	l.may("keys", int64(t.Keys))
	l.may("slots", int64(t.Slots))
	l.may("query-slots", int64(t.QuerySlots))
}

func (l *textLine) command(p *Program, c *Command) {
	l.word(c.Kind.String())
	l.must("queue", int64(c.Queue))
	l.must("label", int64(c.Label))
	l.may("iteration", int64(c.Iteration))
	l.may("cores", int64(c.Cores))
	if c.Task != 0 {
		l.must("task", int64(c.Task)-1)
	}
	l.may("operand", int64(c.Operand))
	if c.Parts != 0 {
		l.key("part")
		*l = append(strconv.AppendInt(*l, int64(c.Part), 10), '/')
		*l = append(strconv.AppendInt(*l, int64(c.Parts), 10), ' ')
	}
	l.may("tile", int64(c.Tile))
	l.may("tiles", int64(c.Tiles))
	if c.From != 0 {
		l.must("from", int64(c.From)-1)
	}
	if c.To != 0 {
		l.must("to", int64(c.To)-1)
	}
	l.may("ps", c.DurationPs)
	textList(l, "deps", c.Deps)
	l.uses(c.Uses)
	l.may("bytes", c.Bytes)
	l.may("macs", c.MACs)
	l.may("vectorops", c.VectorOps)
	if c.WriteLevel != NoLevel {
		l.key("write")
		l.word(c.WriteLevel.String())
	}
	queue := "?"
	if c.Queue >= 0 && int(c.Queue) < len(p.Queues) {
		queue = p.Queues[c.Queue].Name
	}
	l.comment(queue, p.labelName(c.Label))
}

func (l *textLine) uses(uses []Use) {
	if len(uses) == 0 {
		return
	}
	l.key("uses")
	for i, u := range uses {
		if i > 0 {
			*l = append(*l, ',')
		}
		*l = append(strconv.AppendInt(*l, int64(u.Resource), 10), ':')
		*l = strconv.AppendInt(*l, u.Bytes, 10)
	}
	*l = append(*l, ' ')
}

func (l *textLine) buffer(p *Program, b *Buffer) {
	l.word(b.Level.String())
	l.must("label", int64(b.Label))
	l.must("cluster", int64(b.Cluster))
	l.must("address", b.Address)
	l.must("bytes", b.Bytes)
	l.must("first", int64(b.First))
	textList(l, "lasts", b.Lasts)
	if b.Continued {
		l.must("continued", 1)
	}
	l.comment(p.labelName(b.Label))
}

// labelName is a label for a comment; the index may be out of range.
func (p *Program) labelName(i int32) string {
	if i < 0 || int(i) >= len(p.Labels) {
		return "?"
	}
	return p.Labels[i]
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
	switch item {
	case "isa", "program", "clusters", "capacity", "peak":
		if len(lines) > 0 {
			return fmt.Errorf("a second line %q; the first is line %d", item, lines[0])
		}
	case "label", "resource", "queue", "operator", "tensor", "task", "command", "buffer":
		index, err := parseInteger(t.next(), 64)
		if err != nil {
			return fmt.Errorf("number of %s: %w", item, err)
		}
		if index != int64(len(lines)) {
			return fmt.Errorf("%s %d, expected %d", item, index, len(lines))
		}
	default:
		return fmt.Errorf("unknown item %q", item)
	}
	return t.item(item)
}

// item reads what follows an item and its number.
func (t *textParser) item(item string) (err error) {
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
	case "label":
		err = t.appendQuoted(&p.Labels)
	case "operator":
		err = t.appendQuoted(&p.Operators)
	case "capacity":
		return t.capacity()
	case "peak":
		return t.peak()
	case "resource":
		return t.resource()
	case "queue":
		return t.queue()
	case "tensor":
		return t.tensor()
	case "task":
		return t.task()
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

func (t *textParser) appendQuoted(to *[]string) error {
	s, err := t.quoted()
	*to = append(*to, s)
	return err
}

func (t *textParser) capacity() error {
	return t.fields(func(key, value string) error {
		for level := range NumLevels {
			if key == level.String() {
				return set64(&t.p.Capacity[level], value)
			}
		}
		return errUnknownField
	})
}

func (t *textParser) peak() error {
	return t.fields(func(key, value string) error {
		switch key {
		case "macs/s":
			return setFloat(&t.p.PeakMACsPerSecond, value)
		case "vectorops/s":
			return setFloat(&t.p.PeakVectorOpsPerSecond, value)
		}
		return errUnknownField
	})
}

func (t *textParser) resource() error {
	name, err := t.quoted()
	if err != nil {
		return err
	}
	r := Resource{Name: name}
	err = t.fields(func(key, value string) error {
		switch key {
		case "bytes/s":
			return set64(&r.BytesPerSecond, value)
		case "kind":
			return setName(&r.Kind, NumResourceKinds, "kind of resource", value)
		}
		return errUnknownField
	})
	t.p.Resources = append(t.p.Resources, r)
	return err
}

func (t *textParser) queue() error {
	name, err := t.quoted()
	if err != nil {
		return err
	}
	q := Queue{Name: name}
	err = t.fields(func(key, value string) error {
		switch key {
		case "cluster":
			return set32(&q.Cluster, value)
		case "kind":
			return setName(&q.Kind, NumQueueKinds, "kind of queue", value)
		}
		return errUnknownField
	})
	t.p.Queues = append(t.p.Queues, q)
	return err
}

func (t *textParser) command() error {
	var c Command
	if err := setName(&c.Kind, NumKinds, "kind of command", t.next()); err != nil {
		return err
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
		case "task":
			err := set32(&c.Task, value)
			c.Task++ // beyond the largest: negative, which Check refuses
			return err
		case "from":
			err := set32(&c.From, value)
			c.From++
			return err
		case "to":
			err := set32(&c.To, value)
			c.To++
			return err
		case "operand":
			return set32(&c.Operand, value)
		case "part":
			part, parts, ok := strings.Cut(value, "/")
			if !ok {
				return fmt.Errorf("%q is not of the form part/parts", value)
			}
			if err := set32(&c.Part, part); err != nil {
				return err
			}
			return set32(&c.Parts, parts)
		case "tile":
			return set32(&c.Tile, value)
		case "tiles":
			return set32(&c.Tiles, value)
		case "ps":
			return set64(&c.DurationPs, value)
		case "deps":
			return setList(&c.Deps, value, 32)
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

func (t *textParser) tensor() error {
	name, err := t.quoted()
	if err != nil {
		return err
	}
	tensor := Tensor{Name: name}
	err = t.fields(func(key, value string) error {
		switch key {
		case "bytes":
			return set64(&tensor.ElementBytes, value)
		case "shape":
			return setList(&tensor.Shape, value, 64)
		case "order":
			return setList(&tensor.Order, value, 32)
		}
		return errUnknownField
	})
	t.p.Tensors = append(t.p.Tensors, tensor)
	return err
}

func (t *textParser) task() error {
	var task Task
	err := t.fields(func(key, value string) error {
		switch key {
		case "instance":
			return set32(&task.Instance, value)
		case "operators":
			return setList(&task.Operators, value, 32)
		case "reads":
			return setOperands(&task.Reads, value)
		case "writes":
			return setOperands(&task.Writes, value)
		case "columns":
			return setList(&task.Columns, value, 64)
		case "reduction":
			return setList(&task.Reduction, value, 64)
		case "tiles":
			return set32(&task.Tiles, value)
		case "repeat":
			return set32(&task.Repeat, value)
		case "depth":
			return set32(&task.Depth, value)
		case "slices":
			return set32(&task.Slices, value)
		case "products":
			return set32(&task.Products, value)
		case "positions":
			return set32(&task.Positions, value)
		case "keys":
			return set32(&task.Keys, value)
		case "slots":
			return set32(&task.Slots, value)
		case "query-slots":
			return set32(&task.QuerySlots, value)
		}
		return errUnknownField
	})
	t.p.Tasks = append(t.p.Tasks, task)
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
			return setList(&b.Lasts, value, 32)
		case "continued":
			var n int64
			err := set64(&n, value)
			b.Continued = n != 0
			return err
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
	var seen [24]string
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

func setList[T int32 | int64](to *[]T, s string, bits int) error {
	*to = make([]T, 0, strings.Count(s, ",")+1)
	for s := range strings.SplitSeq(s, ",") {
		n, err := parseInteger(s, bits)
		if err != nil {
			return err
		}
		*to = append(*to, T(n))
	}
	return nil
}

func setOperands(to *[]Operand, s string) error {
	for s := range strings.SplitSeq(s, ";") {
		o, ok := parseOperand(s)
		if !ok {
			return fmt.Errorf("%q is not of the form tensor@instance[low:high,low:high/cores,...]level:address~stage+bytes", s)
		}
		*to = append(*to, o)
	}
	return nil
}

func parseOperand(s string) (o Operand, ok bool) {
	tensor, s, _ := strings.Cut(s, "@")
	instance, s, _ := strings.Cut(s, "[")
	box, place, isBox := strings.Cut(s, "]")
	if err := errors.Join(set32(&o.Tensor, tensor), set32(&o.Instance, instance)); err != nil || !isBox {
		return o, false
	}
	place, stage, staged := strings.Cut(place, "~")
	if level, address, _ := strings.Cut(place, ":"); place != "" && errors.Join(setLevel(&o.Level, level), set64(&o.Address, address)) != nil {
		return o, false
	}
	if at, bytes, _ := strings.Cut(stage, "+"); staged && errors.Join(set64(&o.Stage, at), set64(&o.StageBytes, bytes)) != nil {
		return o, false
	}
	if box == "" {
		return o, true // of a single number
	}
	for s := range strings.SplitSeq(box, ",") {
		s, cores, cut := strings.Cut(s, "/")
		low, high, _ := strings.Cut(s, ":")
		var r Range
		n := int64(1)
		if cut {
			if set64(&n, cores) != nil {
				return o, false
			}
			if o.Spread == nil && n != 1 {
				o.Spread = slices.Repeat([]int64{1}, len(o.Box))
			}
		}
		if err := errors.Join(set64(&r.Lo, low), set64(&r.Hi, high)); err != nil {
			return o, false
		}
		o.Box = append(o.Box, r)
		if o.Spread != nil {
			o.Spread = append(o.Spread, n)
		}
	}
	return o, true
}

// setName finds the one of n values that has a name.
func setName[T interface {
	~uint8
	fmt.Stringer
}](to *T, n T, noun, name string) error {
	for v := range n {
		if v.String() == name {
			*to = v
			return nil
		}
	}
	return fmt.Errorf("unknown %s %q", noun, name)
}

func setLevel(to *Level, s string) error { return setName(to, NumLevels, "level", s) }
