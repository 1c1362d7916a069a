package measured

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
)

// Every row's machine and case can be set up, and every source is listed at the head of the file.
func TestRows(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	if len(file) > 200<<10 {
		t.Errorf("the rows take %d bytes, expected at most 200 KiB", len(file))
	}
	for i, r := range s.rows {
		if !strings.Contains(string(file), "# "+r.Source+": ") {
			t.Fatalf("row %d: source %q is not listed", i, r.Source)
		}
		if r.Kind == rtl {
			continue
		}
		spec, err := r.machine()
		if err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		if _, err := r.host(spec); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
		net, batch, _, err := r.network()
		if err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		if r.Kind == networks {
			continue
		}
		g, err := net.Graph(batch)
		if err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		if len(g.Ops) != 1 {
			t.Errorf("row %d: %s has %d operators", i, r.Case, len(g.Ops))
		}
	}
}

// Each prediction that was committed has its row, with the type that was predicted; of an H200, each row one.
func TestBlind(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	of := map[[5]string]int{}
	for _, r := range s.rows {
		of[[5]string{r.Machine, r.Kind, r.Case, fmt.Sprint(r.Batch), r.Type}]++
	}
	for file, machine := range map[string]string{"h100-blind.csv": "h100", "h100-blind2.csv": "h100",
		"h100-blind3.csv": "h100", "h200-blind.csv": "h200"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := csv.NewReader(bytes.NewReader(data))
		in.Comment = '#'
		list, err := in.ReadAll()
		if err != nil || len(list) < 60 {
			t.Fatalf("%s has %d predictions, %v", file, len(list)-1, err)
		}
		for _, f := range list[1:] {
			key := [5]string{machine, f[0], f[1], f[2], f[3]}
			if of[key] == 0 {
				t.Errorf("%s: %v has no row", file, key)
			}
			if machine == "h200" {
				delete(of, key)
			}
		}
	}
	for key := range of {
		if key[0] == "h200" {
			t.Errorf("%v was not predicted", key)
		}
	}
}

// A rate is of all cores, which divide batches.
func TestSeconds(t *testing.T) {
	r := row{Batch: 8, Cores: 2, Value: 1000, Unit: "per_s"}
	if got := r.seconds(); got != 0.016 {
		t.Errorf("8 elements on each of 2 cores at 1000/s take %g s, expected 0.016", got)
	}
	for _, bad := range []string{"a,b\n",
		"kind,machine,case,batch,type,rate,cores,flight,host,value,unit,source,remark\nx,x,x,0,x,x,1,1,no,1,ms,s,\n",
		"h,h,h,batch,h,h,h,h,h,h,h,h,h\nx,x,x,1,x,x,1,1,no,-1,ms,s,\n",
		"h,h,h,h,h,h,h,h,h,h,h,h,h\nx,x,x,1,x,x,1,1,no,1,hours,s,\n"} {
		if rows, err := readRows([]byte(bad)); err == nil && len(rows) > 0 {
			t.Errorf("%q was read", bad)
		}
	}
}

// What a row says of how it was measured becomes part of the machine.
func TestMachine(t *testing.T) {
	base, err := hardware.Load("wormhole-n150")
	if err != nil {
		t.Fatal(err)
	}
	r := row{Machine: "wormhole-n150", Type: "f8", Rate: "4/4bit", Remark: gapsExcluded}
	spec, err := r.machine()
	if err != nil {
		t.Fatal(err)
	}
	if spec.GapSeconds != base.SyncSeconds {
		t.Errorf("without launch gaps the gap is %g s, expected %g", spec.GapSeconds, base.SyncSeconds)
	}
	if got, want := spec.DDR.BandwidthBytesPerSecond, 2*base.DDR.BandwidthBytesPerSecond; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("with half a byte an element the DDR has %g B/s, expected %g", got, want)
	}
}

