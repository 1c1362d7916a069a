package bound_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

// The table of terms in the manual has what `dsasched bound` prints; with DSASCHED_FULL all of its rows.
func TestTermsOfTheManual(t *testing.T) {
	names := map[string]string{"A ResNet-50": "resnet50", "B BERT-128": "bert-128", "C BERT-256": "bert-256",
		"D BERT-large-384": "bert-large-384", "E BERT-512": "bert-512", "F DLRM": "dlrm", "G MobileNetV2": "mobilenetv2",
		"H ViT-B/16": "vit-b16", "I DenseNet-121": "densenet121", "J Conformer": "conformer", "Swin-T": "swin-t",
		"GPT-2, prefill": "gpt2-prefill", "Llama-2 7B, decode": "llama2-7b-decode",
		"Mixtral 8x7B, decode": "mixtral-8x7b-decode", "Mamba-130M": "mamba-130m", "U-Net block": "sd-unet-block"}
	quick := map[string]bool{"dlrm": true, "mobilenetv2": true, "mixtral-8x7b-decode": true}
	text, err := os.ReadFile("../../docs/formulations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| network, batch | work |")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	columns := strings.Split(strings.Trim(lines[0], "| "), " | ")
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines)-2 != len(names) {
		t.Errorf("the table has %d networks, expected %d", len(lines)-2, len(names))
	}
	for _, line := range lines[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		i := strings.LastIndex(cells[0], ", ")
		batch, err := strconv.ParseInt(cells[0][i+2:], 10, 64)
		name := names[cells[0][:i]]
		if err != nil || name == "" {
			t.Fatalf("%q: %v", cells[0], err)
		}
		if !quick[name] && os.Getenv("DSASCHED_FULL") == "" {
			continue
		}
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bound.Cold(t.Context(), net, spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		ms := func(seconds float64) string { return fmt.Sprintf("%.4g", 1e3*seconds) }
		terms := map[string]float64{"work": 0}
		for _, x := range b.Terms {
			terms[x.Name] = max(terms[x.Name], x.Seconds)
		}
		want := []string{cells[0]}
		for _, c := range append([]string{"work"}, columns[:len(columns)-2]...) {
			switch x := ms(terms[c]); {
			case x == "0":
				want = append(want, "–")
			case terms[c] == b.Seconds:
				want = append(want, "**"+x+"**")
			default:
				want = append(want, x)
			}
		}
		form, err := bound.AnyForm(t.Context(), net, spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		any, err := bound.AnyDivision(t.Context(), net, spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, ms(form.Seconds), ms(any))
		if got := strings.Join(want, " | "); got != strings.Join(cells, " | ") {
			t.Errorf("the table has\n%s, the bound is\n%s", line, got)
		}
	}
}
