package timeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/scheduler"
)

// timeline records all that one cluster does, command by command and buffer by
// buffer, for the viewer of the report page: the variants of Fig. 15 on some of the
// paper's configurations, with the paper's batches per cluster.
type timeline struct {
	hardware string
	labels   []string // of the configurations
	variants []string
}

func fullTimeline() timeline {
	return timeline{"stcp920", []string{"A", "B"}, []string{"tvm", "llb", "l1", "ordering", "cross-layer"}}
}

func (t timeline) experiment() harness.Experiment {
	return harness.Experiment{
		Name:        "timeline",
		Description: "what the units and memories of a cluster do over time, variant by variant",
		Paper:       "GraphTurbo (OSDI 2023), the variants of Fig. 15",
		Plan:        t.plan,
	}
}

// ViewerFile is the name of the file that the viewer of the report page reads; the
// type recording is its form.
const ViewerFile = "viewer.json"

// recording is the input of the viewer. All lists of numbers are columns: decimal
// numbers with a space between them, so that a hundred thousand commands stay small
// and JSON stays readable. Times are in ticks.
type recording struct {
	Schema         int                      `json:"schema"`
	TickPs         int64                    `json:"tick_ps"`
	Configurations []recordingConfiguration `json:"configurations"`
}

const recordingSchema = 1

type recordingConfiguration struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Hardware string `json:"hardware"`
	Batch    int64  `json:"batch"`
	Unit     string `json:"unit"` // of the throughput
	// Operators are the labels of all variants: those of layers first, in the order of
	// the network, then those of kernels.
	Operators []string           `json:"operators"`
	Layers    int                `json:"layers"` // so many of Operators are layers
	Variants  []recordingVariant `json:"variants"`
}

type recordingVariant struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Row         harness.Row   `json:"row"`
	EndTicks    int64         `json:"end_ticks"`
	Kinds       []string      `json:"kinds"` // of commands
	Queues      []queueTrack  `json:"queues"`
	Memories    []memoryTrack `json:"memories"`
}

// queueTrack holds the commands of a queue in their order, which is that of time.
type queueTrack struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Commands int    `json:"commands"`
	// Gap is from the end of the command before (or 0) to the start, Length from there
	// to the end.
	Gap    string `json:"gap_ticks"`
	Length string `json:"length_ticks"`
	Label  string `json:"operator"`
	Kind   string `json:"kind"`
	// Amount is the work of a command: bytes of a move, multiply-accumulates of a matrix
	// command, operations of a vector command, else 0.
	Amount string `json:"amount"`
}

// memoryTrack holds the buffers of a memory by the time at which they begin, then by
// address. Sizes and addresses are per core for the LB.
type memoryTrack struct {
	Level    string `json:"level"`
	Title    string `json:"title"`
	Capacity int64  `json:"capacity_bytes"`
	Buffers  int    `json:"buffers"`
	Gap      string `json:"gap_ticks"` // from the beginning of the buffer before
	Length   string `json:"length_ticks"`
	Label    string `json:"operator"`
	Address  string `json:"address_bytes"`
	Size     string `json:"size_bytes"`
	Filled   string `json:"filled_by"` // the kind of its first command
}

// recorded is the result of a cell: a variant with its own labels.
type recorded struct {
	Labels  []string         `json:"labels"`
	Layers  []string         `json:"layers"` // in the order of the network
	Variant recordingVariant `json:"variant"`
}

// timelineTickPs is a nanosecond: commands last for hundreds of them.
const timelineTickPs = 1000

// timelineQueues are the queues in the order of the viewer; others follow by name.
var timelineQueues = []struct{ name, title string }{
	{"control", "kernels"}, {"mme", "MME"}, {"vme", "VME"}, {"special", "vector core"},
	{"lb.in", "LLB → L1"}, {"lb.out", "L1 → L1, LLB"}, {"ddr.load", "DDR → LLB"}, {"ddr.store", "LLB → DDR"},
}