// With one constant, each family is predicted from the others: two families that are off by
// factors of 2 and 1/2 are then off by 4.
func TestLeftOut(t *testing.T) {
	c := class{rows: []*compared{
		{Family: "a", prediction: prediction{Seconds: 2}, Measured: 1},
		{Family: "b", prediction: prediction{Seconds: 1}, Measured: 2}}}
	s, families, ok := c.leftOut()
	if !ok || families != 2 || math.Abs(s.spread()-4) > 1e-12 {
		t.Errorf("%d families, error %g, expected 2 and 4", families, s.spread())
	}
	if x := c.sample(); math.Abs(x.spread()-2) > 1e-12 || math.Abs(x.bias()-1) > 1e-12 ||
		math.Abs(x.percent()-0.75) > 1e-12 {
		t.Errorf("error %g, bias %g, mean %g, expected 2, 1 and 0.75", x.spread(), x.bias(), x.percent())
	}
}

// No operator was measured in less than its bound but for rounding: what slows a machine down by an estimate is not in
// it.
func TestMeasuredTimesAreAboveBounds(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	seen, closest := 0, math.Inf(1)
	for _, r := range s.rows {
		if r.Kind == networks || r.Unit == "cycles" {
			continue
		}
		spec, err := r.machine()
		if err != nil {
			t.Fatal(err)
		}
		least, term := r.bound(t.Context(), spec)
		seen++
		ratio := r.seconds() / least
		closest = min(closest, ratio)
		if ratio < .99 {
			t.Errorf("%s on %s, %s: %g s measured, at least %g s by %s (%.3f)", r.Case, r.Machine, r.Type, r.seconds(), least,
				term, ratio)
		}
	}
	if t.Logf("%d rows, the closest at %.3f of its bound", seen, closest); seen < 400 {
		t.Errorf("%d rows, expected 400 at least", seen)
	}
}

// The figure takes all machines of the table, also those that TestReport leaves out as dear.
func TestFigureOfAllMachines(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	var list []compared
	var machines []string
	for _, r := range s.rows {
		if r.Kind == rtl {
			continue
		}
		list = append(list, compared{row: r, prediction: prediction{Seconds: 1}, Measured: 1})
		if !slices.Contains(machines, r.Machine) {
			machines = append(machines, r.Machine)
		}
	}
	x := &rtlTimes{Measured: 2, Predicted: 1}
	if _, err := plots.Rooflines(figure(machines, classes(list), []*layer{{Own: x}})...); err != nil {
		t.Errorf("%d machines: %v", len(machines), err)
	}
}

// A few cheap rows of each kind: predictions are positive, not below the bound, and the report is the same twice.
func TestReport(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	few := study{quick: true}
	seen := map[string]int{}
	for _, r := range s.rows {
		key := r.Kind + r.Machine
		cheap := r.Kind != networks || r.Batch == 1 && slices.Contains([]string{"resnet18", "bert-128"}, r.Case)
		if cheap && seen[key] < 3 {
			seen[key]++
			few.rows = append(few.rows, r)
		}
	}
	p, err := few.plan()
	if err != nil {
		t.Fatal(err)
	}
	var results []json.RawMessage
	for _, c := range p.Cells {
		raw, err := harness.Compute(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, raw)
		if strings.HasPrefix(c.Key, "rtl-") {
			continue
		}
		var list []prediction
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Error == "" && (x.Seconds < x.Bound || x.Bound <= 0) {
				t.Errorf("%s: predicted %g s, bound %g s", c.Key, x.Seconds, x.Bound)
			}
		}
	}
	first, err := p.Report(results)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Report(results); err != nil || again.Text != first.Text {
		t.Errorf("another report of the same results: %v", err)
	}
	for _, f := range first.Files {
		if strings.HasSuffix(f.Name, ".tex") {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
	}
	for _, want := range []string{"One constant per machine", "inferentia2", "PyTorchSim"} {
		if !strings.Contains(first.Text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}
