package experiments

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
)

// publishedCSV reads a file of the published figures by its columns, or skips the
// test where they are not.
func publishedCSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "paper", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the published figures are not beside this checkout: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, r := range records[1:] {
		row := map[string]string{}
		for i, v := range r {
			row[records[0][i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

func parse(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestPublishedModels(t *testing.T) {
	var want []PublishedModel
	for _, r := range publishedCSV(t, "graphturbo_models.csv") {
		want = append(want, PublishedModel{
			Label: r["label"], Model: r["model"], BatchSize: int64(parse(t, r["batch_size"])),
			TVMBatchesPerCluster:        int64(parse(t, r["tvm_batches_per_cluster"])),
			GraphTurboBatchesPerCluster: int64(parse(t, r["graphturbo_batches_per_cluster"])),
			Unit:                        r["unit"], TVMThroughputPerSecond: parse(t, r["tvm_throughput"]),
		})
	}
	if !reflect.DeepEqual(PublishedModels, want) {
		t.Errorf("data is\n%v\nwant\n%v", PublishedModels, want)
	}
}

func TestPublishedTensorWrites(t *testing.T) {
	var want []PublishedWrites
	for _, r := range publishedCSV(t, "graphturbo_memory.csv") {
		read := func(system string) *Levels {
			if r["ddr_"+system] == "" {
				return nil
			}
			return &Levels{int64(parse(t, r["ddr_"+system])), int64(parse(t, r["llb_"+system])), int64(parse(t, r["l1_"+system]))}
		}
		want = append(want, PublishedWrites{Label: r["label"], TVM: *read("tvm"), GraphTurbo: *read("graphturbo"), Crafted: read("crafted")})
	}
	if !reflect.DeepEqual(PublishedTensorWrites, want) {
		t.Errorf("data is\n%v\nwant\n%v", PublishedTensorWrites, want)
	}
}

func TestPublishedFigures(t *testing.T) {
	file := map[PublishedFigure]bool{}
	for _, r := range publishedCSV(t, "graphturbo_headlines.csv") {
		if r["value"] != "" {
			file[PublishedFigure{r["figure"], r["what"], parse(t, r["value"]), r["unit"]}] = true
		}
	}
	for _, f := range PublishedFigures {
		if !file[f] {
			t.Errorf("%+v is not in the file", f)
		}
	}
}

func TestMeasurements(t *testing.T) {
	var want []Measurement
	for _, r := range publishedCSV(t, "stcp920_measured.csv") {
		want = append(want, Measurement{
			Model: r["model"], Precision: r["precision"], Batch: int64(parse(t, r["batch"])),
			ThroughputPerSecond: parse(t, r["throughput"]), Unit: r["unit"],
			LatencySeconds: parse(t, r["latency_ms"]+"e-3"), Source: r["source"],
		})
	}
	if !reflect.DeepEqual(Measurements, want) {
		t.Errorf("data is\n%v\nwant\n%v", Measurements, want)
	}
}
