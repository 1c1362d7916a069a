package scheduler

import (
	"cmp"
	"math"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// idle reports whether another of the recipes side by side makes the same schedule.
func idle(d *Draft, _ Strategy) bool { return d.state.several && d.Recipe.Idle(d.Graph, d.Spec) }

// slowInTiles reports whether a schedule is slower than another before it has tiles, most of which take long to choose.
func slowInTiles(d *Draft, s Strategy) bool {
	return s.Tiles && d.state.slower != nil && d.state.slower(d.leastPs())
}

// leastPs is a lower bound on the time of a draft that has its steps, in picoseconds: the launches of all kernels,
// or all weights of steps in a row from the DDR but for what a cluster holds, until weights are used again; 0 where
// clusters divide the network.
//
// A cluster's weights pass to the cores in the order of its steps. When the last of some steps have passed, the cluster
// has no more of the next ones' than its memories hold; the others come from the DDR before the last of these pass.
func (d *Draft) leastPs() int64 {
	s, spec := d.Schedule, cmp.Or(d.Whole, d.Spec)
	if d.Options.Clusters != OverBatch { // they run steps side by side
		return 0
	}
	holds := int64(spec.Cores()) * (schedule.DataBytes(spec) + schedule.WeightBufferBytes(spec))
	if spec.LLB != nil {
		holds += int64(spec.LLB.SizeBytes)
	}
	launches, weights, loads := 0, int64(0), int64(0)
	seen := map[model.TensorID]bool{}
	for i := range s.Steps {
		st := &s.Steps[i]
		if i == 0 || st.Instance != s.Steps[i-1].Instance {
			launches++
		}
		for _, p := range st.Params {
			if seen[p.Tensor] {
				loads, weights = loads+max(0, weights-holds), 0
				clear(seen)
			}
		}
		for _, p := range st.Params {
			if seen[p.Tensor] = true; !p.Rows {
				weights += min(p.UnionBytes, s.Graph.Tensor(p.Tensor).DType.Bytes(p.Region.Elements()))
			}
		}
	}
	loads += max(0, weights-holds)
	times := float64(max(1, d.state.times))
	rate := spec.DDR.BandwidthBytesPerSecond
	if link := spec.DDRLink.BandwidthBytesPerSecond; link > 0 {
		rate = min(rate, link)
	}
	return int64(math.Floor(1e12 * times * max(float64(launches)*spec.LaunchSeconds, float64(loads)/rate)))
}
