package experiments

import (
	"strings"
	"testing"
)

// fakeRows are those of one network and policy with these throughputs, in the order
// of the paper's variants.
func fakeRows(model string, policy ChunkPolicy, batch int64, unit string, throughputs ...float64) []Row {
	var rows []Row
	for i, x := range throughputs {
		latency := float64(batch) / x
		r := Row{
			Model: model, Hardware: "stcp920", Batch: batch, Variant: []string{"tvm", "llb", "l1", "ordering", "cross-layer"}[i],
			ChunkPolicy: policy, BatchesPerCluster: []int64{2, 16, 16, 16, 16}[i], Unit: unit,
			ThroughputPerSecond: round(x), LatencySeconds: round(latency), LowerBoundSeconds: round(0.9 * latency),
			Kernels: []int64{57, 8, 8, 31, 31}[i], KernelsDynamic: []int64{1824, 64, 64, 124, 124}[i],
			Writes:        []Levels{{57, 0, 0}, {1, 56, 0}, {1, 0, 56}, {1, 3, 406}, {1, 3, 406}}[i],
			WritesDynamic: []Levels{{1824, 0, 0}, {64, 3584, 0}, {64, 0, 3584}, {4, 12, 1624}, {4, 12, 1624}}[i],
			MovedBytes:    Levels{int64(1e9) / int64(i+1), 2e9, 3e8}, PeakLLBBytes: 8 << 20, PeakL1CoreBytes: 1 << 20,
			MMEUtilization: 0.1 * float64(i+1), VMEUtilization: 0.025 * float64(i+1), MMEBusyShare: 0.11 * float64(i+1), VMEBusyShare: 0.03 * float64(i+1),
			Time: TimeLost{ComputeSeconds: round(0.125 * latency), MoveSeconds: round(0.75 * latency), LaunchSeconds: round(0.125 * latency)},
		}
		if policy == Tuned {
			r.Tried = []Trial{{BatchesPerCluster: 1, ThroughputPerSecond: round(x / 2)}, {BatchesPerCluster: r.BatchesPerCluster, ThroughputPerSecond: round(x)},
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
		change      func(rows []Row)
		fall        bool
		helps       []bool
		want        string
	}{
		{
			name: "as predicted", throughputs: []float64{1000, 1010, 3000, 6000, 9000}, fall: true, helps: []bool{true, true, true, true},
			want: "resnet50 (best batches per cluster): DDR tensor writes fall from 57 in 57 kernels (tvm) to 1 per inference (cross-layer, 31 kernels). " +
				"Every step helps: llb 1.010× (barely), l1 2.97×, ordering 2.00×, cross-layer 1.50×.",
		},
		{
			name: "one step does not help", throughputs: []float64{1000, 2000, 1600, 6000, 9000}, fall: true, helps: []bool{true, false, true, true},
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
			change: func(rows []Row) { rows[1].Writes.DDR = 50; rows[1].Kernels = 1 },
			want: "resnet50 (best batches per cluster): DDR tensor writes do NOT fall as predicted, but go from 57 in 57 kernels (tvm) to 50 per inference (llb, 1 kernel). " +
				"Every step helps: llb 2.00×.",
		},
		{
			name: "the baseline is none", throughputs: []float64{1000, 2000}, fall: false, helps: []bool{true},
			change: func(rows []Row) { rows[0].Writes.DDR = 20 },
			want: "resnet50 (best batches per cluster): DDR tensor writes do NOT fall as predicted, but go from 20 in 57 kernels (tvm) to 1 per inference (llb, 8 kernels). " +
				"Every step helps: llb 2.00×.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows := fakeRows("resnet50", Tuned, 64, "images/s", test.throughputs...)
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
	a := fakeRows("a", Tuned, 64, "images/s", 1000, 2000)
	b := fakeRows("b", Tuned, 64, "images/s", 1000, 500)
	p := fakeRows("a", PaperChunks, 64, "images/s", 1000, 3000)
	// Interleaved: the order of the rows of one network is what counts.
	list := CheckMechanism([]Row{a[0], b[0], p[0], a[1], b[1], p[1]})
	var got []string
	for _, m := range list {
		got = append(got, m.Model+" "+string(m.ChunkPolicy)+" "+fixed(m.Steps[0].Ratio, 1))
	}
	if want := "a tuned 2.0, b tuned 0.5, a paper 3.0"; strings.Join(got, ", ") != want {
		t.Errorf("results are %q, want %q", got, want)
	}
}
