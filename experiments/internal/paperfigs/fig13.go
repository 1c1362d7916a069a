package paperfigs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// crossing shows two blocks of one kernel on the units and DMA queues of a cluster
// (§4.4, Fig. 13), with and without scheduling across layers.
type crossing struct {
	hardware   string
	model      string
	perCluster int64
	group      int // whose instance is shown
	index      int64
	blocks     [2]string
	variants   []string
}

func fig13() crossing {
	return crossing{"stcp920", "resnet50", 16, 1, 0, [2]string{"stage2.block1", "stage2.block2"},
		[]string{"ordering", "cross-layer+issue=cross-layer", "cross-layer"}}
}

func (f crossing) experiment() harness.Experiment {
	return harness.Experiment{
		Name:        "fig13",
		Description: "two blocks on the units and DMA queues, without scheduling across layers, of loads, and of units",
		Paper:       "GraphTurbo (OSDI 2023), §4.4 and Fig. 13",
		Plan:        f.plan,
	}
}

// crossRun is the activity of cluster 0 while the two blocks ran.
type crossRun struct {
	Variant string `json:"variant"`
	// Times are from the start of the first block's first command; loads from the DDR do
	// not count, which run ahead of their kernel.
	Seconds float64 `json:"s"`
	// Advance is from the end of the units' work in front of the blocks to the end of the
	// blocks: what they cost, wherever their loads ran.
	Advance float64 `json:"advance_s"`
	// Overlap begins with the second block's first command on a unit and ends with the
	// first block's last, if it comes later.
	OverlapStart float64 `json:"overlap_start_s"`
	OverlapEnd   float64 `json:"overlap_end_s"`
	// LayersAtOnce is the time in which commands of two or more of the blocks' layers
	// ran, UnitsAtOnce that in which two or more compute units did, on layers that differ.
	LayersAtOnce float64        `json:"two_layers_s"`
	UnitsAtOnce  float64        `json:"two_units_on_two_layers_s"`
	MatrixBusy   float64        `json:"matrix_busy_s"`
	VectorBusy   float64        `json:"vector_busy_s"`
	Commands     []crossCommand `json:"commands"`
	Latency      float64        `json:"latency_s"` // of the whole batch
}

type crossCommand struct {
	Queue string  `json:"queue"`
	Kind  string  `json:"kind"`
	Layer string  `json:"layer"`
	Block int     `json:"block"` // 0, 1; 2: any other
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
}

func (f crossing) explain(_ context.Context, r *scheduler.Result) (any, error) {
	w, err := f.window(r)
	if err != nil {
		return nil, err
	}
	run := crossRun{Variant: r.Recipe.Name, Latency: harness.Round(r.LatencySeconds()),
		Seconds: seconds(w.last - w.first), Advance: seconds(w.last - w.before),
		OverlapStart: seconds(w.secondStart - w.first), OverlapEnd: seconds(w.firstEnd - w.first)}
	f.busy(r, w, &run)
	return run, nil
}

func seconds(ps int64) float64 { return harness.Round(float64(ps) * 1e-12) }

// blockIndex is which of the two blocks a label is of; 2: any other.
func (f crossing) blockIndex(label string) int {
	for b, name := range f.blocks {
		if strings.HasPrefix(label, name+".") {
			return b
		}
	}
	return len(f.blocks)
}

// crossWindow is the time of the two blocks, in picoseconds: from the first to the last of
// their commands in one kernel.
type crossWindow struct {
	first, last int64
	before      int64 // the end of the units' work in front of them
	secondStart int64 // of the second block's first command
	firstEnd    int64 // of the first block's last command
}

// window finds it. Loads from the DDR run ahead of their kernel and do not count.
func (f crossing) window(r *scheduler.Result) (crossWindow, error) {
	w := crossWindow{first: -1, secondStart: -1}
	kernel := slices.IndexFunc(r.Schedule.Order, func(id int) bool {
		inst := &r.Schedule.Instances.Instances[id]
		return inst.Group == f.group && inst.Index == f.index
	})
	if kernel < 0 {
		return w, fmt.Errorf("%s has no instance %d of sub-graph %d", r.Source, f.index, f.group)
	}
	seen := -1
	for i := range r.Program.Commands {
		c := &r.Program.Commands[i]
		if r.Program.Queues[c.Queue].Cluster != 0 || c.Iteration != 0 {
			continue
		}
		if c.Kind == isa.Launch {
			seen++
		}
		b := f.blockIndex(r.Program.Labels[c.Label])
		if w.first < 0 && c.Kind.IsCompute() && b == len(f.blocks) {
			w.before = max(w.before, r.Sim.End[i])
		}
		if seen != kernel || b == len(f.blocks) || c.Kind == isa.DDRLoad || c.Kind == isa.Barrier {
			continue
		}
		if w.first < 0 || r.Sim.Start[i] < w.first {
			w.first = r.Sim.Start[i]
		}
		w.last = max(w.last, r.Sim.End[i])
		if b == 1 && (w.secondStart < 0 || r.Sim.Start[i] < w.secondStart) {
			w.secondStart = r.Sim.Start[i]
		}
		if b == 0 {
			w.firstEnd = max(w.firstEnd, r.Sim.End[i])
		}
	}
	if w.first < 0 || w.secondStart < 0 {
		return w, fmt.Errorf("%s: kernel %d has no commands of %s and %s", r.Source, kernel, f.blocks[0], f.blocks[1])
	}
	return w, nil
}

