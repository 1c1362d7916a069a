package tuning

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"

	"gonum.org/v1/gonum/stat"
)

// portability runs the variants on machines of other vendors (paper §3.6, Fig. 1):
// the same decisions and the same options, another description.
type portability struct {
	name, description, paper string
	machines                 []machine
	networks                 []portedNetwork
	batches                  []int64
	variants                 []scheduler.Recipe
	options                  scheduler.Options
	published                []publishedSpeedup
	notes                    []string
	figure                   bool
}

// machine is an accelerator of this experiment.
type machine struct {
	hardware string // preset
	grid     []int  // arranges its cores in another way; nil: as the preset says
}

type portedNetwork struct{ model, unit string }

// publishedSpeedup is the ratio of two throughputs in the paper.
type publishedSpeedup struct {
	hardware, model, variant, over string
	value                          float64
	source                         string
}

func fullPortability() portability {
	return portability{
		name:        "portability",
		description: "the variants on the machines of other vendors",
		paper:       "GraphTurbo (OSDI 2023), §3.6 and Fig. 1",
		machines: []machine{
			{hardware: "stcp920"}, {hardware: "goya"}, {hardware: "ascend910"}, {hardware: "ascend910-abstract"},
			{hardware: "ipu"}, {hardware: "a100"}, {hardware: "a100", grid: []int{9, 12}}, {hardware: "v100"},
		},
		networks: []portedNetwork{{"resnet50", "images/s"}, {"bert-128", "sentences/s"}},
		batches:  []int64{32},
		variants: recipes.Table(),
		notes: []string{
			"The variant tvm is a kernel per layer on the same simulated machine, with results through its DDR, not the code of TVM or of the vendor.",
			"The paper measured the STCP920 only; nothing is published to compare the other machines with.",
			"A machine whose name ends in -gb is scheduled with its shared buffer in the role of the L1 (hardware.Raise): Goya's matrix engine has no L1. The level behind it is the DDR, which is where the outputs of its variant llb go.",
			"On the IPU the level behind the local memories is the host. Weights come from the host once and stay as far as they fit; that first time counts.",
			"In the arrangement a100-grid loops may take a whole dimension of the grid; elsewhere bindings are powers of two.",
			"GPUs keep accumulators in registers, which are no level here.",
		},
		figure: true,
	}
}

func fullTable5() portability {
	tvm, _ := literature.ByText("tvm")
	graphTurbo, _ := literature.ByText("cross-layer")
	return portability{
		name:        "table5",
		description: "convolutions fused by hand and by GraphTurbo on a GPU",
		paper:       "GraphTurbo (OSDI 2023), §5.6 and Table 5",
		machines:    []machine{{hardware: "a100"}, {hardware: "a100", grid: []int{9, 12}}},
		networks:    []portedNetwork{{"resnet18-tailor", "images/s"}},
		batches:     []int64{8, 32, 128},
		variants:    []scheduler.Recipe{tvm, recipes.ConvFusion(), graphTurbo},
		options:     literature.Options(0),
		published: []publishedSpeedup{
			{"a100", "resnet18-tailor", "cross-layer", "tvm", 1.23, "Table 5 (mean)"},
			{"a100", "resnet18-tailor", "cross-layer", "conv-fusion", 1.06, "Table 5 (mean)"},
		},
		notes: []string{
			"tvm stands for TVM with CUTLASS (a kernel per layer), conv-fusion for CUTLASS with convolutions fused in pairs, the second of them 1x1; both as schedules on a simulated A100.",
			"The tailored ResNet-18 is not defined in the paper: that the second convolution of each block is 1x1 is assumed. Its batch sizes are not known either; the published speedups are means.",
			"The level behind the L2 is the HBM. Results of a kernel pass through it here, where a GPU's L2 would keep a part of them.",
		},
	}
}

func (p portability) experiment() harness.Experiment {
	return harness.Experiment{Name: p.name, Description: p.description, Paper: p.paper, Plan: p.plan}
}

func (m machine) load() (*hardware.Spec, error) {
	spec, err := hardware.Load(m.hardware)
	if err != nil || m.grid == nil {
		return spec, err
	}
	spec.Name += "-grid"
	spec.CoreTypes[0].Grid = m.grid
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("%s as a grid: %w", m.hardware, err)
	}
	return spec, nil
}

// portedRow is a row with what it is compared with.
type portedRow struct {
	harness.Row
	DType string `json:"dtype"`
	// OverFirst is the speedup over the first variant.
	OverFirst float64 `json:"speedup_over_tvm"`
	// DDRShare is the traffic with the DDR over what it could have moved.
	DDRShare float64 `json:"ddr_bandwidth_share"`
}

