package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/explain"
)

// scheduleJSON is the answer of `dsasched schedule`. Levels of memory are called l1
// (a core's buffer), llb (a cluster's) and ddr.
type scheduleJSON struct {
	Model    string  `json:"model"`
	Hardware string  `json:"hardware"`
	Level    string  `json:"level"` // that is filled with instances: lb or gb
	Variant  string  `json:"variant"`
	DType    string  `json:"dtype"`
	InPlace  bool    `json:"in_place"`
	Spill    string  `json:"spill"`
	Batch    int64   `json:"batch"`
	Shares   []int64 `json:"shares"` // of the batch, per cluster
	Chunk    int64   `json:"chunk"`  // of a share, at a time

	ThroughputS    float64 `json:"throughput_per_s"`
	LatencyS       float64 `json:"latency_s"` // of the batch
	LimitedBy      string  `json:"limited_by"`
	BoundS         float64 `json:"lower_bound_s"`   // that no execution of the program can beat
	MMEUtilization float64 `json:"mme_utilization"` // of the chip's peak
	VMEUtilization float64 `json:"vme_utilization"`
	MACs           int64   `json:"macs"`
	VectorOps      int64   `json:"vector_ops"`

	// Groups, order, joins and spills are of the first cluster's first chunk.
	Groups       []groupJSON      `json:"groups"`
	Order        orderJSON        `json:"order"`
	Joins        []joinJSON       `json:"joins"`
	Memory       memoryUseJSON    `json:"memory"`
	Spills       []spillJSON      `json:"spills"`
	Kernels      int64            `json:"kernels"` // launches in the program of a cluster
	Time         []timeJSON       `json:"time"`
	Commands     []commandJSON    `json:"commands"`
	Resources    []resourceJSON   `json:"resources"`
	TensorWrites tensorWritesJSON `json:"tensor_writes"`
	Traffic      trafficJSON      `json:"traffic"`
	Tuned        []trialJSON      `json:"tuned"` // chunks that were tried
	Notes        []string         `json:"notes"`
}

type groupJSON struct {
	Name        string  `json:"name"`
	SplitDim    *string `json:"split_dim"` // null: not split
	SplitIndex  *int    `json:"split_dim_index"`
	SplitFactor int64   `json:"split_factor"`
	Instances   int     `json:"instances"`
	FitsL1      bool    `json:"fits_l1"` // an instance, by Algorithm 1's count
	PeakBytes   int64   `json:"unsplit_peak_bytes"`
	Layers      int     `json:"layers"`
	// OutputLevels tells where the outputs of the instances are, after spilling.
	OutputLevels []string `json:"output_levels"`
	Ops          []string `json:"ops"`

	bindings []string
}

type orderJSON struct {
	Name       string              `json:"name"`
	Candidates []candidateJSON     `json:"candidates"`
	Instances  []orderInstanceJSON `json:"instances"`
}

type candidateJSON struct {
	Name          string  `json:"name"`
	Chosen        bool    `json:"chosen"`
	MovedBytes    int64   `json:"moved_bytes"`
	Utilization   float64 `json:"l1_utilization"`
	PeakBytes     int64   `json:"l1_peak_bytes"` // over the cores of a cluster
	OverflowBytes int64   `json:"l1_overflow_bytes"`
}

type orderInstanceJSON struct {
	Group   string  `json:"group"`
	Index   int64   `json:"index"`
	Binding []int64 `json:"binding"` // cores per dimension of the first output
	Scope   string  `json:"scope"`   // where the output is declared, before spilling

	group int
}

type joinJSON struct {
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	MovedBytes int64  `json:"moved_bytes"`
}

type memoryUseJSON struct {
	L1  levelUseJSON `json:"l1_per_core"`
	LLB levelUseJSON `json:"llb_per_cluster"`
}

type levelUseJSON struct {
	CapacityBytes int64   `json:"capacity_bytes"`
	PeakBytes     int64   `json:"peak_bytes"`
	MeanBytes     float64 `json:"mean_bytes"`
}

