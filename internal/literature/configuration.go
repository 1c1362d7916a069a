package literature

import (
	"strings"

	"gonum.org/v1/gonum/stat"
)

// Configuration is one of the paper's ten, A to J, with the network that stands for it here.
type Configuration struct {
	Model
	Network string // of the zoo
	// Doubt says why the published throughput of TVM is not believed; empty if it is.
	Doubt string
	// Beside: the name fits this network as well; it is shown and not averaged.
	Beside bool
}

// StandIns are the networks of the zoo for the paper's. D, "BERT-384", is the large one that MLPerf runs at 384
// tokens: Table 3 counts 515 results of TVM for it where B, C and E have 242, and at 36/s it does 4.4 TMAC/s, as A
// does (4.4) and near B (5.7); BERT-base would do 1.3.
var StandIns = map[string]string{
	"A": "resnet50", "B": "bert-128", "C": "bert-256", "D": "bert-large-384", "E": "bert-512",
	"F": "dlrm", "G": "mobilenetv2", "H": "vit-b16", "I": "densenet121", "J": "conformer",
}

// beside are networks that the paper's names fit as well.
var beside = map[string]string{"D": "bert-384"}

// doubts: published throughputs of which it is not known what they were measured on.
var doubts = map[string]string{
	"H": "40 images/s mean 0.7 TMAC/s at 224 pixels, an eighth of what the same TVM shows on BERT-128 with the same kinds of layers, and 2.2 at 384, a resolution that the paper may have meant and does not give",
}

// WithBeside lists A to J and, in brackets behind a configuration, the one beside it.
func WithBeside() []Configuration {
	var list []Configuration
	for _, c := range Configurations() {
		list = append(list, c)
		if n, ok := beside[c.Label]; ok {
			c.Network, c.Label, c.Beside = n, "("+c.Label+")", true
			list = append(list, c)
		}
	}
	return list
}

// Without names the means that leave out what is doubted.
func Without() string {
	var list []string
	for _, c := range Configurations() {
		if c.Doubt != "" {
			list = append(list, c.Label)
		}
	}
	return "without " + strings.Join(list, " and ")
}

// Configurations lists A to J.
func Configurations() []Configuration {
	var list []Configuration
	for _, m := range Models {
		list = append(list, Configuration{m, StandIns[m.Label], doubts[m.Label], false})
	}
	return list
}

// Calibrated are the labels of the configurations to whose throughput of TVM the constants are fitted: those whose
// network is known and has as many kernels here as Table 3 has results of TVM, within 20 %: kernels of layers, as the
// set was chosen. The framework's operators, which TVM runs since, would add B to F; their throughputs stay unseen.
const Calibrated = "AGI"

// Calibration reports whether the constants were fitted to the configuration's throughput of TVM.
func (c Configuration) Calibration() bool { return strings.Contains(Calibrated, c.Label) }

func ConfigurationOf(label string) Configuration {
	for _, c := range Configurations() {
		if c.Label == label {
			return c
		}
	}
	panic("experiments: no configuration " + label)
}

// Means are the arithmetic and the geometric mean over the configurations.
func Means(of func(Configuration) float64) (arithmetic, geometric float64) {
	list := Pick(of)
	return stat.Mean(list, nil), stat.GeometricMean(list, nil)
}

// Unfitted is the arithmetic mean over the configurations whose throughput of TVM the constants were not fitted to.
func Unfitted(of func(Configuration) float64) float64 {
	var list []float64
	for _, c := range Configurations() {
		if !c.Calibration() {
			list = append(list, of(c))
		}
	}
	return stat.Mean(list, nil)
}

// Labels are the configurations as figures name them.
func Labels(extra ...string) []string {
	var list []string
	for _, c := range Configurations() {
		list = append(list, c.Label+"\n"+c.Network)
	}
	return append(list, extra...)
}

func Pick(of func(Configuration) float64, extra ...float64) []float64 {
	var list []float64
	for _, c := range Configurations() {
		list = append(list, of(c))
	}
	return append(list, extra...)
}

// Breakdown are the steps of the figure.
var Breakdown = []struct {
	Variant, Before string
	Published       Figure
}{{"l1", "llb", MeanL1}, {"ordering", "l1", MeanOrder}, {"cross-layer", "ordering", MeanCross}}

// networkTitles are for people.
var networkTitles = map[string]string{"resnet50": "ResNet-50", "bert-128": "BERT-128"}

// NetworkTitle is a network's name for people.
func NetworkTitle(name string) string {
	if t, ok := networkTitles[name]; ok {
		return t
	}
	return name
}

// RemarkLatency is on the two published figures of TVM on BERT-128.
const RemarkLatency = "TVM's published latency is that of a kernel per layer with results in the LLB (variant tvm-llb), its throughput that of one with results in the DDR: together they mean 9.7 sentences in flight, of a batch of 32."