func (t timeline) plan() (*harness.Plan, error) {
	spec, err := hardware.Load(t.hardware)
	if err != nil {
		return nil, err
	}
	specHash, err := harness.Hash(spec)
	if err != nil {
		return nil, err
	}
	var list []literature.Configuration
	for _, c := range literature.Configurations() {
		if slices.Contains(t.labels, c.Label) {
			list = append(list, c)
		}
	}
	p := &harness.Plan{}
	for _, c := range list {
		src, err := harness.OpenNetwork(c.Network)
		if err != nil {
			return nil, err
		}
		for _, name := range t.variants {
			v, err := scheduler.Lookup(name)
			if err != nil {
				return nil, err
			}
			opt := scheduler.Options{Chunk: c.TVMBatchesPerCluster}
			if v.Pick("group") == "alg2" {
				opt.Chunk = c.GraphTurboBatchesPerCluster
			}
			p.Cells = append(p.Cells, harness.Cell{
				Key: src.Name + "-" + v.Name,
				Inputs: map[string]any{
					"model": src.Name, "dtype": model.F16.String(), "hardware": spec.Name,
					"hardware_sha256": specHash, "batch": c.BatchSize, "variant": v, "options": opt,
					"tick_ps": timelineTickPs,
				},
				Run: func(ctx context.Context) (any, error) {
					r, err := scheduler.Run(ctx, src, spec, c.BatchSize, v, opt)
					if err != nil {
						return nil, err
					}
					return record(r, c.Unit), nil
				},
			})
		}
	}
	p.Report = harness.Of(func(runs []recorded) (*harness.Report, error) {
		return t.report(list, spec, runs)
	})
	return p, nil
}

// numbers is a column of numbers as text.
type numbers struct{ b []byte }

func (n *numbers) add(v int64) {
	if len(n.b) > 0 {
		n.b = append(n.b, ' ')
	}
	n.b = strconv.AppendInt(n.b, v, 10)
}

func (n *numbers) String() string { return string(n.b) }

// ticks rounds a time to the nearest tick, upwards from the middle: it never puts
// two times in another order.
func ticks(ps int64) int64 { return (ps + timelineTickPs/2) / timelineTickPs }

// record takes down what cluster 0 does.
func record(r *scheduler.Result, unit string) recorded {
	p, s := r.Program, r.Sim
	rec := recorded{Labels: p.Labels, Variant: recordingVariant{
		Name: r.Recipe.Name, Description: r.Recipe.Description, Row: harness.RowOf(r, harness.PaperChunks, unit), EndTicks: ticks(s.TotalPs),
	}}
	for k := range isa.NumKinds {
		rec.Variant.Kinds = append(rec.Variant.Kinds, k.String())
	}
	for _, op := range r.Schedule.Graph.Ops {
		rec.Layers = append(rec.Layers, op.Name)
	}
	byQueue := make([][]int32, len(p.Queues))
	for i := range p.Commands {
		q := p.Commands[i].Queue
		byQueue[q] = append(byQueue[q], int32(i))
	}
	rank := func(name string) int {
		for i, q := range timelineQueues {
			if q.name == name {
				return i
			}
		}
		return len(timelineQueues)
	}
	var ranks []int
	for q := range p.Queues {
		if p.Queues[q].Cluster != 0 || len(byQueue[q]) == 0 {
			continue
		}
		name := p.Queues[q].Kind.String()
		track := queueTrack{Name: name, Title: name, Commands: len(byQueue[q])}
		if k := rank(name); k < len(timelineQueues) {
			track.Title = timelineQueues[k].title
		}
		var gap, length, label, kind, amount numbers
		last := int64(0)
		for _, i := range byQueue[q] {
			c := &p.Commands[i]
			start, end := ticks(s.Start[i]), ticks(s.End[i])
			gap.add(start - last)
			length.add(end - start)
			label.add(int64(c.Label))
			kind.add(int64(c.Kind))
			amount.add(c.Bytes + c.MACs + c.VectorOps) // a command has one of them
			last = end
		}
		track.Gap, track.Length, track.Label, track.Kind, track.Amount = gap.String(), length.String(), label.String(), kind.String(), amount.String()
		at := len(ranks)
		for at > 0 && ranks[at-1] > rank(name) {
			at--
		}
		ranks = slices.Insert(ranks, at, rank(name))
		rec.Variant.Queues = slices.Insert(rec.Variant.Queues, at, track)
	}
	for _, m := range []struct {
		level isa.Level
		title string
	}{{isa.LB, "L1 of each core"}, {isa.GB, "LLB of the cluster"}} {
		rec.Variant.Memories = append(rec.Variant.Memories, recordMemory(r, m.level, m.title))
	}
	return rec
}

func recordMemory(r *scheduler.Result, level isa.Level, title string) memoryTrack {
	type held struct{ from, to, index int64 }
	var list []held
	for i := range r.Program.Buffers {
		b := &r.Program.Buffers[i]
		if b.Cluster != 0 || b.Level != level {
			continue
		}
		from, to := r.Sim.Lifetime(b)
		if from < to && b.Bytes > 0 {
			list = append(list, held{ticks(from), ticks(to), int64(i)})
		}
	}
	slices.SortFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(r.Program.Buffers[a.index].Address, r.Program.Buffers[b.index].Address), cmp.Compare(a.index, b.index))
	})
	m := memoryTrack{Level: level.String(), Title: title, Capacity: r.Program.Capacity[level], Buffers: len(list)}
	var gap, length, label, address, size, filled numbers
	last := int64(0)
	for _, h := range list {
		b := &r.Program.Buffers[h.index]
		gap.add(h.from - last)
		length.add(h.to - h.from)
		label.add(int64(b.Label))
		address.add(b.Address)
		size.add(b.Bytes)
		filled.add(int64(r.Program.Commands[b.First].Kind))
		last = h.from
	}
	m.Gap, m.Length, m.Label, m.Address, m.Size, m.Filled = gap.String(), length.String(), label.String(), address.String(), size.String(), filled.String()
	return m
}

