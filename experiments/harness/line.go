package harness

import (
	"fmt"
	"math"
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

// RowsCSV writes the rows with the most used columns.
func RowsCSV(rows []Row) []byte {
	return CSV(rows, Fields[Row](
		"model hardware batch variant chunk_policy batches_per_cluster throughput_per_s throughput_unit latency_s energy_j average_power_w "+
			"kernels ddr_tensor_writes llb_tensor_writes l1_tensor_writes mme_utilization vme_utilization"))
}

// WriteRows makes the report of an experiment about rows: fill adds its parts, and the rows
// stand in the JSON and CSV files.
func (e Experiment) WriteRows(hardware string, fill func(*Document), rows []Row) (*Report, error) {
	var accelerators []string
	if hardware != "" {
		accelerators = append(accelerators, hardware)
	}
	d := NewDocument(e, accelerators...)
	fill(d)
	if rows != nil {
		d.File(e.Name+".csv", RowsCSV(rows))
	}
	return d.Report(rowData{hardware, rows})
}
