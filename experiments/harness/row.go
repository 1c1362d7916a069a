package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// ChunkPolicy says how the batches per cluster were chosen.
type ChunkPolicy string

// The policies.
const (
	Tuned       ChunkPolicy = "tuned" // the fastest of all divisors of a cluster's share
	PaperChunks ChunkPolicy = "paper" // what the paper used
	Given       ChunkPolicy = "given" // what the caller wanted
	// As the first two, with the rate of batches in a row.
	TunedInARow ChunkPolicy = "tuned-in-a-row"
	PaperInARow ChunkPolicy = "paper-in-a-row"
)

// Row is the result of one variant on one network. Counts without "Dynamic" are static (see the package documentation).
type Row struct {
	Model             string      `json:"model"`
	Hardware          string      `json:"hardware"`
	Batch             int64       `json:"batch"`
	Variant           string      `json:"variant"`
	ChunkPolicy       ChunkPolicy `json:"chunk_policy"`
	BatchesPerCluster int64       `json:"batches_per_cluster"`
	Unit              string      `json:"throughput_unit"` // of ThroughputPerSecond, such as images/s

	// ThroughputPerSecond is of one batch from a cold start, SteadyThroughputPerSecond of
	// batches in a row; 0: not asked for, or too large a program.
	ThroughputPerSecond       float64 `json:"throughput_per_s"`
	SteadyThroughputPerSecond float64 `json:"steady_throughput_per_s,omitempty"`
	LatencySeconds            float64 `json:"latency_s"`
	// EnergyJoules is of the batch; nil: the accelerator's description has no figures.
	EnergyJoules      *float64 `json:"energy_j"`
	AveragePowerWatts *float64 `json:"average_power_w"`
	// LowerBoundSeconds is a lower bound on every execution of the same program.
	LowerBoundSeconds float64 `json:"lower_bound_s"`

	Kernels         int64  `json:"kernels"`
	Writes          Levels `json:"tensor_writes"`
	KernelsDynamic  int64  `json:"kernels_dynamic"`
	WritesDynamic   Levels `json:"tensor_writes_dynamic"`
	MovedBytes      Levels `json:"moved_bytes"`
	PeakLLBBytes    int64  `json:"llb_peak_bytes"`         // of the fullest cluster
	PeakL1CoreBytes int64  `json:"l1_peak_bytes_per_core"` // of the fullest core

	// Utilisation is useful arithmetic over what the units could have done in the latency; the busy share is the time in
	// which a unit worked on something, edge waste and pipeline filling included.
	MMEUtilization float64 `json:"mme_utilization"`
	VMEUtilization float64 `json:"vme_utilization"`
	MMEBusyShare   float64 `json:"mme_busy_share"`
	VMEBusyShare   float64 `json:"vme_busy_share"`

	// Where the time went, as the mean of the clusters. The sum is LatencySeconds.
	Time TimeLost `json:"time"`

	Tried []Trial  `json:"tried,omitempty"` // what a tuned row was chosen from
	Notes []string `json:"notes,omitempty"`
}

// Levels holds a number for each level of memory, under the STCP920's names.
type Levels struct {
	DDR int64 `json:"ddr"`
	LLB int64 `json:"llb"`
	L1  int64 `json:"l1"`
}

// WriteLevels are the levels of the paper's Table 3.
var WriteLevels = []struct {
	Name string
	Of   func(Levels) int64
}{{"DDR", func(l Levels) int64 { return l.DDR }}, {"LLB", func(l Levels) int64 { return l.LLB }},
	{"L1", func(l Levels) int64 { return l.L1 }}}

// String writes the numbers from the farthest level to the nearest.
func (l Levels) String() string { return fmt.Sprintf("%d/%d/%d", l.DDR, l.LLB, l.L1) }

// TimeLost says where the time went: each moment counts once, for the first class that applies.
type TimeLost struct {
	ComputeSeconds float64 `json:"compute_s"`
	MoveSeconds    float64 `json:"move_s"`
	LaunchSeconds  float64 `json:"launch_s"`
	IdleSeconds    float64 `json:"idle_s"`
}

