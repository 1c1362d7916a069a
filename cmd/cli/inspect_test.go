package cli

import (
	"testing"

	"github.com/dsasched/dsasched/model/structure"
)

// What blocks and stages say must add up to what the whole says.
func TestInspectAddsUp(t *testing.T) {
	workspace(t)
	for _, name := range []string{"resnet50", "bert-128", "net.onnx"} {
		a := decode[structure.Report](t, answer(t, "inspect", name, "--batch", "2", "--json"))
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
