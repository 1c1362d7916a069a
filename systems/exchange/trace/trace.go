// Package trace writes a simulated program as Chrome trace events (the JSON object
// format of the Trace Event Format), which ui.perfetto.dev and chrome://tracing open.
//
// A cluster is a process. In it, each queue is a track (control, DMA queues, compute units) with a slice for each
// command, and each level of memory one or more tracks with a slice for each buffer, so many that no two slices of a
// track overlap. The slice of a command names its instance and the boxes of tensors that it works on, as far as the
// program knows them. A flow goes from each command to each that waits for it, but not for launches and barriers,
// which wait for everything. Counters show the bytes in use of each memory and, in a process of its own, what passes
// over the resources that all clusters share.
//
// Times are in microseconds, as the format wants, with all picoseconds.
package trace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// Write writes the trace of a program. It simulates the program to see the rates of its moves.
func Write(ctx context.Context, out io.Writer, p *isa.Program) error {
	if err := p.Check(); err != nil {
		return err
	}
	p = p.Unfolded()
	shared := newMeter(p)
	r, err := sim.Run(ctx, p, sim.Options{OnRate: shared.rate})
	if err != nil {
		return err
	}
	w := &writer{out: bufio.NewWriter(out), p: p, r: r}
	w.out.WriteString("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":" + quote(p.Name) + "},\n\"traceEvents\":[")
	w.names()
	w.commands()
	w.flows()
	w.buffers()
	w.occupancy()
	w.bandwidth(shared)
	w.out.WriteString("\n]}\n")
	return w.out.Flush()
}

type writer struct {
	out   *bufio.Writer
	p     *isa.Program
	r     *sim.Result
	lanes int // tracks of memories so far
	comma bool
}

// event writes an event; fields follows its phase.
func (w *writer) event(phase, fields string) {
	if w.comma {
		w.out.WriteByte(',')
	}
	w.comma = true
	w.out.WriteString("\n{\"ph\":\"" + phase + "\"," + fields + "}")
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("trace: " + err.Error()) // any text can be written
	}
	return string(data)
}