// Trial is a number of batches per cluster and the throughput it gives.
type Trial struct {
	BatchesPerCluster   int64   `json:"batches_per_cluster"`
	ThroughputPerSecond float64 `json:"throughput_per_s"`
	Error               string  `json:"error,omitempty"` // why there is none
}

// Round drops the digits that differ between kinds of processors.
func Round(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		panic("experiments: " + err.Error())
	}
	return y
}

func RowOf(r *scheduler.Result, policy ChunkPolicy, unit string) Row {
	s := r.Sim
	row := Row{
		Model: r.Source, Hardware: r.Spec.Name, Batch: r.Batch, Variant: r.Recipe.Name,
		ChunkPolicy: policy, BatchesPerCluster: r.Chunk, Unit: unit,
		ThroughputPerSecond: Round(r.ThroughputPerSecond()),
		LatencySeconds:      Round(r.LatencySeconds()),
		LowerBoundSeconds:   Round(float64(s.Bound.Ps()) * 1e-12),
		Kernels:             s.Static.Commands[isa.Launch],
		KernelsDynamic:      s.Dynamic.Commands[isa.Launch],
		Writes:              levels(s.Static.TensorWrites),
		WritesDynamic:       levels(s.Dynamic.TensorWrites),
		MovedBytes:          levels(s.Dynamic.LevelBytes),
		MMEUtilization:      Round(s.MACUtilization),
		VMEUtilization:      Round(s.VectorUtilization),
		Notes:               r.Notes,
	}
	if e := r.Energy(); e != nil {
		joules := Round(e.Total())
		watts := Round(e.Total() / r.LatencySeconds())
		row.EnergyJoules, row.AveragePowerWatts = &joules, &watts
	}
	var mme, vme int64
	var t sim.Breakdown
	for i := range s.Clusters {
		c := &s.Clusters[i]
		mme += c.KindPs[isa.Matrix]
		vme += c.KindPs[isa.Vector]
		t.ComputePs += c.Time.ComputePs
		t.MovePs += c.Time.MovePs
		t.LaunchPs += c.Time.LaunchPs
		t.IdlePs += c.Time.IdlePs
		row.PeakLLBBytes = max(row.PeakLLBBytes, c.Memory[isa.LLB].PeakBytes)
		row.PeakL1CoreBytes = max(row.PeakL1CoreBytes, c.Memory[isa.L1].PeakBytes)
	}
	clusters := float64(len(s.Clusters))
	mean := func(ps int64) float64 { return Round(float64(ps) / clusters * 1e-12) }
	row.Time = TimeLost{mean(t.ComputePs), mean(t.MovePs), mean(t.LaunchPs), mean(t.IdlePs)}
	row.MMEBusyShare = Round(float64(mme) / clusters / float64(s.TotalPs))
	row.VMEBusyShare = Round(float64(vme) / clusters / float64(s.TotalPs))
	for _, t := range r.Tried {
		trial := Trial{BatchesPerCluster: t.Chunk, ThroughputPerSecond: Round(t.ThroughputPerSecond)}
		if t.Err != nil {
			trial.Error = t.Err.Error()
		}
		row.Tried = append(row.Tried, trial)
	}
	return row
}

// EnergyText is the energy in millijoules, over so many; "–" where there are no figures.
func (r Row) EnergyText(over int64) string {
	if r.EnergyJoules == nil {
		return "–"
	}
	return Significant(1e3 * *r.EnergyJoules / float64(over))
}

func levels(n [isa.NumLevels]int64) Levels {
	return Levels{DDR: n[isa.DDR], LLB: n[isa.LLB], L1: n[isa.L1]}
}

