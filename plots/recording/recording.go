// Package recording takes down what a cluster does in a simulated schedule, command by command and buffer by buffer,
// and makes the page of one schedule or of two beside each other. The viewer of package page shows a recording.
package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/picture"
)

// Recording is the viewer's input. All lists of numbers are columns: decimal numbers with a space between them, so
// that a hundred thousand commands stay small once compressed, and JSON stays readable. Times are in ticks.
type Recording struct {
	Schema         int             `json:"schema"`
	TickPs         int64           `json:"tick_ps"`
	Configurations []Configuration `json:"configurations"`
}

// File is the name of the file of a recording, which the report page shows.
const File = "viewer.json"

// Schema is the form of a Recording.
const Schema = 1

// TickPs is a nanosecond: commands last for hundreds of them.
const TickPs = 1000

// New is a recording of some configurations.
func New(list ...Configuration) Recording { return Recording{Schema, TickPs, list} }

// JSON is the form that the viewer reads.
func (r Recording) JSON() ([]byte, error) { return json.Marshal(r) }

// Configuration has the schedules of one network, batch and accelerator.
type Configuration struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Hardware string `json:"hardware"`
	Batch    int64  `json:"batch"`
	Unit     string `json:"unit"` // of the throughput
	// Operators are the labels of all variants: those of layers first, in the order of
	// the network, then those of kernels and instances.
	Operators []string  `json:"operators"`
	Layers    int       `json:"layers"` // so many of Operators are layers
	Variants  []Variant `json:"variants"`
}

// Variant is a recorded schedule.
type Variant struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Row         harness.Row `json:"row"`
	EndTicks    int64       `json:"end_ticks"`
	// Schedule names the schedule of which this is one cluster, where layers are divided over clusters. The cluster
	// that ends last stands for it in the table; the others are Other.
	Schedule string   `json:"schedule,omitempty"`
	Other    bool     `json:"other,omitempty"`
	Kinds    []string `json:"kinds"`  // of commands
	Groups   []string `json:"groups"` // names
	// Instances are in the order in which they ran, each from its launch to the next.
	Instances Queue    `json:"instances"`
	Queues    []Queue  `json:"queues"`
	Memories  []Memory `json:"memories"`
	// MergedTicks is 0 if every command and buffer is there. Else neighbours in a queue with one label and kind that are
	// at most this far apart are one command, and of buffers that live no longer some are left out.
	MergedTicks int64 `json:"merged_ticks"`
}

// Queue holds the commands of a queue in their order, which is that of time.
type Queue struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Commands int    `json:"commands"`
	// Gap is from the end of the command before (or 0) to the start, Length from there to the end.
	Gap    string `json:"gap_ticks"`
	Length string `json:"length_ticks"`
	Label  string `json:"operator"`
	Kind   string `json:"kind"`
	Group  string `json:"group"` // of the kernel that runs it, a number of the variant's Groups
	// Amount is the work of a command: bytes of a move, multiply-accumulates of a matrix
	// command, operations of a vector command, else 0.
	Amount string `json:"amount"`
	// Critical are the numbers of the commands on the critical path, each as its distance
	// from the one before (or from 0).
	Critical string `json:"critical"`
}

// Memory holds the buffers of a memory by the time at which they begin, then by
// address. Sizes and addresses are per core for the L1.
type Memory struct {
	Level    string `json:"level"`
	Short    string `json:"short"`
	Title    string `json:"title"`
	Capacity int64  `json:"capacity_bytes"`
	Buffers  int    `json:"buffers"`
	Gap      string `json:"gap_ticks"` // from the beginning of the buffer before
	Length   string `json:"length_ticks"`
	Label    string `json:"operator"`
	Group    string `json:"group"` // of the kernel that fills it
	Address  string `json:"address_bytes"`
	Size     string `json:"size_bytes"`
	Filled   string `json:"filled_by"` // the kind of its first command
}

// Recorded is a variant with its own labels.
type Recorded struct {
	Labels  []string `json:"labels"`
	Layers  []string `json:"layers"` // in the order of the network
	Variant Variant  `json:"variant"`
}

// queues are in the order of the viewer; others follow by name.
var queues = []string{"control", "mme", "vme", "special", "lb.in", "lb.out", "ddr.load", "ddr.store"}

// numbers is a column of numbers as text.
type numbers struct{ b []byte }

func (n *numbers) add(v int64) {
	if len(n.b) > 0 {
		n.b = append(n.b, ' ')
	}
	n.b = strconv.AppendInt(n.b, v, 10)
}

