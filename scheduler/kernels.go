package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/schedule"
)

// Kernel is a layer with a product or an attention, simulated alone: its operands are where the schedule has them, and
// all clusters run it at the same time.
type Kernel struct {
	Layer  string `json:"layer"`
	Step   int    `json:"step"`  // the first that runs it
	Steps  int    `json:"steps"` // that are alike
	Form   string `json:"form"`  // attention, blocked or rows
	Chosen bool   `json:"chosen"`
	// Nest are the lines of the loops, those of the generator's rules if none were chosen; Cores take part.
	Nest    []string `json:"nest"`
	Cores   int64    `json:"cores"`
	Seconds float64  `json:"time_s"`
	Limit   string   `json:"limited_by"`
	Uses    []Use    `json:"uses"`
	// Buffers are the places in a core's L1 that the loops take turns in, with all rooms.
	Buffers  []Buffer `json:"buffers"`
	L1Bytes  int64    `json:"l1_room_bytes"` // for Buffers, beside what stays
	Accesses struct {
		L1  int64 `json:"l1"` // over all cores
		LLB int64 `json:"llb"`
		DDR int64 `json:"ddr"`
	} `json:"access_bytes"`
}

// Buffer is room for an operand.
type Buffer struct {
	Operand string `json:"operand"`
	Bytes   int64  `json:"bytes"`
}

// Kernels lists the kernels of a result's first schedule, in the order of their first steps.
func (r *Result) Kernels(ctx context.Context) ([]Kernel, error) {
	s := r.Schedule
	m, err := cost.New(s.Spec)
	if err != nil {
		return nil, err
	}
	var list []Kernel
	of := map[string]int{}
	for i := range s.Steps {
		st := &s.Steps[i]
		layer := schedule.LayerOf(s, st)
		if !s.Graph.OnMatrixUnit(s.Graph.Op(layer.Anchor)) {
			continue
		}
		key := kernelKey(s, i)
		if k, known := of[key]; known {
			list[k].Steps++
			continue
		}
		k := Kernel{Layer: layer.Name, Step: i, Steps: 1, Form: "rows", Chosen: st.Nest != nil, Cores: st.Active(),
			L1Bytes: s.Room(i)}
		n := st.Nest
		if n == nil {
			n = lower.LoopsOf(s, i, m).Rule
		}
		switch {
		case n.Attention != nil:
			k.Form = "attention"
		case n.Blocked():
			k.Form = "blocked"
		}
		text := *n
		if text.Cores == nil {
			text.Cores = st.Binding
		}
		k.Nest = strings.Split(strings.TrimSuffix(text.Text(s.Graph.Tensor(st.Output)), "\n"), "\n")
		for _, p := range s.Staged(st) {
			b := Buffer{Operand: "sums", Bytes: st.Space(p)}
			switch {
			case p.From >= 0:
				b.Operand = s.Graph.Tensor(s.Values[st.Reads[p.From].Value].Tensor).Name
			case p.To >= 0:
				b.Operand = s.Graph.Tensor(s.Values[p.To].Tensor).Name
			case n.Attention != nil:
				b.Operand = "scores, sums and constants"
			}
			if b.Bytes > 0 {
				k.Buffers = append(k.Buffers, b)
			}
		}
		plans := slices.Repeat([][]lower.Segment{{{Schedule: lower.StepAlone(s, i), Iterations: 1}}}, s.Spec.Clusters)
		p, err := lower.Program("step", s.Spec, plans, r.Lower)
		if err != nil {
			return nil, fmt.Errorf("%q alone: %w", layer.Name, err)
		}
		ran, err := sim.Run(ctx, p, sim.Options{})
		if err != nil {
			return nil, err
		}
		alone := &Result{Program: p, Sim: ran}
		k.Seconds, k.Limit, k.Uses = float64(ran.TotalPs)*1e-12, alone.LimitText(), alone.Uses()
		a := ran.Dynamic.AccessBytes
		k.Accesses.L1, k.Accesses.LLB, k.Accesses.DDR = a[isa.L1], a[isa.LLB], a[isa.DDR]
		of[key] = len(list)
		list = append(list, k)
	}
	return list, nil
}

// kernelKey is equal for steps whose kernels alone are alike.
func kernelKey(s *schedule.Schedule, i int) string {
	st := &s.Steps[i]
	b := stepShape(s, i)
	b.Add(st.StageBytes)
	for k := range st.Reads {
		r := &st.Reads[k]
		b.Add(int64(s.Values[r.Value].Level), r.NeedBytes, r.RemoteBytes, r.UnionBytes, r.CoreNeedBytes, r.CoreRemoteBytes)
	}
	for _, w := range st.Writes {
		b.Add(int64(s.Values[w].Level), s.Values[w].Bytes)
	}
	return string(b)
}
