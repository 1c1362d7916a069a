package tuning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// knob is a quantity of the accelerator that the sweep varies.
type knob struct {
	name, unit string
	// turn multiplies the quantity and returns what it became, in unit.
	turn    func(s *hardware.Spec, factor float64) float64
	factors []float64
}

var decadeFactors = []float64{0.1, 0.3, 1, 3, 10}

func scaleBytes(b *hardware.Bytes, f float64) {
	// Whole kibibytes, so that tiles keep sizes that machines have.
	*b = hardware.Bytes(max(1, math.Round(float64(*b)*f/1024))) * 1024
}

var knobs = []knob{
	{"LB size", "KiB", func(s *hardware.Spec, f float64) float64 {
		scaleBytes(&s.LB.SizeBytes, f)
		if s.LBWeightBytes > 0 {
			scaleBytes(&s.LBWeightBytes, f)
		}
		return float64(s.LB.SizeBytes) / 1024
	}, decadeFactors},
	{"LLB size", "MiB", func(s *hardware.Spec, f float64) float64 {
		scaleBytes(&s.GB.SizeBytes, f)
		return float64(s.GB.SizeBytes) / (1 << 20)
	}, decadeFactors},
	{"DDR bandwidth", "GB/s", func(s *hardware.Spec, f float64) float64 {
		s.DDR.BandwidthBytesPerSecond *= f
		return s.DDR.BandwidthBytesPerSecond / 1e9
	}, decadeFactors},
	{"LLB bandwidth", "GB/s", func(s *hardware.Spec, f float64) float64 {
		s.GB.BandwidthBytesPerSecond *= f
		return s.GB.BandwidthBytesPerSecond / 1e9
	}, decadeFactors},
	{"cores per cluster", "", func(s *hardware.Spec, f float64) float64 {
		s.CoreTypes[0].Count = int(max(1, math.Round(float64(s.CoreTypes[0].Count)*f)))
		return float64(s.CoreTypes[0].Count)
	}, []float64{0.125, 0.25, 0.5, 1, 2, 4, 8}},
	{"kernel launch", "µs", func(s *hardware.Spec, f float64) float64 {
		s.LaunchSeconds *= f
		return s.LaunchSeconds * 1e6
	}, decadeFactors},
}

// turned is a copy of a spec with one quantity changed.
func turned(s *hardware.Spec, k knob, f float64) (*hardware.Spec, float64) {
	c := *s
	lb, gb, ddr := *s.LB, *s.GB, *s.DDR
	c.LB, c.GB, c.DDR = &lb, &gb, &ddr
	c.CoreTypes = append([]hardware.CoreType(nil), s.CoreTypes...)
	return &c, k.turn(&c, f)
}

// sweep asks which figure of the machine would change the answer.
type sweep struct {
	hardware string
	networks []struct {
		model string
		batch int64
		unit  string
	}
	knobs []knob
}

func fullSweep() sweep {
	s := sweep{hardware: "stcp920", knobs: knobs}
	for _, c := range literature.Configurations()[:2] {
		s.networks = append(s.networks, struct {
			model string
			batch int64
			unit  string
		}{c.Network, c.BatchSize, c.Unit})
	}
	return s
}