// moment is the start or the end of a command.
type moment struct {
	ps    int64
	ends  bool
	index int
}

// busy lists the commands in the window, and adds up for how long layers and units were busy at once.
func (f crossing) busy(r *scheduler.Result, w crossWindow, run *crossRun) {
	var moments []moment
	for i := range r.Program.Commands {
		c := &r.Program.Commands[i]
		q := &r.Program.Queues[c.Queue]
		start, end := max(r.Sim.Start[i], w.first), min(r.Sim.End[i], w.last)
		if q.Cluster != 0 || end <= start || c.Kind == isa.Barrier || c.Kind == isa.Launch {
			continue
		}
		label := r.Program.Labels[c.Label]
		run.Commands = append(run.Commands,
			crossCommand{Queue: strings.TrimPrefix(q.Name, "cluster0."), Kind: c.Kind.String(), Layer: label,
				Block: f.blockIndex(label), Start: seconds(start - w.first), End: seconds(end - w.first)})
		moments = append(moments, moment{start, false, i}, moment{end, true, i})
	}
	slices.SortStableFunc(moments,
		func(a, b moment) int { return cmp.Or(cmp.Compare(a.ps, b.ps), cmp.Compare(a.index, b.index)) })
	running := map[int32]int{}          // commands by layer, of the two blocks
	units := map[isa.Kind]int32{}       // layer on each compute unit
	count := map[isa.Kind]int{}         // commands of each kind
	var layers, compute, mme, vme int64 // times
	now := w.first
	for _, m := range moments {
		d := m.ps - now
		now = m.ps
		if len(running) > 1 {
			layers += d
		}
		if count[isa.Matrix] > 0 {
			mme += d
		}
		if count[isa.Vector]+count[isa.Special] > 0 {
			vme += d
		}
		if count[isa.Matrix] > 0 && count[isa.Vector] > 0 && units[isa.Matrix] != units[isa.Vector] {
			compute += d
		}
		c := &r.Program.Commands[m.index]
		if m.ends {
			count[c.Kind]--
		} else {
			count[c.Kind]++
			units[c.Kind] = c.Label
		}
		if f.blockIndex(r.Program.Labels[c.Label]) == len(f.blocks) {
			continue
		}
		if !m.ends {
			running[c.Label]++
		} else if running[c.Label]--; running[c.Label] == 0 {
			delete(running, c.Label)
		}
	}
	run.LayersAtOnce, run.UnitsAtOnce, run.MatrixBusy, run.VectorBusy = seconds(layers), seconds(compute),
		seconds(mme), seconds(vme)
}

func (f crossing) plan() (*harness.Plan, error) {
	p := &harness.Plan{Report: harness.Of(f.report)}
	for _, name := range f.variants {
		base, issue, replaced := strings.Cut(name, "+issue=")
		var picks []scheduler.Pick
		if replaced {
			picks = []scheduler.Pick{{Stage: "issue", Strategy: issue}}
		}
		cell := literature.Scheduled(f.hardware, f.model, f.perCluster, base, picks...)
		cell.Variant.Name = name
		p.Cells = append(p.Cells, cell.Cell("blocks-"+name, f.explain))
	}
	return p, nil
}

// crossRows are the queues that the figure shows, and what they are to people.
var crossRows = []struct{ queue, name string }{
	{"mme", "MME"}, {"vme", "VME"}, {"special", "vector core"}, {"lb.in", "LLB to L1"}, {"lb.out", "L1 to L1, LLB"},
	{"ddr.load", "DDR to LLB"}, {"ddr.store", "LLB to DDR"},
}

