package ablation

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
)

// Mechanism is the prediction of the paper's explanation for one network, and whether
// it came out: results no longer go through the DDR, and each of the ideas helps.
type Mechanism struct {
	Model       string              `json:"model"`
	ChunkPolicy harness.ChunkPolicy `json:"chunk_policy"`
	// WritesFall: the first variant writes about one tensor per kernel to the DDR and the
	// last one about one per inference.
	WritesFall     bool   `json:"ddr_writes_fall"`
	EveryStepHelps bool   `json:"every_step_helps"`
	Sentence       string `json:"sentence"` // String

	First, Last               string `json:"-"` // variants
	FirstKernels, LastKernels int64  `json:"-"`
	FirstWrites, LastWrites   int64  `json:"-"` // to the DDR, static
	Steps                     []Step `json:"-"`
}

// Step is the gain of one idea.
type Step struct {
	From, To string
	Ratio    float64 // of throughputs, later over earlier
	// Cause is where the time went, if the step did not help.
	Cause string
}

// Helps reports whether the step made the network faster.
func (s Step) Helps() bool { return s.Ratio > 1 }

// About one: how far the counts may be off. A kernel may have two outputs, and an inference too.
const (
	minWritesPerKernel    = 0.9
	maxWritesPerKernel    = 1.1
	maxWritesPerInference = 2
)

// barely is the gain below which a step that helps is said to do so barely.
const barely = 1.02

// CheckMechanism judges each network and policy in rows, in their order. Rows of
// one network and policy stand in the order of the variants.
func CheckMechanism(rows []harness.Row) []Mechanism {
	var list []Mechanism
	for _, g := range harness.GroupRows(rows) {
		first, last := g[0], g[len(g)-1]
		m := Mechanism{
			Model: first.Model, ChunkPolicy: first.ChunkPolicy, First: first.Variant, Last: last.Variant,
			FirstKernels: first.Kernels, LastKernels: last.Kernels, FirstWrites: first.Writes.DDR, LastWrites: last.Writes.DDR,
		}
		if first.Kernels > 0 {
			perKernel := float64(first.Writes.DDR) / float64(first.Kernels)
			m.WritesFall = perKernel >= minWritesPerKernel && perKernel <= maxWritesPerKernel &&
				last.Writes.DDR <= maxWritesPerInference && last.Writes.DDR < first.Writes.DDR
		}
		m.EveryStepHelps = true
		for i := 1; i < len(g); i++ {
			s := Step{From: g[i-1].Variant, To: g[i].Variant,
				Ratio: harness.Round(g[i].ThroughputPerSecond / g[i-1].ThroughputPerSecond)}
			if !s.Helps() {
				s.Cause = cause(g[i-1], g[i])
				m.EveryStepHelps = false
			}
			m.Steps = append(m.Steps, s)
		}
		m.Sentence = m.String()
		list = append(list, m)
	}
	return list
}

// cause names the part of the time that grew most from one variant to the next.
func cause(from, to harness.Row) string {
	parts := []struct {
		name     string
		from, to float64
	}{
		{"computing", from.Time.ComputeSeconds, to.Time.ComputeSeconds},
		{"waiting for moves", from.Time.MoveSeconds, to.Time.MoveSeconds},
		{"launching kernels", from.Time.LaunchSeconds, to.Time.LaunchSeconds},
		{"idle", from.Time.IdleSeconds, to.Time.IdleSeconds},
	}
	worst := parts[0]
	for _, p := range parts {
		if p.to-p.from > worst.to-worst.from {
			worst = p
		}
	}
	if worst.to <= worst.from {
		return "all parts of the time stay as they are"
	}
	return fmt.Sprintf("the time spent %s goes from %s to %s ms", worst.name, harness.Significant(1e3*worst.from),
		harness.Significant(1e3*worst.to))
}

// String says it in a sentence each for the writes and the steps.
func (m Mechanism) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): ", m.Model, harness.PolicyWords(m.ChunkPolicy))
	verb := "fall"
	if !m.WritesFall {
		verb = "do NOT fall as predicted, but go"
	}
	fmt.Fprintf(&b, "DDR tensor writes %s from %d in %s (%s) to %d per inference (%s, %s). ",
		verb, m.FirstWrites, harness.Plural(m.FirstKernels, "kernel"), m.First, m.LastWrites, m.Last,
		harness.Plural(m.LastKernels, "kernel"))
	var good, bad []string
	for _, s := range m.Steps {
		if s.Helps() {
			if s.Ratio < barely {
				good = append(good, fmt.Sprintf("%s %s× (barely)", s.To, harness.Fixed(s.Ratio, 3)))
			} else {
				good = append(good, fmt.Sprintf("%s %s×", s.To, harness.Fixed(s.Ratio, 2)))
			}
		} else {
			bad = append(bad, fmt.Sprintf("%s over %s is %s× (%s)", s.To, s.From, harness.Fixed(s.Ratio, 3), s.Cause))
		}
	}
	switch {
	case len(bad) == 0:
		fmt.Fprintf(&b, "Every step helps: %s.", strings.Join(good, ", "))
	case len(good) == 0:
		fmt.Fprintf(&b, "NO step helps: %s.", strings.Join(bad, "; "))
	default:
		fmt.Fprintf(&b, "NOT every step helps: %s; the others do: %s.", strings.Join(bad, "; "), strings.Join(good, ", "))
	}
	return b.String()
}