// join puts the variants of one configuration on one list of labels.
func (t timeline) join(c literature.Configuration, runs []recorded) (recordingConfiguration, error) {
	title := literature.NetworkTitle(c.Network)
	conf := recordingConfiguration{Name: c.Network, Title: title, Hardware: t.hardware, Batch: c.BatchSize, Unit: c.Unit}
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
		for i := range v.Queues {
			if err := rename(&v.Queues[i].Label); err != nil {
				return conf, err
			}
		}
		for i := range v.Memories {
			if err := rename(&v.Memories[i].Label); err != nil {
				return conf, err
			}
		}
		conf.Variants = append(conf.Variants, v)
	}
	return conf, nil
}

func (t timeline) report(list []literature.Configuration, spec *hardware.Spec, runs []recorded) (*harness.Report, error) {
	d := harness.NewDocument(t.experiment())
	rec := recording{Schema: recordingSchema, TickPs: timelineTickPs}
	type summary struct {
		Model    string      `json:"model"`
		Variant  string      `json:"variant"`
		Commands int         `json:"commands"`
		Buffers  int         `json:"buffers"`
		Row      harness.Row `json:"row"`
	}
	var rows []summary
	for i, c := range list {
		conf, err := t.join(c, runs[i*len(t.variants):(i+1)*len(t.variants)])
		if err != nil {
			return nil, err
		}
		rec.Configurations = append(rec.Configurations, conf)
		tab := harness.Table{Name: c.Network, Title: fmt.Sprintf("%s, batch %d on %s, one of %d clusters", conf.Title, conf.Batch, t.hardware, spec.Clusters), Columns: []harness.Column{
			{Name: "Variant", Text: true}, {Name: "Batches per\ncluster"}, {Name: "Latency\n(ms)"}, {Name: "Throughput\n(" + c.Unit + ")"}, {Name: "Energy\n(mJ)"}, {Name: "Kernels"}, {Name: "MME busy\n(%)"},
			{Group: "Moved (MB)", Name: "DDR"}, {Group: "Moved (MB)", Name: "LLB"}, {Group: "Moved (MB)", Name: "L1"},
			{Group: "Peak (KiB)", Name: "L1"}, {Group: "Peak (KiB)", Name: "LLB"}, {Group: "Recorded", Name: "commands", Screen: true}, {Group: "Recorded", Name: "buffers", Screen: true}}}
		mb := func(n int64) string { return harness.Significant(float64(n) / 1e6) }
		for _, v := range conf.Variants {
			s := summary{Model: c.Network, Variant: v.Name, Row: v.Row}
			for _, q := range v.Queues {
				s.Commands += q.Commands
			}
			for _, m := range v.Memories {
				s.Buffers += m.Buffers
			}
			rows = append(rows, s)
			r := v.Row
			tab.Rows = append(tab.Rows, []string{v.Name, harness.Count(r.BatchesPerCluster), harness.Fixed(1e3*r.LatencySeconds, 2), harness.Significant(r.ThroughputPerSecond), r.EnergyText(1), harness.Count(r.KernelsDynamic), harness.Percent(r.MMEBusyShare),
				mb(r.MovedBytes.DDR), mb(r.MovedBytes.LLB), mb(r.MovedBytes.L1), harness.Count(r.PeakL1CoreBytes >> 10), harness.Count(r.PeakLLBBytes >> 10), harness.Count(int64(s.Commands)), harness.Count(int64(s.Buffers))})
		}
		if err := d.Table(tab); err != nil {
			return nil, err
		}
	}
	d.Note("Batches per cluster are the paper's. All clusters do the same at the same time, so one is recorded: cluster 0, from the first command to the last. Bytes moved and kernels are of all clusters.")
	d.Note("%s holds every command and buffer, for the viewer of the report page; times are rounded to %d ns.", ViewerFile, timelineTickPs/1000)
	rep, err := d.Report(harness.Data{Data: rows})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ViewerFile, err)
	}
	rep.Files = append(rep.Files, harness.File{Name: ViewerFile, Data: append(data, '\n')})
	return rep, nil
}

// Experiment_timeline records schedules for the viewer.
func Experiment() harness.Experiment { return fullTimeline().experiment() }
