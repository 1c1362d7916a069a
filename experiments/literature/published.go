package literature

import "github.com/dsasched/dsasched/internal/harness"

// The published figures, as data. What is not published is not here; nothing is
// read off a picture or made up.

// PublishedModel is one of the paper's ten configurations (A to J).
type Model struct {
	Label     string
	Model     string // as the paper writes it
	BatchSize int64
	// Batches per cluster: how much of its share of the batch a cluster works on at
	// a time.
	TVMBatchesPerCluster, GraphTurboBatchesPerCluster int64
	Unit                                              string
	TVMThroughputPerSecond                            float64
}

// PublishedModels is the table of configurations in the slides of "Effectively
// Scheduling Computational Graphs of Deep Neural Networks toward Their
// Domain-Specific Accelerators" (OSDI 2023), with TVM's throughput.
var Models = []Model{
	{"A", "ResNet-50 v1.5", 64, 2, 16, "images/s", 1064},
	{"B", "BERT-128", 32, 4, 8, "sentences/s", 512},
	{"C", "BERT-256", 16, 2, 4, "sentences/s", 412},
	{"D", "BERT-384", 8, 1, 2, "sentences/s", 36},
	{"E", "BERT-512", 8, 1, 2, "sentences/s", 324},
	{"F", "DLRM", 1024, 64, 256, "queries/s", 131000},
	{"G", "MobileNet-v2", 128, 2, 32, "images/s", 1416},
	{"H", "Vision_Transformer", 32, 4, 8, "images/s", 40},
	{"I", "DenseNet", 32, 4, 8, "images/s", 456},
	{"J", "Conformer", 12, 1, 3, "sentences/s", 184},
}

// PublishedWrites is a row of the paper's Table 3: how often an output tensor is
// written to each level. Crafted, the vendor's own code, is nil where it has none.
type Writes struct {
	Label           string
	TVM, GraphTurbo harness.Levels
	Crafted         *harness.Levels
}

// PublishedTensorWrites is the paper's Table 3.
var TensorWrites = []Writes{
	{Label: "A", TVM: harness.Levels{DDR: 58, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 1, LLB: 11, L1: 291},
		GraphTurbo: harness.Levels{DDR: 1, LLB: 11, L1: 284}},
	{Label: "B", TVM: harness.Levels{DDR: 242, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 2, LLB: 0, L1: 304},
		GraphTurbo: harness.Levels{DDR: 1, LLB: 0, L1: 305}},
	{Label: "C", TVM: harness.Levels{DDR: 242, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 2, LLB: 25, L1: 401},
		GraphTurbo: harness.Levels{DDR: 1, LLB: 110, L1: 240}},
	{Label: "D", TVM: harness.Levels{DDR: 515, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 2, LLB: 49, L1: 968},
		GraphTurbo: harness.Levels{DDR: 1, LLB: 75, L1: 967}},
	{Label: "E", TVM: harness.Levels{DDR: 242, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 2, LLB: 25, L1: 474},
		GraphTurbo: harness.Levels{DDR: 1, LLB: 76, L1: 337}},
	{Label: "F", TVM: harness.Levels{DDR: 76, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 1, LLB: 0, L1: 75},
		GraphTurbo: harness.Levels{DDR: 0, LLB: 0, L1: 76}},
	{Label: "G", TVM: harness.Levels{DDR: 56, LLB: 0, L1: 0}, Crafted: &harness.Levels{DDR: 1, LLB: 7, L1: 619},
		GraphTurbo: harness.Levels{DDR: 0, LLB: 3, L1: 608}},
	{Label: "H", TVM: harness.Levels{DDR: 214, LLB: 0, L1: 0}, GraphTurbo: harness.Levels{DDR: 24, LLB: 60, L1: 340}},
	{Label: "I", TVM: harness.Levels{DDR: 247, LLB: 0, L1: 0}, GraphTurbo: harness.Levels{DDR: 0, LLB: 3, L1: 389}},
	{Label: "J", TVM: harness.Levels{DDR: 1054, LLB: 0, L1: 0}, GraphTurbo: harness.Levels{DDR: 4, LLB: 813, L1: 250}},
}

// PublishedFigure is a single number given in the text.
type Figure struct {
	Source string
	What   string
	Value  float64
	Unit   string
}

// The headlines that this package compares with.
var (
	MeanSpeedup     = Figure{"text", "mean speedup of GraphTurbo over TVM across A-J", 11.15, "x"}
	MeanOverAStitch = Figure{"text", "mean speedup of GraphTurbo over AStitch across A-J", 6.16, "x"}
	MeanL1          = Figure{"Fig. 15", "variant 2 (outputs in L1) over variant 1 (outputs in LLB) on average", 3.67, "x"}
	MeanOrder       = Figure{"Fig. 15",
		"gain of variant 3 (instance ordering) on average: over variant 2 in the notes; over variant 1 on the slides",
		2.20, "x"}
	MeanCross = Figure{"Fig. 15",
		"gain of variant 4 (across-layer instruction scheduling) on average: over variant 3 in the notes; over variant 1 on the slides", 1.72, "x"}

	StageSpeedup = Figure{"text §2.1", "speedup over TVM of the four-stage ordering example (Fig. 3b)", 7.97, "x"}

	BertTVMLatency = Figure{"Table 1",
		"BERT-128 batch 32 TVM latency (512/s x 18.96 ms = 9.7 in flight: does not fit a batch of 32)", 18.96, "ms"}
	BertTVMThroughput     = Figure{"Table 1", "BERT-128 batch 32 TVM throughput", 512, "sentences/s"}
	BertThroughput        = Figure{"Table 1", "BERT-128 batch 32 GraphTurbo throughput", 4052, "sentences/s"}
	BertLatency           = Figure{"Table 1", "BERT-128 batch 32 GraphTurbo latency", 7.67, "ms"}
	BertCraftedThroughput = Figure{"Table 1", "BERT-128 batch 32 vendor-crafted throughput", 4048, "sentences/s"}
	BertCraftedLatency    = Figure{"Table 1", "BERT-128 batch 32 vendor-crafted latency", 7.62, "ms"}
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
	ThroughputPerSecond float64
	Unit                string
	LatencySeconds      float64
	Source              string
}

// The measurements.
var (
	MeasuredBERT = Measurement{"BERT-base-128", "FP16", 32, 4192, "sentences/s", 7.63e-3,
		"CARRV 2021 (second hand); matrix unit busy 78 % of in-core cycles and cores 95 % of the total"}
	MeasuredResNet = Measurement{"ResNet-50", "FP16", 16, 8725.94, "images/s", 14.67e-3,
		"ByteMLPerf result.json (latency covers 2 in flight on 4 clusters)"}
	MeasuredResNetInt8 = Measurement{"ResNet-50", "INT8", 64, 14442, "images/s", 4.43e-3, "CARRV 2021 (second hand)"}
)

// measurements lists them.
var measurements = []Measurement{MeasuredBERT, MeasuredResNet, MeasuredResNetInt8}

func ModelOf(label string) Model {
	for _, m := range Models {
		if m.Label == label {
			return m
		}
	}
	panic("experiments: no published configuration " + label)
}

func WritesOf(label string) Writes {
	for _, w := range TensorWrites {
		if w.Label == label {
			return w
		}
	}
	panic("experiments: no published tensor writes " + label)
}
