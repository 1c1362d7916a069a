package paperfigs

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"

	"gonum.org/v1/gonum/stat"
)

// table5 compares convolutions fused by hand and by GraphTurbo on a GPU, as it is and with its cores in a grid.
type table5 struct {
	grids   [][]int // arrange the cores; nil: as the preset says
	batches []int64
}

func fullTable5() table5 { return table5{[][]int{nil, {9, 12}}, []int64{8, 32, 128}} }

const (
	gpu        = "a100"
	tailor     = "resnet18-tailor"
	tailorUnit = "images/s"
)

// table5Variants lists the variants of the table, the baseline first.
func table5Variants() []scheduler.Recipe {
	tvm, _ := literature.ByText("tvm")
	graphTurbo, _ := literature.ByText("cross-layer")
	return []scheduler.Recipe{tvm, recipes.ConvFusion(), graphTurbo}
}

// publishedSpeedup is the ratio of two throughputs in the paper.
type publishedSpeedup struct {
	variant, over string
	value         float64
	source        string
}

var table5Published = []publishedSpeedup{{"cross-layer", "tvm", 1.23, "Table 5 (mean)"},
	{"cross-layer", "conv-fusion", 1.06, "Table 5 (mean)"}}

var table5Notes = []string{
	"tvm stands for TVM with CUTLASS (a kernel per layer), conv-fusion for CUTLASS with convolutions fused in pairs, the second of them 1x1; both as schedules on a simulated A100.",
	"The tailored ResNet-18 is not defined in the paper: that the second convolution of each block is 1x1 is assumed. Its batch sizes are not known either; the published speedups are means.",
	"The level behind the L2 is the HBM. Results of a kernel pass through it here, where a GPU's L2 would keep a part of them.",
}

func (p table5) experiment() harness.Experiment {
	return harness.Experiment{Name: "table5", Description: "convolutions fused by hand and by GraphTurbo on a GPU",
		Paper: "GraphTurbo (OSDI 2023), §5.6 and Table 5", Plan: p.plan}
}

// Table5 lists the accelerators.
func Table5() harness.Experiment { return fullTable5().experiment() }

// arranged is the GPU with its cores in a grid.
func arranged(grid []int) (*hardware.Spec, error) {
	spec, err := hardware.Load(gpu)
	if err != nil || grid == nil {
		return spec, err
	}
	spec.Name += "-grid"
	spec.CoreTypes[0].Grid = grid
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("%s as a grid: %w", gpu, err)
	}
	return spec, nil
}

// table5Row is a row with what it is compared with.
type table5Row struct {
	harness.Row
	DType string `json:"dtype"`
	// OverFirst is the speedup over the first variant.
	OverFirst float64 `json:"speedup_over_tvm"`
	// DDRShare is the traffic with the DDR over what it could have moved.
	DDRShare float64 `json:"ddr_bandwidth_share"`
}

func (p table5) plan() (*harness.Plan, error) {
	pl, variants := &harness.Plan{}, table5Variants()
	src := harness.OpenNetwork(tailor)
	said := slices.Clone(table5Notes)
	var hashes []string
	var bandwidth float64
	for _, grid := range p.grids {
		spec, err := arranged(grid)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, fmt.Sprintf("%s %s", spec.Name, harness.SpecHash(spec)))
		bandwidth = spec.DDR.BandwidthBytesPerSecond
		for _, batch := range p.batches {
			for _, v := range variants {
				c := harness.RowCell(src, model.F16, spec, batch, v, literature.Options(0), harness.Tuned, tailorUnit)
				c.Label = fmt.Sprintf("%s on %s, batch %d, %s", tailor, spec.Name, batch, v.Name)
				pl.Cells = append(pl.Cells, c)
			}
		}
		if n := spec.CoreTypes[0].Count; grid == nil && n&(n-1) != 0 {
			said = append(said, fmt.Sprintf("At most %d of the %d cores of %s work, the largest power of two.",
				1<<(bits.Len(uint(n))-1), n, spec.Name))
		}
	}
	pl.Report = harness.Of(func(rows []harness.Row) (*harness.Report, error) {
		var groups [][]table5Row
		for g := range slices.Chunk(rows, len(variants)) {
			groups = append(groups, harness.Each(g, func(r harness.Row) table5Row {
				return table5Row{Row: r, DType: model.F16.String(),
					OverFirst: harness.Round(r.ThroughputPerSecond / g[0].ThroughputPerSecond),
					DDRShare:  harness.Round(float64(r.MovedBytes.DDR) / (bandwidth * r.LatencySeconds))}
			}))
		}
		return p.report(groups, hashes, said)
	})
	return pl, nil
}

