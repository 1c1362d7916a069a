package literature

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

func parse(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestPublishedModels(t *testing.T) {
	var want []Model
	for _, r := range harnesstest.PublishedCSV(t, "graphturbo_models.csv") {
		want = append(want, Model{
			Label: r["label"], Model: r["model"], BatchSize: int64(parse(t, r["batch_size"])),
			TVMBatchesPerCluster:        int64(parse(t, r["tvm_batches_per_cluster"])),
			GraphTurboBatchesPerCluster: int64(parse(t, r["graphturbo_batches_per_cluster"])),
			Unit:                        r["unit"], TVMThroughputPerSecond: parse(t, r["tvm_throughput"]),
		})
	}
	if !reflect.DeepEqual(Models, want) {
		t.Errorf("data is\n%v\nwant\n%v", Models, want)
	}
}

func TestPublishedTensorWrites(t *testing.T) {
	var want []Writes
	for _, r := range harnesstest.PublishedCSV(t, "graphturbo_memory.csv") {
		read := func(system string) *harness.Levels {
			if r["ddr_"+system] == "" {
				return nil
			}
			return &harness.Levels{DDR: int64(parse(t, r["ddr_"+system])), LLB: int64(parse(t, r["llb_"+system])),
				L1: int64(parse(t, r["l1_"+system]))}
		}
		want = append(want, Writes{Label: r["label"], TVM: *read("tvm"), GraphTurbo: *read("graphturbo"),
			Crafted: read("crafted")})
	}
	if !reflect.DeepEqual(TensorWrites, want) {
		t.Errorf("data is\n%v\nwant\n%v", TensorWrites, want)
	}
}

func TestPublishedFigures(t *testing.T) {
	file := map[Figure]bool{}
	for _, r := range harnesstest.PublishedCSV(t, "graphturbo_headlines.csv") {
		if r["value"] != "" {
			file[Figure{r["figure"], r["what"], parse(t, r["value"]), r["unit"]}] = true
		}
	}
	for _, f := range published.Figures {
		if !file[f] {
			t.Errorf("%+v is not in the file", f)
		}
	}
}

func TestMeasurements(t *testing.T) {
	var want []Measurement
	for _, r := range harnesstest.PublishedCSV(t, "stcp920_measured.csv") {
		want = append(want, Measurement{
			Model: r["model"], Precision: r["precision"], Batch: int64(parse(t, r["batch"])),
			ThroughputPerSecond: parse(t, r["throughput"]), Unit: r["unit"],
			LatencySeconds: parse(t, r["latency_ms"]+"e-3"), Source: r["source"],
		})
	}
	if !reflect.DeepEqual(published.Measurements, want) {
		t.Errorf("data is\n%v\nwant\n%v", published.Measurements, want)
	}
}

func TestConfigurations(t *testing.T) {
	list := Configurations()
	if len(list) != 10 {
		t.Fatalf("%d configurations", len(list))
	}
	for _, c := range list {
		harness.OpenNetwork(c.Network) // panics where there is none
		// The paper's batches per cluster divide a cluster's share of the batch.
		for _, chunk := range []int64{c.TVMBatchesPerCluster, c.GraphTurboBatchesPerCluster} {
			if c.BatchSize%4 != 0 || c.BatchSize/4%chunk != 0 {
				t.Errorf("%s: %d per cluster of %d", c.Label, chunk, c.BatchSize)
			}
		}
	}
}