// us writes picoseconds as microseconds, exactly.
func us(ps int64) string {
	s := fmt.Sprintf("%d.%06d", ps/1_000_000, ps%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Process 1 is the chip, the clusters come after it. Tracks 1, 2, ... of a cluster are
// its queues, in the order of the program; those of its memories follow.
const chip = 1

func process(cluster int32) int { return chip + 1 + int(cluster) }

func (w *writer) metadata(kind string, pid, tid int, args string) {
	w.event("M", fmt.Sprintf(`"name":"%s","ts":0,"pid":%d,"tid":%d,"args":{%s}`, kind, pid, tid, args))
}

func (w *writer) process(pid int, name string) {
	w.metadata("process_name", pid, 0, `"name":`+quote(name))
	w.metadata("process_sort_index", pid, 0, fmt.Sprintf(`"sort_index":%d`, pid))
}

func (w *writer) track(pid, tid int, name string) {
	w.metadata("thread_name", pid, tid, `"name":`+quote(name))
	w.metadata("thread_sort_index", pid, tid, fmt.Sprintf(`"sort_index":%d`, tid))
}

func (w *writer) names() {
	w.process(chip, "chip")
	for k := range w.p.Clusters {
		w.process(process(int32(k)), fmt.Sprintf("cluster %d", k))
	}
	for q := range w.p.Queues {
		queue := &w.p.Queues[q]
		name := queue.Name
		if queue.Kind != isa.OtherQueue { // the cluster's name stands at the process
			name = queue.Kind.String()
		}
		w.track(process(queue.Cluster), 1+q, name)
	}
	w.lanes = len(w.p.Queues)
}

// place is where a command stands.
func (w *writer) place(i int32) string {
	q := w.p.Commands[i].Queue
	return fmt.Sprintf(`"pid":%d,"tid":%d`, process(w.p.Queues[q].Cluster), 1+q)
}

func (w *writer) commands() {
	for i := range w.p.Commands {
		c := &w.p.Commands[i]
		args := []string{fmt.Sprintf(`"command":%d`, i), fmt.Sprintf(`"iteration":%d`, c.Iteration)}
		for _, a := range []struct {
			name  string
			value int64
		}{{"bytes", c.Bytes}, {"cores", int64(c.Cores)}, {"macs", c.MACs}, {"vector_ops", c.VectorOps}} {
			if a.value != 0 {
				args = append(args, fmt.Sprintf(`"%s":%d`, a.name, a.value))
			}
		}
		args = append(args, w.data(i)...)
		w.event("X", fmt.Sprintf(`"name":%s,"cat":"%v","ts":%s,"dur":%s,%s,"args":{%s}`, quote(w.p.Labels[c.Label]), c.Kind,
			us(w.r.Start[i]), us(w.r.End[i]-w.r.Start[i]), w.place(int32(i)), strings.Join(args, ",")))
	}
}

// data names the instance and the boxes that a command works on, or of which it has a part.
func (w *writer) data(i int) (args []string) {
	reads, writes, ok := w.p.Data(i)
	if !ok {
		return nil
	}
	c := &w.p.Commands[i]
	args = append(args, fmt.Sprintf(`"instance":%d`, w.p.Tasks[c.Task-1].Instance))
	if c.Kind.IsMove() {
		args = append(args, `"tensor":`+quote(w.box(&reads[0])))
	} else {
		args = append(args, `"reads":`+w.boxes(reads), `"writes":`+w.boxes(writes))
	}
	if c.Parts > 1 {
		args = append(args, fmt.Sprintf(`"part":"%d of %d"`, c.Part+1, c.Parts))
	}
	if c.Tile != 0 {
		args = append(args, fmt.Sprintf(`"weight_tile":%d`, c.Tile))
	}
	return args
}

func (w *writer) boxes(list []isa.Operand) string {
	quoted := make([]string, len(list))
	for i := range list {
		quoted[i] = quote(w.box(&list[i]))
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// box is a box of a tensor such as x[0:1,0:64]; ranges are half-open.
func (w *writer) box(o *isa.Operand) string {
	ranges := make([]string, len(o.Box))
	for d, r := range o.Box {
		ranges[d] = fmt.Sprintf("%d:%d", r.Lo, r.Hi)
	}
	return w.p.Tensors[o.Tensor].Name + "[" + strings.Join(ranges, ",") + "]"
}

// flows go from the start of a command, since a flow belongs to the slice that is there
// at its time, and a slice does not hold its end.
func (w *writer) flows() {
	id := 0
	waits := func(k isa.Kind) bool { return k == isa.Launch || k == isa.Barrier }
	for i := range w.p.Commands {
		c := &w.p.Commands[i]
		if waits(c.Kind) {
			continue
		}
		for _, d := range c.Deps {
			if waits(w.p.Commands[d].Kind) || w.r.Start[d] == w.r.End[d] {
				continue
			}
			id++
			w.event("s", fmt.Sprintf(`"name":"data","cat":"flow","id":%d,"ts":%s,%s`, id, us(w.r.Start[d]), w.place(d)))
			w.event("f", fmt.Sprintf(`"bp":"e","name":"data","cat":"flow","id":%d,"ts":%s,%s`, id, us(w.r.Start[i]),
				w.place(int32(i))))
		}
	}
}

// buffers gives each buffer the first track of its memory that is free.
func (w *writer) buffers() {
	type use struct {
		from, to int64
		index    int
	}
	for k := range w.p.Clusters {
		for level := isa.L1; level < isa.NumLevels; level++ {
			var list []use
			for i := range w.p.Buffers {
				b := &w.p.Buffers[i]
				if int(b.Cluster) != k || b.Level != level || b.Bytes == 0 {
					continue
				}
				from, to := w.r.Start[b.First], w.r.End[b.First]
				for _, l := range b.Lasts {
					to = max(to, w.r.End[l])
				}
				if from < to {
					list = append(list, use{from, to, i})
				}
			}
			slices.SortFunc(list, func(a, b use) int { return cmp.Or(cmp.Compare(a.from, b.from), a.index-b.index) })
			var free []int64 // of each track
			first := w.lanes + 1
			for _, u := range list {
				lane := slices.IndexFunc(free, func(at int64) bool { return at <= u.from })
				if lane < 0 {
					lane = len(free)
					free = append(free, 0)
					w.track(process(int32(k)), first+lane, fmt.Sprintf("%s %d", level.String(), lane))
				}
				free[lane] = u.to
				b := &w.p.Buffers[u.index]
				w.event("X", fmt.Sprintf(`"name":%s,"cat":"%s","ts":%s,"dur":%s,"pid":%d,"tid":%d,"args":{"address":%d,"bytes":%d}`,
					quote(w.p.Labels[b.Label]), level.String(), us(u.from), us(u.to-u.from), process(int32(k)), first+lane,
					b.Address, b.Bytes))
			}
			w.lanes += len(free)
		}
	}
}

func (w *writer) counter(pid int, name, unit string, ps, value int64) {
	w.event("C", fmt.Sprintf(`"name":%s,"ts":%s,"pid":%d,"tid":0,"args":{"%s":%d}`, quote(name), us(ps), pid, unit, value))
}

func (w *writer) occupancy() {
	for k := range w.r.Clusters {
		for level := isa.L1; level < isa.NumLevels; level++ {
			name := level.String() + " in use"
			if level == isa.L1 {
				name += ", per core"
			}
			steps := w.r.Clusters[k].Memory[level].Steps
			for _, s := range steps {
				w.counter(process(int32(k)), name, "bytes", s.Ps, s.Bytes)
			}
		}
	}
}

// meter adds up the rates of the moves that use a resource that several clusters use.
type meter struct {
	p       *isa.Program
	shared  []int32 // resources
	now     []int64 // rate of each
	rates   []int64 // of each command's own bytes
	changes [][]change
}

type change struct{ ps, rate int64 }

func newMeter(p *isa.Program) *meter {
	m := &meter{p: p, rates: make([]int64, len(p.Commands))}
	user := make([]int32, len(p.Resources)) // cluster + 1; -1: several
	for i := range p.Commands {
		c := &p.Commands[i]
		cluster := p.Queues[c.Queue].Cluster + 1
		for _, u := range c.Uses {
			switch user[u.Resource] {
			case 0:
				user[u.Resource] = cluster
			case cluster:
			default:
				user[u.Resource] = -1
			}
		}
	}
	for i, r := range p.Resources {
		if user[i] < 0 || user[i] > 0 && r.Kind == isa.DDRBandwidth {
			m.shared = append(m.shared, int32(i))
		}
	}
	m.now, m.changes = make([]int64, len(m.shared)), make([][]change, len(m.shared))
	return m
}

func (m *meter) rate(index int, ps, bytesPerSecond int64) {
	c := &m.p.Commands[index]
	own := int64(0)
	sums := map[int32]int64{}
	for _, u := range c.Uses {
		sums[u.Resource] += u.Bytes
		own = max(own, sums[u.Resource])
	}
	for k, res := range m.shared {
		bytes := sums[res]
		if bytes == 0 || own == 0 {
			continue
		}
		part := func(rate int64) int64 { return int64(float64(rate) * (float64(bytes) / float64(own))) }
		m.now[k] += part(bytesPerSecond) - part(m.rates[index])
		if n := len(m.changes[k]); n > 0 && m.changes[k][n-1].ps == ps {
			m.changes[k][n-1].rate = m.now[k]
		} else {
			m.changes[k] = append(m.changes[k], change{ps, m.now[k]})
		}
	}
	m.rates[index] = bytesPerSecond
}

func (w *writer) bandwidth(m *meter) {
	for k, res := range m.shared {
		name := bandwidthName(w.p.Resources[res].Name)
		previous := int64(-1)
		for _, c := range m.changes[k] {
			if c.rate != previous {
				w.counter(chip, name, "bytes_per_s", c.ps, c.rate)
			}
			previous = c.rate
		}
	}
}

// bandwidthName is the name of a resource's track: a chip's with the number of the chip.
func bandwidthName(resource string) string {
	if chip, kind, several := strings.Cut(resource, "."); several {
		return chip + " " + kind + " bandwidth"
	}
	return strings.ToUpper(resource) + " bandwidth"
}