// ours is the speedup beside a published one, for one machine and batch; 0: a variant did not run.
func (p publishedSpeedup) ours(g []table5Row) float64 {
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

// tables are one for each batch, and one beside the published speedups.
func (p table5) tables(groups [][]table5Row) []harness.Table {
	var tables []harness.Table
	variants := table5Variants()
	first, last := variants[0].Name, variants[len(variants)-1].Name
	for _, batch := range p.batches {
		t := harness.Table{Name: fmt.Sprintf("%s-%d", tailor, batch),
			Title:   fmt.Sprintf("%s, batch %d: throughput (%s) and speedup over %s", tailor, batch, tailorUnit, first),
			Columns: harness.Columns("<Machine", "<Type", first+"\n("+tailorUnit+")")}
		for _, v := range variants[1:] {
			t.AddColumns("Speedup (×)|" + v.Name)
		}
		t.AddColumns(last+"|"+tailorUnit, last+"|peak MACs\n(%)", last+"|DDR rate\n(%)", last+"|kernels")
		for _, g := range groups {
			if g[0].Batch != batch {
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
	t := harness.Table{
		Name: "published", Title: "Published speedups beside ours (ratio: ours over published)",
		Columns: harness.Columns("<Network", "<Machine", "Batch", "<Speedup of", "<over", "Ours (×)", "Published (×)",
			"Ratio", "<Source"),
	}
	for _, s := range table5Published {
		for _, g := range groups {
			x := s.ours(g)
			t.Add(tailor, g[0].Hardware, g[0].Batch, s.variant, s.over, harness.Fixed(x, 2), harness.Fixed(s.value, 2),
				harness.Fixed(x/s.value, 2), s.source)
		}
	}
	return append(tables, t)
}

func (p table5) report(groups [][]table5Row, hashes, notes []string) (*harness.Report, error) {
	d := harness.NewDocument(p.experiment(), hashes...)
	d.Notes = notes
	rows := slices.Concat(groups...)
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
	for _, f := range table5Published {
		for on := range slices.Chunk(groups, len(p.batches)) {
			gains := harness.Each(on, f.ours)
			machine := on[0][0].Hardware
			d.Line(harness.Line{Unit: "x", Published: f.value, Ours: stat.Mean(gains, nil), Remark: f.source,
				Given: machine != gpu, // the machine as it is counts
				What: fmt.Sprintf("%s over %s, %s, mean of %s on %s", f.variant, f.over, tailor,
					harness.Plural(int64(len(gains)), "batch size"), machine)})
		}
	}
	d.File("table5.csv", harness.CSV(rows, harness.Fields[table5Row](
		"model hardware dtype batch variant throughput_per_s throughput_unit speedup_over_tvm latency_s lower_bound_s batches_per_cluster kernels mme_utilization vme_utilization "+
			"ddr_bandwidth_share ddr_moved_bytes llb_moved_bytes l1_moved_bytes compute_s move_s launch_s idle_s")))
	return d.Report(struct {
		Hardware []string    `json:"hardware_sha256"`
		Rows     []table5Row `json:"rows"`
	}{hashes, rows})
}
