// Package picture draws a simulated schedule: which unit worked on what and when. Colours are groups.
package picture

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// resolution is the number of stretches of time a chart can tell apart. Bars that are closer
// together become one, and peaks of stretches are drawn.
const resolution = 2000

// Kernel is one launch on a cluster, until the next.
type Kernel struct {
	Schedule *schedule.Schedule // of the segment that launches it
	Instance int                // of the schedule
	Number   int                // of its group in Groups
	Launch   int32              // command
	FromPs   int64
	ToPs     int64
}

// Group is the group of whose instance the kernel is.
func (k *Kernel) Group() *schedule.SubGraph {
	return k.Schedule.Grouping.Groups[k.Schedule.Instances.Instances[k.Instance].Group]
}

// Name returns the name of the kernel's instance, such as g1/0.
func (k *Kernel) Name() string {
	return fmt.Sprintf("%s/%d", k.Group().Name, k.Schedule.Instances.Instances[k.Instance].Index)
}

// Group is a group for a legend: its name, and its first and last operator.
type Group struct{ Name, Operators string }

// Groups lists all groups that run: those of the schedule, then those of chunks that are grouped otherwise, such as
// what is left of a share. from is the number of each schedule's first group.
func Groups(r *scheduler.Result) (list []Group, from map[*schedule.Schedule]int) {
	from = map[*schedule.Schedule]int{}
	all, seen := []*schedule.Schedule{r.Schedule}, []*schedule.Schedule(nil)
	for _, plan := range r.Plans {
		for _, seg := range plan {
			all = append(all, seg.Schedule)
		}
	}
	for _, s := range all {
		alike := func(a, b *schedule.SubGraph) bool { return slices.Equal(a.Ops, b.Ops) }
		if i := slices.IndexFunc(seen, func(t *schedule.Schedule) bool {
			return slices.EqualFunc(s.Grouping.Groups, t.Grouping.Groups, alike)
		}); i >= 0 {
			from[s] = from[seen[i]]
			continue
		}
		mark := ""
		if len(seen) > 0 {
			mark = " of the rest"
		}
		from[s], seen = len(list), append(seen, s)
		for _, sg := range s.Grouping.Groups {
			list = append(list, Group{sg.Name + mark, operators(s, sg)})
		}
	}
	return list, from
}

// Owners gives, for each command of a cluster, the number of its kernel in the list of
// kernels, and -1 for commands of other clusters. Commands belong to the launch behind
// which the generator issued them, although loads of weights may run ahead of it.
func Owners(r *scheduler.Result, cluster int) (owner []int, kernels []Kernel) {
	owner = make([]int, len(r.Program.Commands))
	_, from := Groups(r)
	var launched []Kernel // in the order of launches
	for _, seg := range r.Plans[cluster] {
		for range seg.Iterations {
			last := -1
			for i := range seg.Schedule.Steps {
				if inst := seg.Schedule.Steps[i].Instance; inst != last {
					launched, last = append(launched, Kernel{Schedule: seg.Schedule, Instance: inst}), inst
					launched[len(launched)-1].Number = from[seg.Schedule] + seg.Schedule.Instances.Instances[inst].Group
				}
			}
		}
	}
	for i := range r.Program.Commands {
		c := &r.Program.Commands[i]
		if int(r.Program.Queues[c.Queue].Cluster) != cluster {
			owner[i] = -1
			continue
		}
		if c.Kind == isa.Launch {
			if n := len(kernels); n > 0 {
				kernels[n-1].ToPs = r.Sim.Start[i]
			}
			kernels = append(kernels, launched[len(kernels)])
			kernels[len(kernels)-1].Launch, kernels[len(kernels)-1].FromPs = int32(i), r.Sim.Start[i]
		}
		owner[i] = len(kernels) - 1
		kernels[len(kernels)-1].ToPs = max(kernels[len(kernels)-1].ToPs, r.Sim.End[i])
	}
	for i := range kernels[:max(0, len(kernels)-1)] {
		kernels[i].ToPs = kernels[i+1].FromPs
	}
	return owner, kernels
}

// Cluster is the first that has work.
func Cluster(r *scheduler.Result) int {
	return slices.IndexFunc(r.Shares, func(n int64) bool { return n > 0 })
}

