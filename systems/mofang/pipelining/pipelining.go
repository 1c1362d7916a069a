package pipelining

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/internal/strict"
)

// InputError describes a mistake in a problem, or why it has no answer.
type InputError = strict.InputError

// A Loading is the data side of a training job. Times are in seconds.
type Loading struct {
	NamesSeconds float64 `json:"names_seconds"` // T1, of a batch
	ItemSeconds  float64 `json:"item_seconds"`  // T2, of an item on one thread
	TrainSeconds float64 `json:"train_seconds"` // T3, of a batch
	Batch        int     `json:"batch"`
	// Speedups are the numbers of threads that can be had with the speed-up of each, in ascending order of threads.
	Speedups []Speedup `json:"speedups"`
}

// A Speedup is a_n.
type Speedup struct {
	Threads int     `json:"threads"`
	Factor  float64 `json:"factor"`
}

// Validate reports the first thing that makes l none, as an *InputError.
func (l *Loading) Validate() error {
	for _, f := range []struct {
		name string
		x    float64
	}{{"names_seconds", l.NamesSeconds}, {"item_seconds", l.ItemSeconds}, {"train_seconds", l.TrainSeconds}} {
		if !(f.x >= 0) || math.IsInf(f.x, 1) {
			return strict.Error("", f.name, fmt.Sprint(f.x), "a time")
		}
	}
	if l.Batch < 1 {
		return strict.Error("", "batch", fmt.Sprint(l.Batch), "at least 1")
	}
	if len(l.Speedups) == 0 {
		return strict.Error("", "speedups", "none", "at least one number of threads")
	}
	for i, s := range l.Speedups {
		if s.Threads < 1 || i > 0 && s.Threads <= l.Speedups[i-1].Threads {
			return strict.Error("", fmt.Sprintf("speedups[%d]: threads", i), fmt.Sprint(s.Threads), "more than before")
		}
		if !(s.Factor > 0) || math.IsInf(s.Factor, 1) {
			return strict.Error("", fmt.Sprintf("speedups[%d]: factor", i), fmt.Sprint(s.Factor), "more than 0")
		}
	}
	return nil
}

// BatchSeconds is T(n), with the speed-up of n threads.
func (l *Loading) BatchSeconds(s Speedup) float64 {
	return max(l.NamesSeconds, float64(l.Batch)*l.ItemSeconds/s.Factor, l.TrainSeconds)
}

// Threads is the least number of threads with the least time of a batch, by trying all.
func Threads(l *Loading) (Speedup, error) {
	if err := l.Validate(); err != nil {
		return Speedup{}, err
	}
	best := l.Speedups[0]
	for _, s := range l.Speedups[1:] {
		if l.BatchSeconds(s) < l.BatchSeconds(best) {
			best = s
		}
	}
	return best, nil
}

// fits reports whether b micro-batches of a batch of B fill p stages: I(b) <= D(b).
func fits(b, p, batch, device int) bool {
	return p == 1 || b*device >= batch && (p-1)*b*device <= (b*device-batch)*(b+p-1)
}

// MicroBatches is the least number of micro-batches that fits, by trying 1 to batch.
func MicroBatches(p, batch, device int) (int, error) {
	if err := checkMicro(p, batch, device); err != nil {
		return 0, err
	}
	for b := 1; b <= batch; b++ {
		if fits(b, p, batch, device) {
			return b, nil
		}
	}
	return 0, noMicro(p, batch, device)
}

// ClosedForm is the same without trying.
func ClosedForm(p, batch, device int) (int, error) {
	if err := checkMicro(p, batch, device); err != nil {
		return 0, err
	}
	r := float64(batch) / float64(device)
	b := max(1, int(math.Ceil((r+math.Sqrt(r*r+4*r*float64(p-1)))/2-1e-9)))
	if p == 1 {
		b = 1
	}
	if b > batch {
		return 0, noMicro(p, batch, device)
	}
	return b, nil
}

