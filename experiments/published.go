package experiments

// The published figures, as data. What is not published is not here; nothing is
// read off a picture or made up.

// PublishedModel is one of the paper's ten configurations (A to J).
type PublishedModel struct {
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
var PublishedModels = []PublishedModel{
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
type PublishedWrites struct {
	Label           string
	TVM, GraphTurbo Levels
	Crafted         *Levels
}

// PublishedTensorWrites is the paper's Table 3.
var PublishedTensorWrites = []PublishedWrites{
	{Label: "A", TVM: Levels{58, 0, 0}, Crafted: &Levels{1, 11, 291}, GraphTurbo: Levels{1, 11, 284}},
	{Label: "B", TVM: Levels{242, 0, 0}, Crafted: &Levels{2, 0, 304}, GraphTurbo: Levels{1, 0, 305}},
	{Label: "C", TVM: Levels{242, 0, 0}, Crafted: &Levels{2, 25, 401}, GraphTurbo: Levels{1, 110, 240}},
	{Label: "D", TVM: Levels{515, 0, 0}, Crafted: &Levels{2, 49, 968}, GraphTurbo: Levels{1, 75, 967}},
	{Label: "E", TVM: Levels{242, 0, 0}, Crafted: &Levels{2, 25, 474}, GraphTurbo: Levels{1, 76, 337}},
	{Label: "F", TVM: Levels{76, 0, 0}, Crafted: &Levels{1, 0, 75}, GraphTurbo: Levels{0, 0, 76}},
	{Label: "G", TVM: Levels{56, 0, 0}, Crafted: &Levels{1, 7, 619}, GraphTurbo: Levels{0, 3, 608}},
	{Label: "H", TVM: Levels{214, 0, 0}, GraphTurbo: Levels{24, 60, 340}},
	{Label: "I", TVM: Levels{247, 0, 0}, GraphTurbo: Levels{0, 3, 389}},
	{Label: "J", TVM: Levels{1054, 0, 0}, GraphTurbo: Levels{4, 813, 250}},
}

// PublishedFigure is a single number given in the text.
type PublishedFigure struct {
	Source string
	What   string
	Value  float64
	Unit   string
}

// The headlines that this package compares with.
var (
	meanSpeedup     = PublishedFigure{"text", "mean speedup of GraphTurbo over TVM across A-J", 11.15, "x"}
	meanOverAStitch = PublishedFigure{"text", "mean speedup of GraphTurbo over AStitch across A-J", 6.16, "x"}
	meanL1          = PublishedFigure{"Fig. 15", "variant 2 (outputs in L1) over variant 1 (outputs in LLB) on average", 3.67, "x"}
	meanOrder       = PublishedFigure{"Fig. 15", "gain of variant 3 (instance ordering) on average: over variant 2 in the notes; over variant 1 on the slides", 2.20, "x"}
	meanCross       = PublishedFigure{"Fig. 15", "gain of variant 4 (across-layer instruction scheduling) on average: over variant 3 in the notes; over variant 1 on the slides", 1.72, "x"}

	bertTVMLatency        = PublishedFigure{"Table 1", "BERT-128 batch 32 TVM latency (512/s x 18.96 ms = 9.7 in flight: does not fit a batch of 32)", 18.96, "ms"}
	bertTVMThroughput     = PublishedFigure{"Table 1", "BERT-128 batch 32 TVM throughput", 512, "sentences/s"}
	bertThroughput        = PublishedFigure{"Table 1", "BERT-128 batch 32 GraphTurbo throughput", 4052, "sentences/s"}
	bertLatency           = PublishedFigure{"Table 1", "BERT-128 batch 32 GraphTurbo latency", 7.67, "ms"}
	bertCraftedThroughput = PublishedFigure{"Table 1", "BERT-128 batch 32 vendor-crafted throughput", 4048, "sentences/s"}
	bertCraftedLatency    = PublishedFigure{"Table 1", "BERT-128 batch 32 vendor-crafted latency", 7.62, "ms"}
)

// PublishedFigures lists them.
var PublishedFigures = []PublishedFigure{
	meanSpeedup, meanOverAStitch, meanL1, meanOrder, meanCross,
	bertTVMThroughput, bertTVMLatency, bertThroughput, bertLatency, bertCraftedThroughput, bertCraftedLatency,
}

// Measurement is what others measured on the real chip with the vendor's software.
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
	measuredBERT       = Measurement{"BERT-base-128", "FP16", 32, 4192, "sentences/s", 7.63e-3, "CARRV 2021 (second hand); matrix unit busy 78 % of in-core cycles and cores 95 % of the total"}
	measuredResNet     = Measurement{"ResNet-50", "FP16", 16, 8725.94, "images/s", 14.67e-3, "ByteMLPerf result.json (latency covers 2 in flight on 4 clusters)"}
	measuredResNetInt8 = Measurement{"ResNet-50", "INT8", 64, 14442, "images/s", 4.43e-3, "CARRV 2021 (second hand)"}
)

// Measurements lists them.
var Measurements = []Measurement{measuredBERT, measuredResNet, measuredResNetInt8}

func publishedModel(label string) PublishedModel {
	for _, m := range PublishedModels {
		if m.Label == label {
			return m
		}
	}
	panic("experiments: no published configuration " + label)
}

func publishedWrites(label string) PublishedWrites {
	for _, w := range PublishedTensorWrites {
		if w.Label == label {
			return w
		}
	}
	panic("experiments: no published tensor writes " + label)
}