// Nearest is the memory that is filled with instances: on a machine whose clusters
// count as cores, the LLB is what the schedule calls the L1.
func Nearest(r *scheduler.Result) string {
	if r.Raised() {
		return isa.LLB.String()
	}
	return isa.L1.String()
}

func operators(s *schedule.Schedule, sg *schedule.SubGraph) string {
	first := short(s.Graph.Op(sg.Ops[0]).Name)
	if len(sg.Ops) == 1 {
		return first
	}
	return first + " .. " + short(s.Graph.Op(sg.Ops[len(sg.Ops)-1]).Name)
}

// short cuts the middle out of a long name.
func short(name string) string {
	const most = 20
	if r := []rune(name); len(r) > most {
		return string(r[:8]) + "…" + string(r[len(r)-11:])
	}
	return name
}

// Gantt draws what the queues of the first working cluster did.
func Gantt(r *scheduler.Result) (*plots.Figure, error) {
	end := r.Sim.TotalPs
	unit, per := "ms", 1e9
	if end < 1_000_000_000 {
		unit, per = "µs", 1e6
	}
	owner, kernels := Owners(r, Cluster(r))
	group := func(kernel int) int {
		return kernels[kernel].Number % plots.PaletteSize
	}
	time := func(ps int64) float64 { return float64(ps) / per }
	t := plots.Timeline{End: time(end),
		Title: fmt.Sprintf("%s on %s, %s, batch %d: cluster %d", r.Source, r.Machine.Name, r.Recipe.Name, r.Batch,
			Cluster(r))}

	row := plots.TimelineRow{Name: "kernel"}
	for i, k := range kernels {
		if k.FromPs < k.ToPs {
			row.Bars = append(row.Bars, plots.TimelineBar{Start: time(k.FromPs), End: time(k.ToPs), Colour: group(i),
				Pale: i%2 == 1, Text: k.Name()})
		}
	}
	t.Rows = append(t.Rows, row)
	gap := end / resolution
	for q := range r.Program.Queues {
		if int(r.Program.Queues[q].Cluster) != Cluster(r) || r.Sim.Queues[q].Commands == 0 {
			continue
		}
		if r.Program.Queues[q].LatencyOf != isa.OtherQueue {
			continue // latencies pass without a unit
		}
		row := plots.TimelineRow{Name: r.QueueWord(r.Program.Queues[q])}
		last := int64(0) // end of the last bar
		for i := range r.Program.Commands {
			if int(r.Program.Commands[i].Queue) != q {
				continue
			}
			lo, hi := r.Sim.Start[i], r.Sim.End[i]
			if lo >= hi {
				continue
			}
			colour := group(owner[i])
			if n := len(row.Bars); n > 0 && row.Bars[n-1].Colour == colour && lo-last <= gap {
				row.Bars[n-1].End = time(hi)
			} else {
				row.Bars = append(row.Bars, plots.TimelineBar{Start: time(lo), End: time(hi), Colour: colour})
			}
			last = hi
		}
		t.Rows = append(t.Rows, row)
	}
	for _, l := range []struct {
		level isa.Level
		name  string
	}{{isa.L1, Nearest(r) + " in use"}, {isa.LLB, isa.LLB.String() + " in use"}} {
		capacity := r.Program.Capacity[l.level]
		use := &r.Sim.Clusters[Cluster(r)].Memory[l.level]
		if capacity == 0 || len(use.Steps) == 0 {
			continue
		}
		row := plots.TimelineRow{Name: l.name}
		const bins = resolution / 2
		next := 0
		for b := range int64(bins) {
			lo, hi := end*b/bins, end*(b+1)/bins
			most := use.At(lo)
			for ; next < len(use.Steps) && use.Steps[next].Ps < hi; next++ {
				if use.Steps[next].Ps >= lo {
					most = max(most, use.Steps[next].Bytes)
				}
			}
			if most > 0 {
				row.Bars = append(row.Bars, plots.TimelineBar{Start: time(lo), End: time(hi), Colour: plots.PaletteSize - 1,
					Height: min(1, float64(most)/float64(capacity))})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	groups, _ := Groups(r)
	label := "Time (" + unit + ")"
	if len(groups) > plots.PaletteSize {
		groups, label = nil, label+"; a colour for each group, in turn"
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.Name+": "+g.Operators)
	}
	return plots.Gantt(t, label, names)
}