// sweepPoint is the result of a cell.
type sweepPoint struct {
	Model  string  `json:"model"`
	Knob   string  `json:"knob"`
	Factor float64 `json:"factor"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	// Per second; 0 where no schedule fits.
	TVM        float64 `json:"tvm_per_s"`
	GraphTurbo float64 `json:"graphturbo_per_s"`
	Error      string  `json:"error,omitempty"`
}

func (s sweep) experiment() harness.Experiment {
	return harness.Experiment{Name: "sweep",
		Description: "what would change the answer: sizes, bandwidths, cores and launch overhead over two orders of magnitude",
		Paper:       "none; asks where the paper's advantage begins and ends", Plan: s.plan}
}

func (s sweep) plan() (*harness.Plan, error) {
	spec := harness.Accelerator(s.hardware)
	p := &harness.Plan{}
	tvm := harness.Recipe("tvm")
	turbo := harness.Recipe("cross-layer")
	for _, n := range s.networks {
		src := harness.OpenNetwork(n.model)
		for i, k := range s.knobs {
			for _, f := range k.factors {
				changed, value := turned(spec, k, f)
				if err := changed.Validate(); err != nil {
					return nil, fmt.Errorf("%s x %g: %w", k.name, f, err)
				}
				specHash := harness.SpecHash(changed)
				p.Cells = append(p.Cells, harness.Cell{
					Key: fmt.Sprintf("%s-knob%d-x%g", n.model, i, f),
					Inputs: map[string]any{
						"model": n.model, "hardware_sha256": specHash, "batch": n.batch, "tvm": tvm,
						"graphturbo": turbo,
					},
					Run: func(ctx context.Context) (any, error) {
						pt := sweepPoint{Model: n.model, Knob: k.name, Factor: f, Value: harness.Round(value), Unit: k.unit}
						for _, v := range []struct {
							scheduler.Recipe
							to *float64
						}{{tvm, &pt.TVM}, {turbo, &pt.GraphTurbo}} {
							r, err := scheduler.Run(ctx, src, changed, n.batch, v.Recipe, scheduler.Options{})
							if ctx.Err() != nil {
								return nil, ctx.Err()
							}
							if err != nil {
								pt.Error = err.Error() // a machine that is too small is an answer
								continue
							}
							*v.to = harness.Round(r.ThroughputPerSecond())
						}
						return pt, nil
					},
				})
			}
		}
	}
	p.Report = harness.Of(func(points []sweepPoint) (*harness.Report, error) {
		rep, err := s.experiment().WriteRows(s.hardware, func(b *harness.Document) { s.report(points, b) }, nil)
		if err != nil {
			return nil, err
		}
		rep.Replace(harness.File{Name: "sweep.csv", Data: harness.CSV(points, harness.Fields(
			"model knob factor value unit tvm_per_s graphturbo_per_s speedup error",
			harness.Field[sweepPoint]{Name: "speedup", Of: func(p sweepPoint) any { return p.speedup() }}))},
			harness.JSONFile("sweep.json", points))
		return rep, nil
	})
	return p, nil
}

// speedup is 0 where one of the two does not fit.
func (p sweepPoint) speedup() float64 {
	if p.TVM <= 0 || p.GraphTurbo <= 0 {
		return 0
	}
	return p.GraphTurbo / p.TVM
}

// number writes a count of cores without digits behind the point.
func (p sweepPoint) number() string {
	if p.Unit == "" {
		return harness.PlainNumber(p.Value)
	}
	return harness.Significant(p.Value)
}

func (p sweepPoint) amount() string { return strings.TrimSpace(p.number() + " " + p.Unit) }

// advantage is the speedup from which on GraphTurbo is worth its while: half as much again.
const advantage = 1.5

// where says between which values of a quantity, in the order of its values, the speedup
// passes 1, where the advantage begins or ends, and, if it never does, the advantage.
func where(knob, model string, points []sweepPoint) string {
	var list []sweepPoint
	for _, p := range points {
		if p.Knob == knob && p.Model == model && p.speedup() > 0 {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b sweepPoint) int { return cmp.Compare(a.Value, b.Value) })
	for _, level := range []float64{1, advantage} {
		var parts []string
		for i := 1; i < len(list); i++ {
			if before, after := list[i-1], list[i]; before.speedup() >= level != (after.speedup() >= level) {
				parts = append(parts, fmt.Sprintf("passes %g between %s and %s", level, before.amount(), after.amount()))
			}
		}
		if len(parts) > 0 {
			return ", and " + strings.Join(parts, ", ")
		}
	}
	return ""
}

// leastSpeedup finds the first of the points at which GraphTurbo gains least.
func leastSpeedup(points []sweepPoint) (least sweepPoint, ok bool) {
	for _, p := range points {
		if v := p.speedup(); v > 0 && (!ok || v < least.speedup()) {
			least, ok = p, true
		}
	}
	return least, ok
}

func (s sweep) report(points []sweepPoint, b *harness.Document) {
	var panels []plots.Curves
	for _, n := range s.networks {
		t := harness.Table{Name: n.model, Title: fmt.Sprintf(
			"%s, batch %d, on %s with one quantity changed; best batches per cluster", n.model, n.batch, s.hardware),
			Columns: harness.Columns("<Quantity", "Value", "<", "×", "Throughput ("+n.unit+")"+"|TVM",
				"Throughput ("+n.unit+")"+"|GraphTurbo", "Speedup (×)")}
		c := plots.Curves{Title: fmt.Sprintf("%s, batch %d", n.model, n.batch),
			XLabel: "Factor on one quantity of " + s.hardware, YLabel: "Speedup over TVM (×)", LogX: true, LogY: true, Line: 1,
			X: []float64{0.1, 0.125, 0.25, 0.3, 0.5, 1, 2, 3, 4, 8, 10}}
		for _, k := range s.knobs {
			series := plots.Series{Name: k.name, Values: make([]float64, len(c.X))}
			lowest, highest := math.Inf(1), 0.0
			var at, to sweepPoint
			for _, p := range points {
				if p.Model != n.model || p.Knob != k.name {
					continue
				}
				cellOf := func(v float64) string {
					if v == 0 {
						return "does not fit"
					}
					return harness.Significant(v)
				}
				speedup := "–"
				if v := p.speedup(); v > 0 {
					speedup = harness.Fixed(v, 2)
					if v < lowest {
						lowest, at = v, p
					}
					if v > highest {
						highest, to = v, p
					}
				}
				t.Add(k.name, p.number(), k.unit, fmt.Sprintf("%g", p.Factor), cellOf(p.TVM), cellOf(p.GraphTurbo), speedup)
				for i, x := range c.X {
					if x == p.Factor {
						series.Values[i] = p.speedup()
					}
				}
			}
			c.Series = append(c.Series, series)
			t.Notes = append(t.Notes, fmt.Sprintf("%s: the speedup goes from %.2f (at %s) to %.2f (at %s)%s.", k.name,
				lowest, at.amount(), highest, to.amount(), where(k.name, n.model, points)))
		}
		b.Table(t)
		panels = append(panels, c)
	}
	if least, ok := leastSpeedup(points); ok && least.speedup() > 1 {
		b.Note("GraphTurbo is faster than TVM at every point; the least speedup is %.2f (%s, %s at %s).", least.speedup(),
			least.Model, least.Knob, least.amount())
	} else if ok {
		b.Note("GraphTurbo is not faster than TVM everywhere; the least speedup is %.2f (%s, %s at %s).", least.speedup(),
			least.Model, least.Knob, least.amount())
	}
	b.Curves("speedup", "Speedup over TVM against each quantity", panels...)
}

// Sweep varies one quantity of the machine at a time.
func Sweep() harness.Experiment { return fullSweep().experiment() }