func (p portability) plan() (*harness.Plan, error) {
	pl := &harness.Plan{}
	var types []model.DType // of each cell
	var bandwidths []float64
	var hashes []string
	for _, m := range p.machines {
		spec, err := m.load()
		if err != nil {
			return nil, err
		}
		h := harness.SpecHash(spec)
		hashes = append(hashes, fmt.Sprintf("%s %s", spec.Name, h))
		dt := harness.Precision(spec)
		for _, n := range p.networks {
			src, err := network.Open(n.model, network.Options{DType: dt})
			if err != nil {
				return nil, err
			}
			for _, batch := range p.batches {
				for _, v := range p.variants {
					c := harness.RowCell(src, dt, spec, batch, v, p.options, harness.Tuned, n.unit)
					c.Label = fmt.Sprintf("%s on %s, batch %d, %s", n.model, spec.Name, batch, v.Name)
					pl.Cells = append(pl.Cells, c)
					types = append(types, dt)
					bandwidths = append(bandwidths, spec.DDR.BandwidthBytesPerSecond)
				}
			}
		}
	}
	notes := slices.Clone(p.notes)
	for _, m := range p.machines {
		spec, err := m.load()
		if err != nil {
			return nil, err
		}
		if n := spec.CoreTypes[0].Count; m.grid == nil && n&(n-1) != 0 {
			notes = append(notes, fmt.Sprintf("At most %d of the %d cores of %s work, the largest power of two.",
				1<<(bits.Len(uint(n))-1), n, spec.Name))
		}
	}
	pl.Report = harness.Of(func(rows []harness.Row) (*harness.Report, error) {
		ported := make([]portedRow, len(rows))
		for i, r := range rows {
			first := rows[i-i%len(p.variants)]
			ported[i] = portedRow{Row: r, DType: types[i].String(),
				OverFirst: harness.Round(r.ThroughputPerSecond / first.ThroughputPerSecond),
				DDRShare:  harness.Round(float64(r.MovedBytes.DDR) / (bandwidths[i] * r.LatencySeconds))}
		}
		return p.report(ported, hashes, notes)
	})
	return pl, nil
}

// baseMachine is the preset of a row's machine.
func baseMachine(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, "-gb"), "-grid")
}

// ours is the speedup beside a published one, for one machine and batch; 0 if these
// are not the ones that it belongs to.
func (p publishedSpeedup) ours(g []portedRow) float64 {
	if g[0].Model != p.model || baseMachine(g[0].Hardware) != p.hardware {
		return 0
	}
	var of, over float64
	for _, r := range g {
		switch r.Variant {
		case p.variant:
			of = r.ThroughputPerSecond
		case p.over:
			over = r.ThroughputPerSecond
		}
	}
	if over == 0 {
		return 0
	}
	return of / over
}

// tables are one for each network and batch, and one beside the published speedups.
func (p portability) tables(groups [][]portedRow) []harness.Table {
	var tables []harness.Table
	for _, n := range p.networks {
		for _, batch := range p.batches {
			t := harness.Table{
				Name: fmt.Sprintf("%s-%d", n.model, batch),
				Title: fmt.Sprintf("%s, batch %d: throughput (%s) and speedup over %s", n.model, batch, n.unit,
					p.variants[0].Name),
				Columns: harness.Columns("<Machine", "<Type", p.variants[0].Name+"\n("+n.unit+")"),
			}
			for _, v := range p.variants[1:] {
				t.AddColumns("Speedup (×)|" + v.Name)
			}
			last := p.variants[len(p.variants)-1].Name
			t.AddColumns(last+"|"+n.unit, last+"|peak MACs\n(%)", last+"|DDR rate\n(%)", last+"|kernels")
			for _, g := range groups {
				if g[0].Model != n.model || g[0].Batch != batch {
					continue
				}
				row := []string{g[0].Hardware, g[0].DType, harness.Significant(g[0].ThroughputPerSecond)}
				for _, r := range g[1:] {
					row = append(row, harness.Fixed(r.OverFirst, 2))
				}
				r := g[len(g)-1]
				t.Add(row, r.ThroughputPerSecond, harness.Percent(r.MMEUtilization), harness.Percent(r.DDRShare), r.Kernels)
			}
			tables = append(tables, t)
		}
	}
	if p.published == nil {
		return tables
	}
	t := harness.Table{
		Name: "published", Title: "Published speedups beside ours (ratio: ours over published)",
		Columns: harness.Columns("<Network", "<Machine", "Batch", "<Speedup of", "<over", "Ours (×)", "Published (×)",
			"Ratio", "<Source"),
	}
	for _, s := range p.published {
		for _, g := range groups {
			if x := s.ours(g); x > 0 {
				t.Add(s.model, g[0].Hardware, g[0].Batch, s.variant, s.over, harness.Fixed(x, 2), harness.Fixed(s.value, 2),
					harness.Fixed(x/s.value, 2), s.source)
			}
		}
	}
	return append(tables, t)
}