type spillJSON struct {
	Tensor   string `json:"tensor"`
	Group    string `json:"group,omitempty"` // "": a network input
	Instance int64  `json:"instance"`
	From     string `json:"from"`
	To       string `json:"to"`
	Bytes    int64  `json:"bytes"`
}

type timeJSON struct {
	Cluster  int     `json:"cluster"`
	ComputeS float64 `json:"compute_s"`
	MoveS    float64 `json:"move_s"`
	LaunchS  float64 `json:"launch_s"`
	IdleS    float64 `json:"idle_s"`
}

type commandJSON struct {
	Kind    string  `json:"kind"`
	Static  int64   `json:"static"`
	Dynamic int64   `json:"dynamic"`
	BusyS   float64 `json:"busy_s"` // of cluster 0: at least one such command ran
}

type resourceJSON struct {
	Name        string  `json:"name"`
	MovedBytes  int64   `json:"moved_bytes"`
	RateBytesS  int64   `json:"rate_bytes_per_s"`
	Utilization float64 `json:"utilization"`
}

// countsJSON is of cluster 0's program with the batch loop counted once, and of
// all that was executed.
type countsJSON struct {
	Static  int64 `json:"static"`
	Dynamic int64 `json:"dynamic"`
}

type tensorWritesJSON struct {
	DDR countsJSON `json:"ddr"`
	LLB countsJSON `json:"llb"`
	L1  countsJSON `json:"l1"`
}

type byteCountsJSON struct {
	Static  int64 `json:"static_bytes"`
	Dynamic int64 `json:"dynamic_bytes"`
}

// trafficJSON has each move at the farthest level that it touches.
type trafficJSON struct {
	DDR byteCountsJSON `json:"ddr"`
	LLB byteCountsJSON `json:"llb"`
	L1  byteCountsJSON `json:"l1"`
}

type trialJSON struct {
	Chunk       int64    `json:"chunk"`
	Chosen      bool     `json:"chosen"`
	ThroughputS *float64 `json:"throughput_per_s"` // null: failed
	Error       string   `json:"error,omitempty"`
}