func checkMicro(p, batch, device int) error {
	const most = 1 << 20 // products stay within 64 bits
	for _, f := range []struct {
		name string
		x    int
	}{{"stages", p}, {"batch", batch}, {"largest batch of a device", device}} {
		if f.x < 1 || f.x > most {
			return strict.Error("", f.name, fmt.Sprint(f.x), fmt.Sprintf("1 to %d", most))
		}
	}
	return nil
}

func noMicro(p, batch, device int) error {
	return strict.Error("", "micro-batches",
		fmt.Sprintf("none of 1 to %d that fills %d stages of devices that take %d at a time", batch, p, device),
		"a larger batch or fewer stages")
}

// A Layer is a layer as [Stages] sees it.
type Layer struct {
	Seconds     float64 `json:"seconds"`
	Utilization float64 `json:"utilization"` // 0 to 1
}

// A staging is stages as half-open ranges of layers.
type staging struct {
	Stages      [][2]int `json:"stages"`
	Seconds     float64  `json:"seconds"`     // of the longest stage
	Utilization float64  `json:"utilization"` // of all together
}

// NewStaging measures stages that end before the given layers.
func NewStaging(layers []Layer, ends []int) *staging {
	s := &staging{}
	from := 0
	for _, to := range ends {
		t, u := 0.0, 0.0
		for _, l := range layers[from:to] {
			t += l.Seconds
			u = max(u, l.Utilization)
		}
		s.Stages = append(s.Stages, [2]int{from, to})
		s.Seconds = max(s.Seconds, t)
		s.Utilization += u
		from = to
	}
	return s
}

const slack = 1e-9

func checkLayers(layers []Layer, limit float64) error {
	if len(layers) == 0 {
		return strict.Error("", "layers", "none", "at least one")
	}
	for i, l := range layers {
		if !(l.Seconds >= 0) || math.IsInf(l.Seconds, 1) {
			return strict.Error("", fmt.Sprintf("layer %d: seconds", i), fmt.Sprint(l.Seconds), "a time")
		}
		if !(l.Utilization >= 0 && l.Utilization <= 1) {
			return strict.Error("", fmt.Sprintf("layer %d: utilization", i), fmt.Sprint(l.Utilization), "0 to 1")
		}
		if l.Utilization > limit+slack {
			return strict.Error("", fmt.Sprintf("layer %d: utilization", i), fmt.Sprint(l.Utilization),
				fmt.Sprintf("at most %v, the limit of all stages", limit))
		}
	}
	return nil
}

// Stages finds stages with the least T, and of those the fewest, whose utilisations sum to at most limit.
func Stages(layers []Layer, limit float64) (*staging, error) {
	if err := checkLayers(layers, limit); err != nil {
		return nil, err
	}
	type label struct {
		t, u   float64
		stages int
		from   int // layer where the last stage begins
		before int // label there
	}
	labels := make([][]label, len(layers)+1)
	labels[0] = []label{{}}
	for j := 1; j <= len(layers); j++ {
		var found []label
		t, u := 0.0, 0.0
		for i := j - 1; i >= 0; i-- {
			t += layers[i].Seconds
			u = max(u, layers[i].Utilization)
			for k, l := range labels[i] {
				if l.u+u <= limit+slack {
					found = append(found, label{max(l.t, t), l.u + u, l.stages + 1, i, k})
				}
			}
		}
		slices.SortStableFunc(found, func(a, b label) int {
			return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.stages, b.stages), cmp.Compare(a.u, b.u))
		})
		for _, l := range found {
			if !slices.ContainsFunc(labels[j], func(k label) bool { return k.t <= l.t && k.u <= l.u && k.stages <= l.stages }) {
				labels[j] = append(labels[j], l)
			}
		}
	}
	var ends []int
	for j, k := len(layers), 0; j > 0; {
		l := labels[j][k]
		ends = append(ends, j)
		j, k = l.from, l.before
	}
	slices.Reverse(ends)
	return NewStaging(layers, ends), nil
}
