package onnx

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// corpus are the files in testdata/fuzz/FuzzImport: what random bytes would take
// long to reach.
var corpus = []struct {
	name  string
	batch int64
	data  []byte
}{
	{"functions", 2, with(file(13, input("x", 1, 6), output("y"), callOf("Outer", "n", in("x"), out("u")),
		callOf("Inner", "m", in("u", "u"), out("y"), attrFlt("k", 0.25))),
		defined("Outer", 13, in("a"), out("b"), parts(callOf("Inner", "i", in("a"), out("b")))),
		defined("Inner", 16, in("a", "c"), out("b"),
			parts(node("LeakyRelu", "l", in("a"), out("b"), attrFrom("alpha", "k", typeFloat))), attrFlt("k", 0.5)))},
	{"branches", 3, with(file(13, input("x", 1, 6), output("y"), yes("c"), callOf("Choose", "f", in("x"), out("u")),
		node("If", "i", in("c"), out("y"), attrGraph("then_branch", weights("w", 6, 2),
			node("MatMul", "m", in("u", "w"), out("y")), output("y")), attrGraph("else_branch", output("x")))),
		defined("Choose", 13, in("a"), out("b"),
			parts(yes("c"), node("If", "if", in("c"), out("b"),
				attrGraph("then_branch", node("Relu", "r", in("a"), out("b")), output("b")),
				attrGraph("else_branch", output("a"))))))},
	{"quantised", 0, file(21, input("x", 1, 4, 8, 8), output("y"), held("s", tFloat), held("z", tUint8),
		held("w", tInt8, 6, 4, 3, 3), held("wz", tInt8), node("QuantizeLinear", "q", in("x", "s", "z"), out("q")),
		node("QLinearConv", "c", in("q", "s", "z", "w", "s", "wz", "s", "z"), out("c")),
		nodeOf("com.microsoft", "QLinearAdd", "a", in("c", "s", "z", "c", "s", "z", "s", "z"), out("a")),
		nodeOf("com.microsoft", "QLinearAveragePool", "p", in("a", "s", "z", "s", "z"), out("p"),
			attrList("kernel_shape", 2, 2)), node("DequantizeLinear", "d", in("p", "s", "z"), out("y")))},
	{"quantised-matrix", 4, file(13, input("x", 1, 6), output("y"), held("w", tInt8, 6, 4), held("s", tFloat),
		held("wz", tInt8), weights("b", 4), node("DynamicQuantizeLinear", "d", in("x"), out("q", "qs", "qz")),
		node("MatMulInteger", "m", in("q", "w", "qz"), out("m")), node("Cast", "k", in("m"), out("k"), attrInt("to", tFloat)),
		nodeOf("com.microsoft", "DynamicQuantizeMatMul", "n", in("x", "w", "s", "wz", "b"), out("n")),
		node("Add", "a", in("k", "n"), out("y")))},
	{"attention", 2, file(23, input("x", 1, 3, 8), input("kv", 1, 5, 4), output("y"), weights("cos", 9, 2),
		weights("sin", 9, 2), list("p", 0, 1, 2), list("ps", 1, 3), node("Reshape", "r", in("p", "ps"), out("pos")),
		node("RotaryEmbedding", "o", in("x", "cos", "sin"), out("q"), attrInt("num_heads", 2)),
		node("Attention", "a", in("q", "kv", "kv"), out("y"), attrInt("q_num_heads", 2), attrInt("kv_num_heads", 1),
			attrInt("is_causal", 1)))},
	{"fused-attention", 0, file(17, input("x", 1, 3, 8), output("y"), weights("w", 8, 24), weights("b", 24),
		weights("g", 8), nodeOf("com.microsoft", "Attention", "a", in("x", "w", "b"), out("a"), attrInt("num_heads", 2)),
		nodeOf("com.microsoft", "SkipLayerNormalization", "s", in("a", "x", "g"), out("s", "", "", "u")),
		nodeOf("com.microsoft", "MultiHeadAttention", "m", in("s", "u", "u", "b"), out("y"), attrInt("num_heads", 4)))},
	{"cache", 0, file(17, input("q", 1, 1, 64), input("pk", 1, 1, 6, 16), input("pv", 1, 1, 6, 16), of("len", tInt32, 1),
		of("total", tInt32), output("y"), output("ck"), weights("w", 32, 8),
		nodeOf("com.microsoft", "GroupQueryAttention", "a", in("q", "", "", "pk", "pv", "len", "total", "w", "w"),
			out("y", "ck", "cv"), attrInt("num_heads", 2), attrInt("kv_num_heads", 1), attrInt("do_rotary", 1)))},
	{"in training", 0, file(17, input("x", 1, 4, 4, 4), output("b"), weights("g", 4),
		nodeOf("", "BatchNormalization", "b", in("x", "g", "g", "g", "g"), out("b", "m", "v"), attrInt("training_mode", 1)))},
	{"einsum", 2, file(12, input("x", 1, 3, 4), input("z", 4, 5), output("y"),
		node("Einsum", "e", in("x", "z"), out("y"), attrStr("equation", "...ij,jk->k...i")))},
}

// TestCorpus: the files for FuzzImport are those above.
func TestCorpus(t *testing.T) {
	dir := filepath.Join("testdata", "fuzz", "FuzzImport")
	known := map[string]bool{}
	for _, c := range corpus {
		known[c.name] = true
		path := filepath.Join(dir, c.name)
		want := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\nint64(%d)\n", c.data, c.batch)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not up to date (go test -run TestCorpus -update): %v", path, err)
		}
		g, err := load(c.data, Options{Batch: c.batch})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		exercise(t, g)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// Go calls what it finds itself after a hash.
		if !known[f.Name()] && len(f.Name()) != 16 {
			t.Errorf("%s is not one of them", f.Name())
		}
	}
}
