package isa

import (
	"bufio"
	"io"
	"strconv"
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

// WriteText writes the program as text, for eyes and tools. The program need not
// pass its Check.
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