func newSchedule() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "schedule MODEL",
		Short: "Schedule a network for an accelerator and simulate it",
		Long: `Schedule a network for an accelerator, simulate the result, and sum up both: the
groups of operators and how each is split into instances, the order of instances,
bindings to cores, memory, throughput, latency, and where the time goes.

The batch is divided over the clusters; a cluster works through its share in
chunks. --chunk 0 tries every divisor of a share and keeps the fastest. Groups,
order, joins and spills are those of one chunk on the first cluster.

-o writes the whole schedule, for 'dsasched check', 'simulate' and 'explain' and for
other programs (docs/file-formats.md). --trace, --gantt, --memory and --graph draw
it.

Words: LB (or L1) is a core's local buffer, GB (or LLB) the buffer that the cores
of a cluster share, DDR the off-chip memory. A dimension of an image is n, c, h or
w, of another tensor i0, i1, ... 'Static' counts are of one cluster's program with
the loop over chunks counted once, 'dynamic' ones of all that ran.

--variant names a choice for every decision; --group, --split, --outputs, --order,
--bind, --spill, --issue and --weights replace one each by another strategy.`,
		Example: `  dsasched schedule resnet50 --batch 4
  dsasched schedule bert-128 --batch 4 --variant tvm --json
  dsasched schedule ./net.onnx --hardware ./my-npu.yaml --spill largest-first
  dsasched schedule ./net.onnx --order search --bind search --batch 8
  dsasched schedule resnet50 --batch 8 -o resnet50.schedule.json --trace resnet50.trace.json
  dsasched schedule bert-128 --batch 4 --gantt units.svg --gantt-range 1ms:2ms --memory addresses.svg --graph bert.dot`,
		Args:              oneArg("MODEL", "give a name that 'dsasched models' lists, or the path of an ONNX file"),
		ValidArgsFunction: completeModel,
	}
	asJSON := addJSON(cmd)
	f := cmd.Flags()
	common := addScheduling(cmd, "tune")
	variants := addVariant(cmd)
	decisions := addDecisions(cmd)
	limit := f.Duration("time-limit", time.Minute, "time for each integer program, such as 60s")
	completeFlag(cmd, "time-limit", cobra.NoFileCompletions)
	quiet := addQuiet(cmd)
	f.BoolVar(&full, "full", false, "print all groups and the whole order, however long")
	out := f.StringP("out", "o", "", "write the whole schedule to this `file`")
	draw := addPictures(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Changed("out") && (*out == "" || *out == stdoutName) {
			return usagef("--out is %q, expected a file name", *out)
		}
		if network.IsFile(args[0]) && sameFile(args[0], *out) {
			return usagef("%s is the network itself: give -o another file", *out)
		}
		if err := draw.check(args[0]); err != nil {
			return err
		}
		spec, err := hardware.Load(common.accelerator)
		if err != nil {
			return err
		}
		v, err := scheduler.Lookup(variants.value)
		if err != nil {
			return err
		}
		if *limit <= 0 {
			return usagef("--time-limit is %v, expected more than 0s", *limit)
		}
		show := newStatus(cmd, *quiet)
		defer show.end()
		opt := scheduler.Options{InPlace: common.inPlace, Spill: graphturbo.LongestLifetime, Chunk: common.chunk.value, TimeLimit: *limit, Progress: show.decision()}
		if v, opt, err = decisions.apply(v, opt); err != nil {
			return err
		}
		from := common.network.options()
		r, err := scheduleOne(cmd.Context(), args[0], from, spec, common.batch.value, v, opt)
		if err != nil {
			return err
		}
		show.end()
		origin := schedulefile.Origin{MadeBy: madeBy, Model: args[0], DType: from.DType.String(), InPlace: opt.InPlace, Spill: string(opt.Spill)}
		if *out != "" {
			data, err := scheduler.File(r, origin).Write()
			if err != nil {
				return err
			}
			if err := replaceFile(*out, data); err != nil {
				return err
			}
		}
		if err := draw.draw(cmd.Context(), r); err != nil {
			return err
		}
		answer := describeResult(origin, r)
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) { answer.write(b, full) })
	}
	return cmd
}

