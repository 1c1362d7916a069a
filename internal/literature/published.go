package literature

import (
	"bytes"
	_ "embed" // published.yaml

	"github.com/dsasched/dsasched/experiments/harness"
	"go.yaml.in/yaml/v3"
)

//go:embed published.yaml
var publishedYAML []byte

// published holds the published figures, as data.
var published = func() (p struct {
	Models       []Model
	TensorWrites []Writes `yaml:"tensor_writes"`
	Figures      map[string]Figure
	Measurements []Measurement
}) {
	decoder := yaml.NewDecoder(bytes.NewReader(publishedYAML))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		panic("published.yaml: " + err.Error())
	}
	return p
}()

// Model is one of the paper's ten configurations (A to J).
type Model struct {
	Label     string
	Model     string // as the paper writes it
	BatchSize int64  `yaml:"batch_size"`
	// Batches per cluster: how much of its share of the batch a cluster works on at a time.
	TVMBatchesPerCluster        int64 `yaml:"tvm_batches_per_cluster"`
	GraphTurboBatchesPerCluster int64 `yaml:"graphturbo_batches_per_cluster"`
	Unit                        string
	TVMThroughputPerSecond      float64 `yaml:"tvm_throughput"`
}

// Models are the ten configurations, with TVM's throughput.
var Models = published.Models

// Writes is a row of the paper's Table 3: how often an output tensor is written to each level. Crafted, the vendor's
// own code, is nil where it has none.
type Writes struct {
	Label           string
	TVM, GraphTurbo harness.Levels
	Crafted         *harness.Levels
}

// TensorWrites is the paper's Table 3.
var TensorWrites = published.TensorWrites

// Figure is a single number given in the text.
type Figure struct {
	Source string
	What   string
	Value  float64
	Unit   string
}

// figure is a published figure. It panics if the file has none of the name.
func figure(name string) Figure {
	f, ok := published.Figures[name]
	if !ok {
		panic("published.yaml has no figure " + name)
	}
	return f
}

// The headlines that experiments compare with.
var (
	MeanSpeedup           = figure("MeanSpeedup")
	MeanOverAStitch       = figure("MeanOverAStitch")
	MeanL1                = figure("MeanL1")
	MeanOrder             = figure("MeanOrder")
	MeanCross             = figure("MeanCross")
	StageSpeedup          = figure("StageSpeedup")
	BertTVMLatency        = figure("BertTVMLatency")
	BertTVMThroughput     = figure("BertTVMThroughput")
	BertThroughput        = figure("BertThroughput")
	BertLatency           = figure("BertLatency")
	BertCraftedThroughput = figure("BertCraftedThroughput")
	BertCraftedLatency    = figure("BertCraftedLatency")
)

// Figures lists them.
var Figures = []Figure{
	MeanSpeedup, MeanOverAStitch, StageSpeedup, MeanL1, MeanOrder, MeanCross,
	BertTVMThroughput, BertTVMLatency, BertThroughput, BertLatency, BertCraftedThroughput, BertCraftedLatency,
}

// Measurement is a measurement by others on the real chip with the vendor's software.
type Measurement struct {
	Model, Precision    string
	Batch               int64
	ThroughputPerSecond float64 `yaml:"throughput"`
	Unit                string
	LatencySeconds      float64 `yaml:"latency_s"`
	Source              string
}

// The measurements.
var (
	MeasuredBERT       = published.Measurements[0]
	MeasuredResNet     = published.Measurements[1]
	MeasuredResNetInt8 = published.Measurements[2]
)

// WritesOf is the row of Table 3 of a configuration. It panics if there is none.
func WritesOf(label string) Writes {
	for _, w := range TensorWrites {
		if w.Label == label {
			return w
		}
	}
	panic("experiments: no published tensor writes " + label)
}
