package harness

import (
	"fmt"
	"math"
	"strconv"
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
	// Cause names what a miss comes from; misses of one cause have one line in the report.
	Cause string `json:"cause,omitempty"`
	// Headline is its place at the head of the report over all experiments, from 1; 0: it does not stand there.
	Headline int `json:"headline,omitempty"`
}

// Ratio is ours over the published number.
func (l Line) Ratio() float64 { return l.Ours / l.Published }

// Factor is how far ours is off, 1 or more; 0 if one of both is zero.
func (l Line) Factor() float64 {
	if l.Ours <= 0 || l.Published <= 0 {
		return 0
	}
	return max(l.Ratio(), 1/l.Ratio())
}

// Predicted reports whether the line says anything of a prediction: its number was not fitted to nor given, and is not
// zero in both.
func (l Line) Predicted() bool {
	return !l.Calibration && !l.Given && (l.Published != 0 || l.Ours != 0)
}

// Verdicts on published numbers and statements.
const (
	Holds     = "holds"
	Misses    = "misses"
	WrongSign = "wrong sign" // a miss: a loss where a gain is published, or the reverse
)

// NotCounted is the verdict on what predicts nothing.
const NotCounted = "not counted"

// Verdicts in the order of the summary.
var Verdicts = []string{Holds, Misses, WrongSign}

// Verdict judges a rate, count, share or ratio: it holds within 20 %, within the precision that the number is
// printed with if that is coarser, and within one tensor of fewer than ten. Of a ratio (unit x) that is published as 1,
// a par, anything farther off has the wrong sign.
func (l Line) Verdict() string {
	d := math.Abs(l.Ours - l.Published)
	near := d <= .2*math.Abs(l.Published)
	switch {
	case l.Unit == "x" && l.Published == 1:
		if !near {
			return WrongSign
		}
	case l.Unit == "x" && (l.Ours-1)*(l.Published-1) < 0:
		return WrongSign
	case l.Unit == "tensors" && l.Published < 10:
		near = near || d <= 1
	default:
		near = near || d <= printed(l.Published)
	}
	if near {
		return Holds
	}
	return Misses
}

// printed is half of the last digit of a number as it is printed.
func printed(x float64) float64 {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	return .5 * math.Pow10(-len(decimals)) * (1 + 1e-9)
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

// Within20 reports whether a number of ours holds beside a published gain.
func Within20(published float64) func(float64) bool {
	return func(v float64) bool { return Line{Unit: "x", Published: published, Ours: v}.Verdict() == Holds }
}

// RowsCSV writes the rows with the most used columns.
func RowsCSV(rows []Row) []byte {
	return CSV(rows, Fields[Row](
		"model hardware batch variant chunk_policy batches_per_cluster throughput_per_s throughput_unit latency_s energy_j average_power_w "+
			"kernels ddr_tensor_writes llb_tensor_writes l1_tensor_writes mme_utilization vme_utilization"))
}

// WriteRows makes the report of an experiment about rows: fill adds its parts, and the rows
// stand in the JSON and CSV files.
func (e Experiment) WriteRows(hardware string, fill func(*Document), rows []Row) (*Report, error) {
	d := NewDocument(e, hardware)
	fill(d)
	if rows != nil {
		d.File(e.Name+".csv", RowsCSV(rows))
	}
	return d.Report(rowData{hardware, rows})
}
