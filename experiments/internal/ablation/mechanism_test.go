package ablation

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
)

// fakeRows are those of one network and policy with these throughputs, in the order
// of the paper's variants.
func fakeRows(model string, policy harness.ChunkPolicy, batch int64, unit string,
	throughputs ...float64) []harness.Row {
	var rows []harness.Row
	for i, x := range throughputs {
		latency := float64(batch) / x
		r := harness.Row{
			Model: model, Hardware: "stcp920", Batch: batch, Variant: []string{"tvm", "llb", "l1", "ordering", "cross-layer"}[i],
			ChunkPolicy: policy, BatchesPerCluster: []int64{2, 16, 16, 16, 16}[i], Unit: unit,
			ThroughputPerSecond: harness.Round(x), LatencySeconds: harness.Round(latency),
			LowerBoundSeconds: harness.Round(0.9 * latency),
			Kernels:           []int64{57, 8, 8, 31, 31}[i], KernelsDynamic: []int64{1824, 64, 64, 124, 124}[i],
			Writes: []harness.Levels{{DDR: 57, LLB: 0, L1: 0}, {DDR: 1, LLB: 56, L1: 0}, {DDR: 1, LLB: 0, L1: 56},
				{DDR: 1, LLB: 3, L1: 406}, {DDR: 1, LLB: 3, L1: 406}}[i],
			WritesDynamic: []harness.Levels{{DDR: 1824, LLB: 0, L1: 0}, {DDR: 64, LLB: 3584, L1: 0}, {DDR: 64, LLB: 0, L1: 3584},
				{DDR: 4, LLB: 12, L1: 1624}, {DDR: 4, LLB: 12, L1: 1624}}[i],
			MovedBytes: harness.Levels{DDR: int64(1e9) / int64(i+1), LLB: 2e9, L1: 3e8}, PeakLLBBytes: 8 << 20,
			PeakL1CoreBytes: 1 << 20,
			MMEUtilization:  0.1 * float64(i+1), VMEUtilization: 0.025 * float64(i+1), MMEBusyShare: 0.11 * float64(i+1),
			VMEBusyShare: 0.03 * float64(i+1),
			Time: harness.TimeLost{ComputeSeconds: harness.Round(0.125 * latency), MoveSeconds: harness.Round(0.75 * latency),
				LaunchSeconds: harness.Round(0.125 * latency)},
		}
		if policy == harness.Tuned {
			r.Tried = []harness.Trial{{BatchesPerCluster: 1, ThroughputPerSecond: harness.Round(x / 2)},
				{BatchesPerCluster: r.BatchesPerCluster, ThroughputPerSecond: harness.Round(x)},
				{BatchesPerCluster: 32, Error: "tensor x is 12 bytes too large, with a comma"}}
		}
		rows = append(rows, r)
	}
	return rows
}

func TestMechanism(t *testing.T) {
	for _, test := range []struct {
		name        string
		throughputs []float64
		change      func(rows []harness.Row)
		fall        bool
		helps       []bool
		want        string
	}{
		{
			name: "as predicted", throughputs: []float64{1000, 1010, 3000, 6000, 9000}, fall: true,
			helps: []bool{true, true, true, true},
			want: "resnet50 (best batches per cluster): DDR tensor writes fall from 57 in 57 kernels (tvm) to 1 per inference (cross-layer, 31 kernels). " +
				"Every step helps: llb 1.010× (barely), l1 2.97×, ordering 2.00×, cross-layer 1.50×.",
		},
		{
			name: "one step does not help", throughputs: []float64{1000, 2000, 1600, 6000, 9000}, fall: true,
			helps: []bool{true, false, true, true},
			want: "resnet50 (best batches per cluster): DDR tensor writes fall from 57 in 57 kernels (tvm) to 1 per inference (cross-layer, 31 kernels). " +
				"NOT every step helps: l1 over llb is 0.800× (the time spent waiting for moves goes from 24.0 to 30.0 ms); the others do: llb 2.00×, ordering 3.75×, cross-layer 1.50×.",
		},
		{
			name: "nothing changes", throughputs: []float64{1000, 1000}, fall: true, helps: []bool{false},
			want: "resnet50 (best batches per cluster): DDR tensor writes fall from 57 in 57 kernels (tvm) to 1 per inference (llb, 8 kernels). " +
				"NO step helps: llb over tvm is 1.000× (all parts of the time stay as they are).",
		},
		{
			name: "the writes stay", throughputs: []float64{1000, 2000}, fall: false, helps: []bool{true},
			change: func(rows []harness.Row) { rows[1].Writes.DDR = 50; rows[1].Kernels = 1 },
			want: "resnet50 (best batches per cluster): DDR tensor writes do NOT fall as predicted, but go from 57 in 57 kernels (tvm) to 50 per inference (llb, 1 kernel). " +
				"Every step helps: llb 2.00×.",
		},
		{
			name: "the baseline is none", throughputs: []float64{1000, 2000}, fall: false, helps: []bool{true},
			change: func(rows []harness.Row) { rows[0].Writes.DDR = 20 },
			want: "resnet50 (best batches per cluster): DDR tensor writes do NOT fall as predicted, but go from 20 in 57 kernels (tvm) to 1 per inference (llb, 8 kernels). " +
				"Every step helps: llb 2.00×.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows := fakeRows("resnet50", harness.Tuned, 64, "images/s", test.throughputs...)
			if test.change != nil {
				test.change(rows)
			}
			list := CheckMechanism(rows)
			if len(list) != 1 {
				t.Fatalf("%d results, want 1", len(list))
			}
			m := list[0]
			if m.WritesFall != test.fall {
				t.Errorf("WritesFall is %v, want %v", m.WritesFall, test.fall)
			}
			for i, s := range m.Steps {
				if s.Helps() != test.helps[i] {
					t.Errorf("step %d helps: %v, want %v", i, s.Helps(), test.helps[i])
				}
			}
			if m.String() != test.want {
				t.Errorf("it says\n%s\nwant\n%s", m, test.want)
			}
		})
	}
}

func TestMechanismKeepsNetworksApart(t *testing.T) {
	a := fakeRows("a", harness.Tuned, 64, "images/s", 1000, 2000)
	b := fakeRows("b", harness.Tuned, 64, "images/s", 1000, 500)
	p := fakeRows("a", harness.PaperChunks, 64, "images/s", 1000, 3000)
	// Interleaved: the order of the rows of one network is what counts.
	list := CheckMechanism([]harness.Row{a[0], b[0], p[0], a[1], b[1], p[1]})
	var got []string
	for _, m := range list {
		got = append(got, m.Model+" "+string(m.ChunkPolicy)+" "+harness.Fixed(m.Steps[0].Ratio, 1))
	}
	if want := "a tuned 2.0, b tuned 0.5, a paper 3.0"; strings.Join(got, ", ") != want {
		t.Errorf("results are %q, want %q", got, want)
	}
}