// scheduleOne returns as soon as ctx ends. Not every stage looks at it; what is left
// running then has nothing to write and ends with the process.
func scheduleOne(ctx context.Context, name string, from network.Options, spec *hardware.Spec, batch int64, v scheduler.Recipe, opt scheduler.Options) (*scheduler.Result, error) {
	type outcome struct {
		result *scheduler.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		src, err := network.Open(name, from)
		if err != nil {
			done <- outcome{nil, err}
			return
		}
		r, err := scheduler.Run(ctx, src, spec, batch, v, opt)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// levelKey names a level as the paper and the tables of results do.
func levelKey(l schedule.Level) string {
	return [...]string{schedule.LB: "l1", schedule.GB: "llb", schedule.DDR: "ddr"}[l]
}

// levelText names a level as people read it beside the description of the
// hardware.
func levelText(key string) string {
	return map[string]string{"l1": "LB", "llb": "GB", "ddr": "DDR"}[key]
}

func describeResult(origin schedulefile.Origin, r *scheduler.Result) *scheduleJSON {
	s, sr := r.Schedule, r.Sim
	const ps = 1e-12
	a := &scheduleJSON{
		Model: origin.Model, Hardware: r.Machine.Name, Level: "lb", Variant: r.Recipe.Name, DType: origin.DType, InPlace: origin.InPlace, Spill: origin.Spill,
		Batch: r.Batch, Shares: r.Shares, Chunk: r.Chunk,
		ThroughputS: r.ThroughputPerSecond(), LatencyS: r.LatencySeconds(), LimitedBy: explain.Limit(r), BoundS: float64(sr.Bound.Ps()) * ps,
		MMEUtilization: sr.MACUtilization, VMEUtilization: sr.VectorUtilization, MACs: sr.MACs, VectorOps: sr.VectorOps,
		Groups: groupsOf(s), Order: orderOf(s), Joins: joinsOf(s), Spills: []spillJSON{},
		Kernels: sr.Static.Commands[isa.Launch],
		Time:    []timeJSON{}, Commands: []commandJSON{}, Resources: []resourceJSON{}, Tuned: []trialJSON{},
		Notes: append([]string{}, r.Notes...),
	}
	if r.Spec != r.Machine {
		a.Level = "gb"
	}
	a.Memory.L1.CapacityBytes = r.Program.Capacity[isa.LB]
	a.Memory.LLB.CapacityBytes = r.Program.Capacity[isa.GB]
	for i := range sr.Clusters {
		c := &sr.Clusters[i]
		a.Memory.L1.add(c.Memory[isa.LB].PeakBytes, c.Memory[isa.LB].MeanBytes)
		a.Memory.LLB.add(c.Memory[isa.GB].PeakBytes, c.Memory[isa.GB].MeanBytes)
		a.Time = append(a.Time, timeJSON{i, float64(c.Time.ComputePs) * ps, float64(c.Time.MovePs) * ps, float64(c.Time.LaunchPs) * ps, float64(c.Time.IdlePs) * ps})
	}
	for _, sp := range s.Spills {
		v := &s.Values[sp.Value]
		j := spillJSON{Tensor: s.Graph.Tensor(v.Tensor).Name, From: levelKey(sp.From), To: levelKey(sp.To), Bytes: sp.Bytes}
		if v.Instance >= 0 {
			inst := &s.Instances.Instances[v.Instance]
			j.Group, j.Instance = s.Grouping.Groups[inst.Group].Name, inst.Index
		}
		a.Spills = append(a.Spills, j)
	}
	for k := range isa.NumKinds {
		a.Commands = append(a.Commands, commandJSON{k.String(), sr.Static.Commands[k], sr.Dynamic.Commands[k], float64(sr.Clusters[0].KindPs[k]) * ps})
	}
	for i, res := range r.Program.Resources {
		a.Resources = append(a.Resources, resourceJSON{res.Name, sr.Resources[i].Bytes, res.BytesPerSecond, sr.Resources[i].Utilization})
	}
	for _, l := range []struct {
		level  isa.Level
		writes *countsJSON
		bytes  *byteCountsJSON
	}{
		{isa.DDR, &a.TensorWrites.DDR, &a.Traffic.DDR},
		{isa.GB, &a.TensorWrites.LLB, &a.Traffic.LLB},
		{isa.LB, &a.TensorWrites.L1, &a.Traffic.L1},
	} {
		*l.writes = countsJSON{sr.Static.TensorWrites[l.level], sr.Dynamic.TensorWrites[l.level]}
		*l.bytes = byteCountsJSON{sr.Static.LevelBytes[l.level], sr.Dynamic.LevelBytes[l.level]}
	}
	for _, t := range r.Tried {
		j := trialJSON{Chunk: t.Chunk, Chosen: t.Chunk == r.Chunk}
		if t.Err != nil {
			j.Error = oneLine(t.Err.Error())
		} else {
			j.ThroughputS = &t.ThroughputPerSecond
		}
		a.Tuned = append(a.Tuned, j)
	}
	return a
}

// add keeps the larger values; clusters differ if their shares do.
func (l *levelUseJSON) add(peak int64, mean float64) {
	l.PeakBytes = max(l.PeakBytes, peak)
	l.MeanBytes = max(l.MeanBytes, mean)
}

func groupsOf(s *schedule.Schedule) []groupJSON {
	g := s.Graph
	groups := make([]groupJSON, len(s.Grouping.Groups))
	for k, sg := range s.Grouping.Groups {
		j := &groups[k]
		j.Name, j.PeakBytes, j.Layers = sg.Name, sg.PeakBytes, len(s.Layers[k])
		j.SplitFactor = sg.Factor()
		j.FitsL1 = sg.Split.Factor != schedule.Unsplittable
		if d := sg.SplitDim(); d >= 0 {
			name := g.Tensor(sg.Outputs[0]).DimName(d)
			j.SplitDim, j.SplitIndex = &name, &d
		}
		for _, id := range sg.Ops {
			j.Ops = append(j.Ops, g.Op(id).Name)
		}
	}
	bindings := make([][]string, len(groups))
	for i := range s.Instances.Instances {
		k := s.Instances.Instances[i].Group
		groups[k].Instances++
		bindings[k] = addOnce(bindings[k], bindingName(g.Tensor(s.Grouping.Groups[k].Outputs[0]), s.Bindings[i]))
	}
	levels := make([][]schedule.Level, len(groups))
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 {
			continue
		}
		k := s.Instances.Instances[v.Instance].Group
		if slices.Contains(s.Grouping.Groups[k].Outputs, v.Tensor) {
			levels[k] = addOnce(levels[k], v.Level)
		}
	}
	for k := range groups {
		groups[k].bindings = bindings[k]
		slices.Sort(levels[k])
		groups[k].OutputLevels = []string{}
		for _, l := range levels[k] {
			groups[k].OutputLevels = append(groups[k].OutputLevels, levelKey(l))
		}
	}
	return groups
}

func addOnce[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// bindingName writes the dimensions that are spread over cores: "n:4 h:2".
func bindingName(t *model.Tensor, b schedule.Binding) string {
	var parts []string
	for d, cores := range b {
		if cores > 1 {
			parts = append(parts, fmt.Sprintf("%s:%d", t.DimName(d), cores))
		}
	}
	if len(parts) == 0 {
		return "one core"
	}
	return strings.Join(parts, " ")
}

func orderOf(s *schedule.Schedule) orderJSON {
	o := orderJSON{Name: s.OrderName, Candidates: []candidateJSON{}, Instances: []orderInstanceJSON{}}
	for _, c := range s.Costs {
		o.Candidates = append(o.Candidates, candidateJSON{c.Name, c.Name == s.OrderName,
			c.Cost.MovedBytes, c.Cost.Utilization, c.Cost.PeakBytes, c.Cost.OverflowBytes})
	}
	for _, i := range s.Order {
		inst := &s.Instances.Instances[i]
		o.Instances = append(o.Instances, orderInstanceJSON{s.Grouping.Groups[inst.Group].Name, inst.Index,
			append([]int64{}, s.Bindings[i]...), levelKey(s.Scopes[i]), inst.Group})
	}
	return o
}

func joinsOf(s *schedule.Schedule) []joinJSON {
	joins := []joinJSON{}
	for _, kind := range []schedule.JoinKind{schedule.Concat, schedule.SplitOp, schedule.Copy, schedule.Redistribute} {
		j := joinJSON{Kind: string(kind)}
		for _, x := range s.Joins {
			if x.Kind == kind {
				j.Count++
				j.MovedBytes += x.Bytes
			}
		}
		joins = append(joins, j)
	}
	return joins
}

// What fits a screen; --full lifts it.
const (
	groupRows  = 6
	orderLines = 3
	nameWidth  = 12 // of an operator
)

func (a *scheduleJSON) write(b *bytes.Buffer, full bool) {
	row(b, "schedule", "%s (%s) on %s, batch %d, variant %s", a.Model, a.DType, a.Hardware, a.Batch, a.Variant)
	if a.Level == "gb" {
		row(b, "level", "GB: a cluster counts as a core, and its GB as the LB")
	}
	row(b, "throughput", "%s", perSecond(a.ThroughputS))
	row(b, "latency", "%s for the batch; this program can't take less than %s", duration(a.LatencyS), duration(a.BoundS))
	rowWrapped(b, "limited by", a.LimitedBy)
	row(b, "utilisation", "matrix %s, vector %s of peak; DDR bandwidth %s", percent(a.MMEUtilization), percent(a.VMEUtilization), percent(a.Resources[0].Utilization))
	t := a.Time[0]
	row(b, "time", "compute %s, else moves %s, launches %s, idle %s",
		percent(t.ComputeS/a.LatencyS), percent(t.MoveS/a.LatencyS), percent(t.LaunchS/a.LatencyS), percent(t.IdleS/a.LatencyS))
	var busy []string
	for _, c := range a.Commands {
		if c.BusyS/a.LatencyS >= 0.0005 { // would not round to zero
			busy = append(busy, c.Kind+" "+percent(c.BusyS/a.LatencyS))
		}
	}
	rowOf(b, "busy", busy)
	row(b, "batch", "%s, in chunks of %d", sharesText(a.Shares), a.Chunk)
	var tuned []string
	for _, t := range a.Tuned {
		text := fmt.Sprintf("%d: fails", t.Chunk)
		if t.ThroughputS != nil {
			text = fmt.Sprintf("%d: %s", t.Chunk, perSecond(*t.ThroughputS))
		}
		if t.Chosen {
			text += " (kept)"
		}
		tuned = append(tuned, text)
	}
	if len(tuned) > 0 {
		rowOf(b, "tuned chunk", tuned)
	}
	launches := a.Commands[isa.Launch]
	text := fmt.Sprintf("%d launches", launches.Static)
	if launches.Static == 1 {
		text = "1 launch"
	}
	row(b, "kernels", "%s in a cluster's program, %d executed", text, launches.Dynamic)
	for _, n := range a.Notes {
		rowWrapped(b, "note", n)
	}

	fmt.Fprintf(b, "\n%s, %s\n", plural(len(a.Groups), "group"), plural(len(a.Order.Instances), "instance"))
	a.writeGroups(b, full)

	fmt.Fprintf(b, "\nOrder: %s (groups by number; 2*0: two of group 0 in a row)\n", a.Order.Name)
	lines := orderLines
	if full {
		lines = len(a.Order.Instances) + 1
	}
	b.WriteString(wrap(strip(a.Order.Instances), " ", lineWidth, lines))
	if len(a.Order.Candidates) > 0 {
		var rows [][]string
		for _, c := range a.Order.Candidates {
			mark := ""
			if c.Chosen {
				mark = "chosen"
			}
			rows = append(rows, []string{c.Name, size(c.MovedBytes), percent(c.Utilization), size(c.PeakBytes), mark})
		}
		writeTable(b, "lrrrl", []string{"order", "moved", "LB utilisation", "LB peak, all cores", ""}, rows)
	}

	b.WriteByte('\n')
	var joins []string
	for _, j := range a.Joins {
		text := fmt.Sprintf("%s %d", j.Kind, j.Count)
		if j.MovedBytes > 0 {
			text += " (" + size(j.MovedBytes) + ")"
		}
		joins = append(joins, text)
	}
	rowOf(b, "joins", joins)
	row(b, "LB", "%s", a.Memory.L1.text("core"))
	row(b, "GB", "%s", a.Memory.LLB.text("cluster"))
	row(b, "spills", "%s", a.spillText())

	b.WriteByte('\n')
	counts := func(c countsJSON) []string { return []string{fmt.Sprint(c.Static), fmt.Sprint(c.Dynamic)} }
	moved := func(c byteCountsJSON) string { return size(c.Dynamic) }
	writeTable(b, "lrrr", []string{"", "tensor writes: static", "dynamic", "bytes moved"}, [][]string{
		append(append([]string{"DDR"}, counts(a.TensorWrites.DDR)...), moved(a.Traffic.DDR)),
		append(append([]string{"GB (LLB)"}, counts(a.TensorWrites.LLB)...), moved(a.Traffic.LLB)),
		append(append([]string{"LB (L1)"}, counts(a.TensorWrites.L1)...), moved(a.Traffic.L1)),
	})
}

func (a *scheduleJSON) writeGroups(b *bytes.Buffer, full bool) {
	var rows [][]string
	skip := len(a.Groups) - groupRows
	for k, g := range a.Groups {
		// The first two thirds and the last third are shown.
		if head := groupRows * 2 / 3; !full && skip > 0 && k >= head && k < head+skip {
			if k == head {
				rows = append(rows, []string{"...", fmt.Sprintf("%d more: --full shows them", skip), "", "", "", "", ""})
			}
			continue
		}
		split := "-"
		if g.SplitDim != nil {
			split = fmt.Sprintf("%s in %d", *g.SplitDim, g.SplitFactor)
		}
		ops := shorten(g.Ops[0], nameWidth)
		if n := len(g.Ops); n > 1 {
			ops += " .. " + shorten(g.Ops[n-1], nameWidth)
		}
		var levels []string
		for _, l := range g.OutputLevels {
			levels = append(levels, levelText(l))
		}
		cores := g.bindings[0]
		if len(g.bindings) > 1 && full {
			cores = strings.Join(g.bindings, " or ")
		} else if len(g.bindings) > 1 {
			cores += " .."
		}
		if !g.FitsL1 {
			split = "too big"
		}
		rows = append(rows, []string{g.Name, ops, fmt.Sprint(len(g.Ops)), split, fmt.Sprint(g.Instances), cores, strings.Join(levels, ", ")})
	}
	writeTable(b, "llrlrll", []string{"name", "operators", "ops", "split", "inst.", "cores", "output"}, rows)
}

func (l levelUseJSON) text(per string) string {
	if l.CapacityBytes == 0 {
		return "none"
	}
	return fmt.Sprintf("peak %s of %s per %s (%s), mean %s", size(l.PeakBytes), size(l.CapacityBytes), per,
		percent(float64(l.PeakBytes)/float64(l.CapacityBytes)), size(int64(l.MeanBytes)))
}

func (a *scheduleJSON) spillText() string {
	if len(a.Spills) == 0 {
		return "none"
	}
	type way struct{ from, to string }
	var parts []string
	for _, w := range []way{{"l1", "llb"}, {"l1", "ddr"}, {"llb", "ddr"}} {
		n, sum := 0, int64(0)
		for _, s := range a.Spills {
			if (way{s.From, s.To}) == w {
				n++
				sum += s.Bytes
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d from %s to %s (%s)", n, levelText(w.from), levelText(w.to), size(sum)))
		}
	}
	return strings.Join(parts, ", ")
}

// sharesText says how many batch elements the clusters get: "2 on 3 clusters, 1 on
// 1 cluster".
func sharesText(shares []int64) string {
	var parts []string
	for i := 0; i < len(shares); {
		j := i
		for j < len(shares) && shares[j] == shares[i] {
			j++
		}
		parts = append(parts, fmt.Sprintf("%d on %s", shares[i], plural(j-i, "cluster")))
		i = j
	}
	return strings.Join(parts, ", ")
}

// strip writes an order as the groups of its instances: "2*0 1" for two instances
// of group 0 and one of group 1, "3-7" for one each of groups 3 to 7.
func strip(order []orderInstanceJSON) []string {
	type run struct{ group, times int }
	var list []run
	for _, i := range order {
		if n := len(list); n > 0 && list[n-1].group == i.group {
			list[n-1].times++
		} else {
			list = append(list, run{i.group, 1})
		}
	}
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[i].times == list[j+1].times && list[j+1].group == list[j].group+1 {
			j++
		}
		word := fmt.Sprint(list[i].group)
		if j-i >= 2 {
			word += fmt.Sprintf("-%d", list[j].group)
		} else {
			j = i
		}
		if list[i].times > 1 {
			word = fmt.Sprintf("%d*%s", list[i].times, word)
		}
		words = append(words, word)
		i = j + 1
	}
	return words
}