func (p portability) report(rows []portedRow, hashes, notes []string) (*harness.Report, error) {
	var groups [][]portedRow
	for i := 0; i < len(rows); i += len(p.variants) {
		groups = append(groups, rows[i:i+len(p.variants)])
	}
	d := harness.NewDocument(p.experiment(), hashes...)
	d.Notes = notes
	var said []string // by rows, each once
	places := map[string][]string{}
	for _, r := range rows {
		for _, n := range r.Notes {
			n, place := r.Model+": "+n, fmt.Sprintf("%s, batch %d", r.Hardware, r.Batch)
			if len(places[n]) == 0 {
				said = append(said, n)
			}
			if !slices.Contains(places[n], place) {
				places[n] = append(places[n], place)
			}
		}
	}
	for _, n := range said {
		d.Notes = append(d.Notes, fmt.Sprintf("%s (%s).", n, strings.Join(places[n], "; ")))
	}
	d.Table(p.tables(groups)...)
	for _, f := range p.published {
		gains, machines := map[string][]float64{}, []string{}
		for _, g := range groups {
			if x := f.ours(g); x > 0 {
				on := g[0].Hardware
				if gains[on] == nil {
					machines = append(machines, on)
				}
				gains[on] = append(gains[on], x)
			}
		}
		for i, on := range machines { // the first is the machine as it is
			d.Line(harness.Line{Unit: "x", Published: f.value, Ours: stat.Mean(gains[on], nil), Remark: f.source, Given: i > 0,
				What: fmt.Sprintf("%s over %s, %s, mean of %s on %s", f.variant, f.over, f.model,
					harness.Plural(int64(len(gains[on])), "batch size"), on)})
		}
	}
	d.File(p.name+".csv", portabilityCSV(rows))
	if p.figure {
		d.Bars(p.name, "Speedup over "+p.variants[0].Name+" by machine", p.panels(groups)...)
	}
	return d.Report(struct {
		Hardware []string    `json:"hardware_sha256"`
		Rows     []portedRow `json:"rows"`
	}{hashes, rows})
}

// panels are one for each network, at the largest batch.
func (p portability) panels(groups [][]portedRow) []plots.Groups {
	var list []plots.Groups
	batch := slices.Max(p.batches)
	for _, n := range p.networks {
		s := plots.Groups{Title: fmt.Sprintf("%s, batch %d", literature.NetworkTitle(n.model), batch),
			YLabel: "Speedup over " + p.variants[0].Name, Log: true, Line: 1, Series: make([]plots.Series, len(p.variants)-1)}
		for _, g := range groups {
			if g[0].Model != n.model || g[0].Batch != batch {
				continue
			}
			last := len(s.Series) - 1
			for _, f := range p.published {
				if f.over == p.variants[0].Name && f.variant == p.variants[last+1].Name && f.ours(g) > 0 {
					s.Marks = append(s.Marks, plots.GroupMark{Category: len(s.Categories), Series: last, Value: f.value})
				}
			}
			s.Categories = append(s.Categories, strings.ReplaceAll(g[0].Hardware, "-", "-\n"))
			for i, r := range g[1:] {
				s.Series[i].Name, s.Series[i].Values = r.Variant, append(s.Series[i].Values, r.OverFirst)
			}
		}
		list = append(list, s)
	}
	return list
}

func portabilityCSV(rows []portedRow) []byte {
	return harness.CSV(rows, harness.Fields[portedRow](
		"model hardware dtype batch variant throughput_per_s throughput_unit speedup_over_tvm latency_s lower_bound_s batches_per_cluster kernels mme_utilization vme_utilization "+
			"ddr_bandwidth_share ddr_moved_bytes llb_moved_bytes l1_moved_bytes compute_s move_s launch_s idle_s"))
}

// Portability is GraphTurbo on other machines.
func Portability() harness.Experiment {
	e := fullPortability().experiment()
	e.Quick = func() (*harness.Plan, error) { // two machines
		p := fullPortability()
		p.machines = []machine{{hardware: "stcp920"}, {hardware: "a100"}}
		return p.plan()
	}
	return e
}

// Table5 lists the accelerators.
func Table5() harness.Experiment { return fullTable5().experiment() }