// RowCell is a cell whose result is a Row; dt is the precision that the network is opened in.
func RowCell(src network.Network, dt model.DType, spec *hardware.Spec, batch int64, v scheduler.Recipe,
	opt scheduler.Options, policy ChunkPolicy, unit string) Cell {
	return Cell{
		Shared: true,
		Key:    fmt.Sprintf("%s-%s-b%d-%s-%s", src.Name, spec.Name, batch, v.Name, policy),
		Label:  fmt.Sprintf("%s %s (%s)", src.Name, v.Name, policy),
		Inputs: map[string]any{
			"model": src.Name, "dtype": dt.String(), "hardware": spec.Name, "hardware_sha256": SpecHash(spec),
			"batch": batch, "chunk_policy": policy, "variant": v, "options": opt, "unit": unit,
		},
		Run: func(ctx context.Context) (any, error) {
			r, err := scheduler.Run(ctx, src, spec, batch, v, opt)
			if err != nil {
				return nil, err
			}
			row := RowOf(r, policy, unit)
			if policy == TunedInARow || policy == PaperInARow {
				steady, err := r.Steady(ctx)
				var large *lower.TooLargeError
				if err != nil && !errors.As(err, &large) {
					return nil, err
				}
				row.SteadyThroughputPerSecond = Round(steady)
			}
			return row, nil
		},
	}
}

// must is a value that an experiment asks for by a name of its own: an error is a bug.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("experiments: %v", err))
	}
	return v
}

// Recipe is the recipe of a name that an experiment has, with other strategies. It panics if there is none.
func Recipe(name string, picks ...scheduler.Pick) scheduler.Recipe {
	r := must(recipes.Lookup(name))
	if len(picks) > 0 {
		r = must(r.Replace(scheduler.Options{}, picks...))
	}
	return r
}

// Accelerator is the accelerator of a name that an experiment has. It panics if there is none.
func Accelerator(name string) *hardware.Spec { return must(hardware.Load(name)) }

// Machine is an accelerator, and its hash for the inputs of a cell.
func Machine(name string) (spec *hardware.Spec, hash string) {
	spec = Accelerator(name)
	return spec, SpecHash(spec)
}

// SpecHash is the hash of a valid accelerator's JSON.
func SpecHash(spec *hardware.Spec) string { return must(Hash(spec)) }

// Hash is the hash of a value's JSON.
func Hash(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("experiments: %w", err)
	}
	return hash(data), nil
}

// Decode reads the results of cells that are all of one type.
func Decode[T any](results []json.RawMessage) ([]T, error) {
	list := make([]T, len(results))
	for i := range results {
		err := json.Unmarshal(results[i], &list[i])
		if err != nil {
			return nil, fmt.Errorf("a result can't be read: %w", err)
		}
	}
	return list, nil
}

// Of is the report of a plan whose cells' results are all of one type.
func Of[T any](report func([]T) (*Report, error)) func([]json.RawMessage) (*Report, error) {
	return func(results []json.RawMessage) (*Report, error) {
		list, err := Decode[T](results)
		if err != nil {
			return nil, err
		}
		return report(list)
	}
}

// Precision is the type in which a machine computes networks: F16 if its matrix units know that, else I8.
func Precision(spec *hardware.Spec) model.DType {
	if u, ok := spec.UnitOf(hardware.Matrix); ok && !u.Supports(model.F16.String()) && u.Supports(model.I8.String()) {
		return model.I8
	}
	return model.F16
}

// OpenNetwork opens a network of the zoo in the precision of all experiments, at the grain
// that its name says: bert-128, bert-128@framework. It panics if there is none.
func OpenNetwork(name string) network.Network {
	short, at := network.At(name)
	return must(network.Open(short, network.Options{Grain: at}))
}

func IsExactVariant(name string) bool {
	return slices.ContainsFunc(recipes.Exact(), func(v scheduler.Recipe) bool { return v.Name == name })
}

// GroupRows collects the rows of one network, accelerator, batch and policy, in the order of their first row.
func GroupRows(rows []Row) [][]Row {
	var groups [][]Row
	for _, r := range rows {
		i := slices.IndexFunc(groups, func(g []Row) bool {
			f := g[0]
			return f.Model == r.Model && f.Hardware == r.Hardware && f.Batch == r.Batch && f.ChunkPolicy == r.ChunkPolicy
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}