func (n *numbers) String() string { return string(n.b) }

// ticks rounds a time to the nearest tick, upwards from the middle: it never puts two times in another order.
func ticks(ps int64) int64 { return (ps + TickPs/2) / TickPs }

// MostCommands is the number of commands, and of buffers of a memory, that are recorded one by
// one. Of more, neighbours become one.
const MostCommands = 200_000

// item is a command of a queue in ticks.
type item struct {
	from, to, amount int64
	label, kind      int32
	group            int32
	critical         bool
}

// merge joins neighbours of one label and kind that are at most near apart.
func merge(list []item, near int64) []item {
	var out []item
	for _, x := range list {
		if n := len(out); n > 0 && out[n-1].label == x.label && out[n-1].kind == x.kind &&
			out[n-1].group == x.group && x.from-out[n-1].to <= near {
			out[n-1].to, out[n-1].amount = x.to, out[n-1].amount+x.amount
			out[n-1].critical = out[n-1].critical || x.critical
			continue
		}
		out = append(out, x)
	}
	return out
}

// track writes the columns of a queue.
func track(name, title string, list []item) Queue {
	t := Queue{Name: name, Title: title, Commands: len(list)}
	var gap, length, label, kind, group, amount, critical numbers
	last, before := int64(0), 0
	for i, x := range list {
		gap.add(x.from - last)
		length.add(x.to - x.from)
		label.add(int64(x.label))
		kind.add(int64(x.kind))
		group.add(int64(x.group))
		amount.add(x.amount)
		if x.critical {
			critical.add(int64(i - before))
			before = i
		}
		last = x.to
	}
	t.Gap, t.Length, t.Label, t.Kind = gap.String(), length.String(), label.String(), kind.String()
	t.Amount, t.Critical, t.Group = amount.String(), critical.String(), group.String()
	return t
}

// Record takes down what a cluster does; row is what the schedule comes to. With more than
// most commands, neighbours become one.
func Record(r *scheduler.Result, cluster int, row harness.Row, most int) Recorded {
	p, s := r.Program, r.Sim
	rec := Recorded{Labels: slices.Clone(p.Labels), Variant: Variant{
		Name: r.Recipe.Name, Description: r.Recipe.Description, Row: row, EndTicks: ticks(s.TotalPs),
	}}
	v := &rec.Variant
	for k := range isa.NumKinds {
		v.Kinds = append(v.Kinds, k.String())
	}
	groups, _ := picture.Groups(r)
	for _, g := range groups {
		v.Groups = append(v.Groups, g.Name)
	}
	owner, kernels := picture.Owners(r, cluster)
	group := func(command int32) int { return kernels[owner[command]].Number }
	for _, op := range r.Schedule.Graph.Ops {
		rec.Layers = append(rec.Layers, op.Name)
	}
	critical := map[int32]bool{}
	for _, i := range sim.CriticalPath(p, s) {
		critical[i] = true
	}
	all, total := make([][]item, len(p.Queues)), 0
	for i := range p.Commands {
		c := &p.Commands[i]
		if int(p.Queues[c.Queue].Cluster) != cluster {
			continue
		}
		total++
		all[c.Queue] = append(all[c.Queue], item{ticks(s.Start[i]), ticks(s.End[i]), c.Bytes + c.MACs + c.VectorOps,
			// it has one of them
			c.Label, int32(c.Kind), int32(group(int32(i))), critical[int32(i)]})
	}
	// Each round joins neighbours that are twice as far apart; in the end few are left for each label.
	for near := max(1, v.EndTicks>>14); total > most && near < v.EndTicks; near *= 2 {
		total, v.MergedTicks = 0, near
		for q := range all {
			all[q] = merge(all[q], near)
			total += len(all[q])
		}
	}
	for q := range p.Queues {
		if len(all[q]) > 0 {
			v.Queues = append(v.Queues, track(p.Queues[q].Kind.String(), r.QueueWord(p.Queues[q]), all[q]))
		}
	}
	rank := func(q Queue) uint { return uint(slices.Index(queues, q.Name)) } // of others, that of -1
	slices.SortStableFunc(v.Queues, func(a, b Queue) int { return cmp.Compare(rank(a), rank(b)) })
	rec.instances(kernels)
	near := picture.Nearest(r)
	for _, m := range []struct {
		level        isa.Level
		short, title string
	}{{isa.L1, near, near + " of each core"}, {isa.LLB, "LLB", "LLB of the cluster"}} {
		if m.short == "LLB" && m.level == isa.L1 {
			m.title = "LLB of each cluster"
		}
		if p.Capacity[m.level] > 0 {
			t := memory(r, cluster, m.level, most, group, &v.MergedTicks)
			t.Short, t.Title = m.short, m.title
			v.Memories = append(v.Memories, t)
		}
	}
	return rec
}

