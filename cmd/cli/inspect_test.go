package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/model/structure"
)

// What blocks and stages say must add up to what the whole says.
func TestInspectAddsUp(t *testing.T) {
	workspace(t)
	for _, name := range []string{"resnet50", "bert-128", "net.onnx"} {
		a := decode[inspectJSON](t, answer(t, "inspect", name, "--batch", "2", "--json"))
		var stages, blocks structure.UseReport
		add := func(sum *structure.UseReport, u structure.UseReport) {
			sum.LayerCount += u.LayerCount
			sum.Operators += u.Operators
			sum.MACs += u.MACs
			sum.Params += u.Params
			sum.ActivationBytes += u.ActivationBytes
			sum.PeakShare = max(sum.PeakShare, u.PeakShare)
		}
		at := 0
		for _, s := range a.Stages {
			add(&stages, s.UseReport)
			peak := int64(0)
			for _, b := range a.Blocks[at : at+s.BlockCount] {
				if b.Stage != s.Name {
					t.Errorf("%s: block %d is in %s, expected %s", name, b.Index, b.Stage, s.Name)
				}
				if len(b.LayerNames) != b.LayerCount || len(b.LiveBytes) != b.LayerCount {
					t.Errorf("%s: block %d has %d layers, %d names, %d live sets", name, b.Index, b.LayerCount,
						len(b.LayerNames), len(b.LiveBytes))
				}
				for _, v := range b.LiveBytes {
					peak = max(peak, v)
				}
			}
			at += s.BlockCount
			if peak != s.PeakBytes {
				t.Errorf("%s: %s has a peak of %d bytes, its layers %d", name, s.Name, s.PeakBytes, peak)
			}
		}
		for _, b := range a.Blocks {
			add(&blocks, b.UseReport)
		}
		if stages != blocks {
			t.Errorf("%s: stages are %+v, blocks %+v", name, stages, blocks)
		}
		if stages.LayerCount != a.Layers.Count || stages.Operators != a.OperatorsAfter || stages.MACs != a.MACs ||
			stages.PeakShare != 1 {
			t.Errorf("%s: stages are %+v, expected %d layers, %d operators, %d MACs", name, stages, a.Layers.Count,
				a.OperatorsAfter, a.MACs)
		}
		types := 0
		for _, k := range a.BlockTypes {
			types += k.Count
		}
		if at != len(a.Blocks) || types != len(a.Blocks) {
			t.Errorf("%s: %d blocks, %d in stages, %d in types", name, len(a.Blocks), at, types)
		}
	}
}

func TestInspectDraws(t *testing.T) {
	workspace(t)
	for file, begin := range map[string]string{"a.svg": "<?xml", "a.png": "\x89PNG", "a.PDF": "%PDF"} {
		a := decode[inspectJSON](t, answer(t, "inspect", "net.onnx", "--plot", file, "--json"))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), begin) {
			t.Errorf("%s begins with %q, want %q", file, data[:8], begin)
		}
		if len(a.Files) != 1 || a.Files[0] != (experiments.Written{Path: file, Bytes: int64(len(data))}) ||
			len(a.Capacities) != 0 {
			t.Errorf("%s: answer has files %v and capacities %v", file, a.Files, a.Capacities)
		}
		answer(t, "inspect", "net.onnx", "--plot", file)
		if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s differs the second time (%v)", file, err)
		}
	}
	a := decode[inspectJSON](t, answer(t, "inspect", "resnet50", "--plot", "b.svg", "--hardware", "stcp920", "--json"))
	svg, err := os.ReadFile("b.svg")
	if err != nil {
		t.Fatal(err)
	}
	// Eight cores of 1 MiB, and an LLB of 8 MiB.
	if len(a.Capacities) != 2 || a.Capacities[0].Bytes != 8<<20 || a.Capacities[1].Bytes != 8<<20 {
		t.Errorf("capacities are %+v", a.Capacities)
	}
	for _, w := range []string{"resnet50, batch 1, f16", "L1s of a cluster, LLB: 8 MiB each", "stem", "stage 1",
		"stage 4", "head"} {
		if !strings.Contains(string(svg), ">"+w+"<") {
			t.Errorf("the figure has no %q", w)
		}
	}
	answer(t, "inspect", "resnet50", "--plot", "b.svg", "--hardware", "stcp920-paper")
	if svg, err = os.ReadFile("b.svg"); err != nil || !strings.Contains(string(svg), ">L1s of a cluster: 512 KiB<") {
		t.Errorf("the figure has no line for 512 KiB (%v)", err)
	}
}

func TestModelsLargestTensor(t *testing.T) {
	for _, m := range decode[modelsJSON](t, answer(t, "models", "--json")).Models {
		x := m.LargestTensor
		if m.Name == "bert-128" && (x.Name != "embeddings.word.weight" || x.Role != "constant" || x.Bytes != 30522*768*2) {
			t.Errorf("the largest tensor of bert-128 is %+v", x)
		}
		if x.Bytes != x.Shape.Elements()*2 && x.DType == "f16" || x.Bytes == 0 {
			t.Errorf("%s: %+v", m.Name, x)
		}
	}
}
