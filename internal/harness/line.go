package harness

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Line is a published number beside ours.
type Line struct {
	Experiment string  `json:"experiment"`
	What       string  `json:"what"`
	Unit       string  `json:"unit"`
	Published  float64 `json:"published"`
	Ours       float64 `json:"ours"`
	// Calibration: the number was used to choose constants.
	Calibration bool `json:"calibration,omitempty"`
	// Given: the line says nothing of a prediction, since ours is an input, what a definition says, another reading of
	// a number that has a line, or of another thing.
	Given  bool   `json:"given,omitempty"`
	Remark string `json:"remark,omitempty"`
	// Headline is its place at the head of the report over all experiments, from 1; 0: it does
	// not stand there.
	Headline int `json:"headline,omitempty"`
}

// Ratio is ours over the published number.
func (l Line) Ratio() float64 { return l.Ours / l.Published }

// NotCounted is the verdict on words where Given holds.
const NotCounted = "not counted †"

// Predicted reports whether the line says anything of a prediction: its number was not fitted to nor given, and is not
// zero in both.
func (l Line) Predicted() bool {
	return !l.Calibration && !l.Given && (l.Published != 0 || l.Ours != 0)
}

// Verdict classifies the ratio, of a gain (unit x) that of what is beyond 1: 1.24 for 1.04 is six times the gain, and
// less than a twentieth of a gain is none. Where no gain is published, ours may be 5 % off.
func (l Line) Verdict() string {
	r := l.Ratio()
	if l.Unit == "x" && l.Published == 1 {
		r = 1 + 4*(l.Ours-1)
	} else if l.Unit == "x" {
		r = (l.Ours - 1) / (l.Published - 1)
	}
	switch {
	case l.Published == 0 && l.Ours == 0, math.Abs(r-1) <= 0.2:
		return "reproduced within 20 %"
	case l.Unit == "x" && l.Published != 1 && r >= 0.05:
		return "direction only"
	case l.Unit != "x" && l.Published > 0 && r >= 0.5 && r <= 2:
		return "within a factor of two"
	}
	return "not reproduced"
}

// InWords is the distance of ours from the published number, for people.
func (l Line) InWords() string {
	r := l.Ratio()
	switch {
	case l.Published == 0:
		return fmt.Sprintf("ours is %s", PlainNumber(l.Ours))
	case math.Abs(r-1) < 0.005:
		return "the same as published"
	case r > 2:
		return fmt.Sprintf("%s times the published number", Fixed(r, 1))
	case r > 1:
		return fmt.Sprintf("%s\u00a0%% more than published", Fixed(100*(r-1), 0))
	}
	return fmt.Sprintf("%s\u00a0%% less than published", Fixed(100*(1-r), 0))
}

// Verdicts in the order of the summary.
var Verdicts = []string{"reproduced within 20 %", "within a factor of two", "direction only", "not reproduced"}

// Within20 is the verdict of the report's best class.
func Within20(published float64) func(float64) bool {
	return func(v float64) bool { return Line{Unit: "x", Published: published, Ours: v}.Verdict() == Verdicts[0] }
}