// instances records the kernels by the instances that they run, whose names become labels.
func (rec *Recorded) instances(kernels []picture.Kernel) {
	number := map[string]int32{}
	for i, l := range rec.Labels {
		number[l] = int32(i)
	}
	var list []item
	last := int64(0)
	for _, k := range kernels {
		name := k.Name()
		label, ok := number[name]
		if !ok {
			label = int32(len(rec.Labels))
			number[name], rec.Labels = label, append(rec.Labels, name)
		}
		from := max(last, ticks(k.FromPs)) // weights of the next kernel may be early
		last = max(from, ticks(k.ToPs))
		list = append(list, item{from: from, to: last, label: label, kind: int32(isa.Launch), group: int32(k.Number)})
	}
	rec.Variant.Instances = track("instances", "instances", list)
}

func memory(r *scheduler.Result, cluster int, level isa.Level, most int, group func(command int32) int,
	merged *int64) Memory {
	type held struct{ from, to, index int64 }
	var list []held
	for i := range r.Program.Buffers {
		b := &r.Program.Buffers[i]
		if int(b.Cluster) != cluster || b.Level != level {
			continue
		}
		from, to := r.Sim.Lifetime(b)
		if from < to && b.Bytes > 0 {
			list = append(list, held{ticks(from), ticks(to), int64(i)})
		}
	}
	if len(list) > most { // the longest are seen
		slices.SortFunc(list, func(a, b held) int {
			return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(a.index, b.index))
		})
		list = list[:most]
		*merged = max(*merged, list[most-1].to-list[most-1].from)
	}
	buffers := r.Program.Buffers
	slices.SortFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(buffers[a.index].Address, buffers[b.index].Address),
			cmp.Compare(a.index, b.index))
	})
	m := Memory{Level: level.String(), Capacity: r.Program.Capacity[level], Buffers: len(list)}
	var gap, length, label, groups, address, size, filled numbers
	last := int64(0)
	for _, h := range list {
		b := &buffers[h.index]
		gap.add(h.from - last)
		length.add(h.to - h.from)
		label.add(int64(b.Label))
		groups.add(int64(group(b.First)))
		address.add(b.Address)
		size.add(b.Bytes)
		filled.add(int64(r.Program.Commands[b.First].Kind))
		last = h.from
	}
	m.Gap, m.Length, m.Label, m.Group = gap.String(), length.String(), label.String(), groups.String()
	m.Address, m.Size, m.Filled = address.String(), size.String(), filled.String()
	return m
}

// Join puts the schedules of one configuration on one list of labels.
func Join(conf Configuration, runs []Recorded) (Configuration, error) {
	used := map[string]bool{}
	for _, r := range runs {
		for _, l := range r.Labels {
			used[l] = true
		}
	}
	index := map[string]int64{}
	add := func(name string) {
		if _, ok := index[name]; !ok && used[name] {
			index[name] = int64(len(conf.Operators))
			conf.Operators = append(conf.Operators, name)
		}
	}
	for _, r := range runs {
		for _, l := range r.Layers {
			add(l)
		}
	}
	conf.Layers = len(conf.Operators)
	for _, r := range runs {
		for _, l := range r.Labels {
			add(l)
		}
	}
	for _, r := range runs {
		rename := func(column *string) error {
			var n numbers
			for word := range strings.FieldsSeq(*column) {
				l, err := strconv.Atoi(word)
				if err != nil || l < 0 || l >= len(r.Labels) {
					return fmt.Errorf("a result can't be read: label %q of %d", word, len(r.Labels))
				}
				n.add(index[r.Labels[l]])
			}
			*column = n.String()
			return nil
		}
		v := r.Variant
		v.Queues, v.Memories = slices.Clone(v.Queues), slices.Clone(v.Memories)
		columns := []*string{&v.Instances.Label}
		for i := range v.Queues {
			columns = append(columns, &v.Queues[i].Label)
		}
		for i := range v.Memories {
			columns = append(columns, &v.Memories[i].Label)
		}
		for _, c := range columns {
			if err := rename(c); err != nil {
				return conf, err
			}
		}
		conf.Variants = append(conf.Variants, v)
	}
	return conf, nil
}