func (f crossing) report(runs []crossRun) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	us := func(s float64) string { return harness.Fixed(1e6*s, 2) }
	t := harness.Table{Name: "blocks", Title: fmt.Sprintf("%s and %s in kernel %s of %s, %d images per cluster",
		f.blocks[0], f.blocks[1], instanceName(f.group, f.index), f.model, f.perCluster), Columns: harness.Columns("<Variant",
		"Time (µs)|both blocks|added by\nthem|blocks\noverlap|two layers\nat once|two units on\ntwo layers",
		"Busy (%)|MME|VME")}
	type row struct {
		Variant string `json:"variant"`
		crossCommand
	}
	var commands []row
	for i, r := range runs {
		t.Add(titles[i], us(r.Seconds), us(r.Advance), us(max(0, r.OverlapEnd-r.OverlapStart)), us(r.LayersAtOnce),
			us(r.UnitsAtOnce), harness.Percent(r.MatrixBusy/r.Seconds), harness.Percent(r.VectorBusy/r.Seconds))
		for _, c := range r.Commands {
			commands = append(commands, row{r.Variant, c})
		}
	}
	d.Table(t)
	d.File("commands.csv", harness.CSV(commands, harness.Fields[row]("variant queue kind layer block start_s end_s")))
	without, with, units := runs[0], runs[1], runs[2]
	d.Claim("Loads of a layer hidden behind an earlier layer", "yes, across layers and blocks",
		fmt.Sprintf("two layers at once for %s of %s µs (without: %s of %s)",
			us(with.LayersAtOnce), us(with.Seconds), us(without.LayersAtOnce), us(without.Seconds)),
		harness.Agreement(with.LayersAtOnce > without.LayersAtOnce))
	d.Given() // variant 4 is defined by this overlap, and by that of the next claim
	d.Claim("Both blocks under way at once (between the lines)", "yes", fmt.Sprintf("for %s µs (without: %s)",
		us(max(0, with.OverlapEnd-with.OverlapStart)), us(max(0, without.OverlapEnd-without.OverlapStart))),
		harness.Agreement(with.OverlapEnd > with.OverlapStart && without.OverlapEnd <= without.OverlapStart))
	d.Given()
	d.Claim("Compute units on different layers at once", "yes", fmt.Sprintf("for %s µs",
		us(units.UnitsAtOnce)), harness.Agreement(units.UnitsAtOnce > 0))
	if units.UnitsAtOnce == 0 {
		d.Cause("weights pass by all rows of a tile here, so that ResNet-50's units have no part of a layer to begin on")
		d.Why("each tile of weights passes by all rows here, and a convolution needs all channels of the layer in front; where rows pass in pieces, as in DenseNet, units work on two layers")
	}
	d.Claim("Gain of these blocks", "not given", fmt.Sprintf("%s×, %s× with units on two layers",
		harness.Fixed(without.Advance/with.Advance, 2), harness.Fixed(without.Advance/units.Advance, 2)), "–")
	gain := without.Latency / units.Latency
	d.Number("gain of the network by scheduling across layers", "x", literature.MeanCross.Value, gain)
	d.Why("the published figure is the mean over ten networks (Fig. 15), for which fig15 has ours")
	d.Given()
	d.Note("Added is the time from the end of the units' work in front of the blocks to the end of the blocks.")
	d.Note("Variant 4 begins a layer on a unit when the parts of its inputs that the first tile needs are complete, on its core and on others; without units on two layers, when all inputs are. The latter is the recipe cross-layer (`schedule --variant`), on which the bound of `best` and `certify` rests.")
	d.Note("Loads from the DDR in this time are for these blocks or, in variant 4, for later layers.")
	d.Note("In variant 3 units and loads of one layer overlap tile by tile, and a barrier stands between layers.")
	var list []plots.Timeline
	rows := func(queue string) bool {
		return slices.ContainsFunc(runs, func(r crossRun) bool {
			return slices.ContainsFunc(r.Commands, func(c crossCommand) bool { return c.Queue == queue })
		})
	}
	for i, r := range runs {
		tl := plots.Timeline{Title: fmt.Sprintf("%s: %s µs added by the blocks", titles[i], us(r.Advance))}
		// layers in turn are darker and paler.
		var layers [len(crossColours)][]string
		for _, row := range crossRows {
			if !rows(row.queue) {
				continue
			}
			line := plots.TimelineRow{Name: row.name}
			for _, c := range r.Commands {
				if c.Queue != row.queue {
					continue
				}
				if !slices.Contains(layers[c.Block], c.Layer) {
					layers[c.Block] = append(layers[c.Block], c.Layer)
				}
				line.Bars = append(line.Bars, plots.TimelineBar{Start: 1e6 * c.Start, End: 1e6 * c.End,
					Colour: crossColours[c.Block], Pale: slices.Index(layers[c.Block], c.Layer)%2 == 1})
			}
			tl.Rows = append(tl.Rows, line)
		}
		tl.Lines = []plots.TimelineMark{{At: 1e6 * min(r.OverlapStart, r.OverlapEnd)},
			{At: 1e6 * max(r.OverlapStart, r.OverlapEnd)}}
		alike := func(other plots.Timeline) bool { return reflect.DeepEqual(other.Rows, tl.Rows) }
		if k := slices.IndexFunc(list, alike); k >= 0 {
			list[k].Title = tl.Title // of both
		} else {
			list = append(list, tl)
		}
	}
	for k := range list {
		list[k].Title = fmt.Sprintf("(%c) %s", 'a'+k, list[k].Title)
	}
	fig, err := plots.Timelines(list, "Time (µs); layers in turn dark and pale\ndashed: the second block begins, the first ends", 13, append(f.blocks[:], "other layers"))
	d.Figure("gantt", "Units and DMA queues while two blocks run", fig, err)
	return d.Report(harness.Data{Data: runs})
}

// crossColours are the colours of the first and the second block and of all else.
var crossColours = [3]int{0, 1, 2}

// titles say for people what runs.
var titles = []string{"variant 3", "variant 4 without units on two layers", "variant 4"}

// Fig13 issues instructions across layers.
func Fig13() harness.Experiment { return fig13().experiment() }
