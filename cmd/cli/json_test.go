package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Numbers have a unit at the end of their name, or count something. A list of
// numbers has the name of the list.
var (
	unitSuffixes = []string{"_j", "_w", "_bytes", "_s", "_hz", "_cycles", "_per_cycle", "_macs", "_ops"}
	counts       = []string{
		"params", "operators", "operators_before_simplify", "operators_after_simplify", "changes", "operators_removed",
		"before_simplify", "after_simplify", "count", "matrix", "reduction", "light", "shape",
		"clusters", "of_clusters", "cores", "of_cores", "devices", "cores_per_cluster", "count_per_cluster", "rows", "cols", "lanes",
		"batch", "shares", "chunk", "kernels", "commands", "split_dim_index", "split_factor", "instances", "layers",
		"index", "instance", "binding", "cluster", "last_cluster", "static", "dynamic", "cells", "blocks",
		"since_opset", "until_opset",
		"schedule_count", "group_count", "round", "depth", "position", "tiles",
		"kernel", "from_kernel", "to_kernel", "group", "phase", "phases", "wave", "waves", "threads", "registers", "sms",
		"warp", "tasks", "parts", "rows_per_task",
		"memory_kernels", "library_kernels", "local_links", "regional_links", "global_links", "dram_read_transactions",
		"dram_write_transactions",
		"scopes", "proven_scopes",
		"requests", "request", "prompt_tokens", "answer_tokens", "cache_tokens", "step_tokens", "chips", "grain", "steps",
		"decode_steps", "decodes", "states", "seed", "in_flight",
		"scenarios", "tokens", "weight", "different_chips",
	}
	sharesOfOne = []string{"utilization", "mme_utilization", "vme_utilization", "l1_utilization", "peak_share", "share",
		"cache_peak_share", "astitch_gap", "library_efficiency"}
)

func checkNumbers(t *testing.T, v any, name, path string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k != strings.ToLower(k) || strings.ContainsAny(k, " -.") {
				t.Errorf("%s.%s is not snake_case", path, k)
			}
			checkNumbers(t, x, k, path+"."+k)
		}
	case []any:
		for i, x := range v {
			checkNumbers(t, x, name, fmt.Sprintf("%s[%d]", path, i))
		}
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		switch {
		case slices.Contains(sharesOfOne, name):
			if f < 0 || f > 1.000001 {
				t.Errorf("%s is %v, want a share of one", path, v)
			}
		case slices.Contains(counts, name):
			if strings.ContainsAny(v.String(), ".eE") {
				t.Errorf("%s is %v, want a whole number", path, v)
			}
		case !slices.ContainsFunc(unitSuffixes, func(s string) bool { return strings.HasSuffix("_"+name, s) }):
			t.Errorf("%s: the name does not tell the unit", path)
		}
	case nil:
		// What is not known or not there.
	}
}

func TestJSON(t *testing.T) {
	workspace(t)
	for _, args := range []string{
		"models", "hardware", "hardware stcp920", "hardware t4-simt", "hardware v100x16", "hardware my-npu.yaml",
		"inspect resnet50", "inspect net.onnx", "inspect bert-128 --batch 2",
		"onnx-ops", "onnx-ops conv", "inspect net.onnx --dtype i8",
		"schedule resnet50 --batch 8", "schedule squeezenet --batch 4 --hardware stcp920-paper",
		"schedule resnet50 --variant tvm",
		"schedule net.onnx --batch 3 --dtype f32", "schedule bert-128 --batch 2",
		"variants", "list", "version", "run ablation --quiet", "report results", "check schedule net.schedule.json",
		"simulate net.schedule.json", "explain net.schedule.json",
		"explain resnet50 --batch 8 --chunk 2 --tensor stage3.block5.add",
		"explain resnet50 --batch 8 --chunk 1 --op stage2.block0.conv1", "explain resnet50 --batch 8 --variant cross-layer --group g0",
		"explain net.schedule.json --against net.schedule.json",
		"completion bash", "completion zsh", "completion fish",
		"solve stitch squeezenet", "solve stitch squeezenet --method exact --hardware t4-simt",
		"solve stitch net.onnx --method xla",
		"solve stitch bert-128 --method tvm --explain encoder.layer0.attention.softmax/exp",
	} {
		t.Run(args, func(t *testing.T) {
			full := append(strings.Fields(args), "--json")
			got := answer(t, full...)
			d := json.NewDecoder(strings.NewReader(got))
			d.UseNumber()
			var v map[string]any
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if d.More() {
				t.Error("more than one value")
			}
			checkNumbers(t, v, "", "")
			plain := func(text string) string { return processor.ReplaceAllString(text, "\n") }
			if again := answer(t, full...); plain(again) != plain(got) {
				t.Error("other bytes the second time")
			}
			// Lists are never null: a reader can go through them unasked.
			for _, list := range []string{"groups", "joins", "spills", "tuned", "notes", "passes", "kinds", "inputs",
				"outputs", "ops", "peaks",
				"stages", "blocks", "block_types", "capacities", "files", "layer_names", "live_bytes", "figures", "experiments",
				"violations", "readers", "places", "live", "runs", "merges", "stops", "choices", "footprints", "layer_operators",
				"waits", "waited_for", "bounds"} {
				if strings.Contains(got, `"`+list+`": null`) {
					t.Errorf("%s is null", list)
				}
			}
		})
	}
}