// rowFields are the columns of CSV files of rows, by name.
var rowFields = []Field[Row]{
	{"model", func(r Row) any { return r.Model }},
	{"hardware", func(r Row) any { return r.Hardware }},
	{"batch", func(r Row) any { return r.Batch }},
	{"variant", func(r Row) any { return r.Variant }},
	{"chunk_policy", func(r Row) any { return string(r.ChunkPolicy) }},
	{"batches_per_cluster", func(r Row) any { return r.BatchesPerCluster }},
	{"throughput_per_s", func(r Row) any { return r.ThroughputPerSecond }},
	{"throughput_unit", func(r Row) any { return r.Unit }},
	{"latency_s", func(r Row) any { return r.LatencySeconds }},
	{"energy_j", func(r Row) any { return orNothing(r.EnergyJoules) }},
	{"average_power_w", func(r Row) any { return orNothing(r.AveragePowerWatts) }},
	{"lower_bound_s", func(r Row) any { return r.LowerBoundSeconds }},
	{"kernels", func(r Row) any { return r.Kernels }},
	{"ddr_tensor_writes", func(r Row) any { return r.Writes.DDR }},
	{"llb_tensor_writes", func(r Row) any { return r.Writes.LLB }},
	{"l1_tensor_writes", func(r Row) any { return r.Writes.L1 }},
	{"kernels_dynamic", func(r Row) any { return r.KernelsDynamic }},
	{"ddr_tensor_writes_dynamic", func(r Row) any { return r.WritesDynamic.DDR }},
	{"llb_tensor_writes_dynamic", func(r Row) any { return r.WritesDynamic.LLB }},
	{"l1_tensor_writes_dynamic", func(r Row) any { return r.WritesDynamic.L1 }},
	{"ddr_moved_bytes", func(r Row) any { return r.MovedBytes.DDR }},
	{"llb_moved_bytes", func(r Row) any { return r.MovedBytes.LLB }},
	{"l1_moved_bytes", func(r Row) any { return r.MovedBytes.L1 }},
	{"llb_peak_bytes", func(r Row) any { return r.PeakLLBBytes }},
	{"l1_peak_bytes_per_core", func(r Row) any { return r.PeakL1CoreBytes }},
	{"mme_utilization", func(r Row) any { return r.MMEUtilization }},
	{"vme_utilization", func(r Row) any { return r.VMEUtilization }},
	{"mme_busy_share", func(r Row) any { return r.MMEBusyShare }},
	{"vme_busy_share", func(r Row) any { return r.VMEBusyShare }},
	{"compute_s", func(r Row) any { return r.Time.ComputeSeconds }},
	{"move_s", func(r Row) any { return r.Time.MoveSeconds }},
	{"launch_s", func(r Row) any { return r.Time.LaunchSeconds }},
	{"idle_s", func(r Row) any { return r.Time.IdleSeconds }},
	{"notes", func(r Row) any { return r.Notes }},
}

// orNothing is a number, or an empty field.
func orNothing(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// RowFields are the columns of these names, separated by spaces, for a type that has a row
// and its own columns.
func RowFields[T any](row func(T) Row, names string, own ...Field[T]) []Field[T] {
	var list []Field[T]
	for name := range strings.FieldsSeq(names) {
		if i := slices.IndexFunc(own, func(f Field[T]) bool { return f.Name == name }); i >= 0 {
			list = append(list, own[i])
			continue
		}
		i := slices.IndexFunc(rowFields, func(f Field[Row]) bool { return f.Name == name })
		if i < 0 {
			panic("harness: rows have no column " + name)
		}
		list = append(list, Field[T]{name, func(x T) any { return rowFields[i].Of(row(x)) }})
	}
	return list
}

// RowsCSV writes the rows with the most used columns.
func RowsCSV(rows []Row) []byte {
	return CSV(rows, RowFields(func(r Row) Row { return r },
		"model hardware batch variant chunk_policy batches_per_cluster throughput_per_s throughput_unit latency_s energy_j average_power_w "+
			"kernels ddr_tensor_writes llb_tensor_writes l1_tensor_writes mme_utilization vme_utilization"))
}

// WriteRows makes the report of an experiment about rows: fill adds its parts, and the rows
// stand in the JSON and CSV files.
func (e Experiment) WriteRows(hardware string, fill func(*Document) error, rows []Row) (*Report, error) {
	var accelerators []string
	if hardware != "" {
		accelerators = append(accelerators, hardware)
	}
	d := NewDocument(e, accelerators...)
	if err := fill(d); err != nil {
		return nil, err
	}
	if rows != nil {
		d.File(e.Name+".csv", RowsCSV(rows))
	}
	return d.Report(rowData{hardware, rows})
}
