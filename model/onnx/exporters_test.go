package onnx

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// external is an initializer whose data lie in a file beside the model.
func external(name string, elem int64, dims []int64, entries ...string) msg {
	m := tensor(name, elem, dims...)
	for i := 0; i < len(entries); i += 2 {
		m = m.sub(13, msg(nil).str(1, entries[i]).str(2, entries[i+1]))
	}
	return msg(nil).sub(5, m.int(14, 1))
}

// cached are a product of new keys with all of them, and how many came before.
func cached() []byte {
	return file(17, input("k", 1, 4, "new", 16), input("pk", 1, 4, "past", 16), output("y"), output("n"),
		node("Concat", "c", in("pk", "k"), out("ck"), attrInt("axis", 2)),
		node("Transpose", "t", in("ck"), out("kt"), attrList("perm", 0, 1, 3, 2)),
		node("MatMul", "m", in("k", "kt"), out("y")), node("Shape", "s", in("pk"), out("n")))
}

// TestExporters imports what exporters write.
func TestExporters(t *testing.T) {
	ms := func(op, name string, in, out []string, attrs ...msg) msg {
		return nodeOf("com.microsoft", op, name, in, out, attrs...)
	}
	scores := func(mode int64, attrs ...msg) []byte {
		return file(24, input("x", 1, 4, 5, 16), input("k", 1, 2, 9, 16), input("m", 5, 9), output("y"), output("s"),
			node("Attention", "a", in("x", "k", "k", "m"), out("y", "", "", "s"),
				append(attrs, attrInt("qk_matmul_output_mode", mode))...))
	}
	past := map[string]int64{"past": 0}
	for _, tt := range []struct {
		name string
		data []byte
		dims map[string]int64
		want string // what the graph, as describe has it, or the error holds
	}{
		{"a mask shorter than the keys", file(24, input("q", 1, 4, 5, 16), input("k", 1, 4, 9, 16), input("m", 5, 6), output("y"),
			node("Attention", "a", in("q", "k", "k", "m"), out("y"))), nil, "a/mask[5,9] = Pad(m)"},
		{"weights of 4 bits, cast", file(21, input("x", 1, 6), output("y"), held("w", 22, 6, 4),
			node("Cast", "c", in("w"), out("f"), attrInt("to", tFloat)), node("MatMul", "m", in("x", "f"), out("y"))), nil,
			"f[6,4] = Cast(w*) Axis=1"},
		{"weights of 4 bits in blocks", file(21, input("x", 1, 64), output("y"), held("w", 21, 64, 4),
			held("s", tFloat, 2, 4), held("z", 21, 2, 4), node("DequantizeLinear", "d", in("w", "s", "z"), out("f"),
				attrInt("axis", 0), attrInt("block_size", 32)), node("MatMul", "m", in("x", "f"), out("y"))), nil,
			"f[64,4] = Dequantize(w* s z)"},
		{"more blocks than elements", file(21, input("x", 1, 6), output("y"), held("w", 22, 6, 4), held("s", tFloat, 7, 4),
			node("DequantizeLinear", "d", in("w", "s"), out("y"), attrInt("axis", 0), attrInt("block_size", 1))), nil,
			`node "d" (DequantizeLinear): scales "s" have shape [7,4], expected [6,4] for blocks of 1`},
		{"empty cache", cached(), map[string]int64{"past": 0, "new": 3}, "ck[1,4,3,16] = Identity(k)"},
		{"full cache", cached(), map[string]int64{"past": 6, "new": 3}, "ck[1,4,9,16] = Concat(pk k) Axis=2"},
		{"empty cache, cast", file(17, input("k", 1, 2, 3), input("p", 1, "past", 3), output("y"),
			node("Cast", "t", in("p"), out("q"), attrInt("to", tHalf)), node("Relu", "r", in("q"), out("s")),
			node("Concat", "c", in("s", "k"), out("y"), attrInt("axis", 1))), past,
			"y[1,2,3] = Identity(k)"},
		{"empty cache that does not fit", file(17, input("k", 1, 2, 3), input("p", 1, "past", 5), output("y"),
			node("Concat", "c", in("p", "k"), out("y"), attrInt("axis", 1))), past,
			`node "c" (Concat): inputs have shapes [1,0,5] and [1,2,3], which differ beside axis 1`},
		{"nothing but emptiness", file(17, input("p", 1, "past", 5), output("y"), node("Relu", "r", in("p"), out("y"))), past,
			"no output has an element"},
		{"cut to nothing", file(17, input("k", 1, 2, 3), output("y"), list("b", 2), list("e", 2), list("a", 1),
			node("Slice", "s", in("k", "b", "e", "a"), out("p")),
			node("Concat", "c", in("p", "k"), out("y"), attrInt("axis", 1))), nil,
			"y[1,2,3] = Identity(k)"},
		{"attention with an empty cache", file(23, input("x", 1, 3, 64), input("k", 1, 3, 32), input("p", 1, 2, "past", 16),
			output("y"), output("ck"), output("cv"),
			node("Attention", "a", in("x", "k", "k", "", "p", "p"), out("y", "ck", "cv"), attrInt("q_num_heads", 4),
				attrInt("kv_num_heads", 2), attrInt("is_causal", 1))), past, "a/scores[1,2,2,3,3] = MatMul("},
		{"attention with an empty cache of other heads",
			file(23, input("x", 1, 3, 64), input("p", 1, 2, "past", 16), output("y"),
				node("Attention", "a", in("x", "x", "x", "", "p", "p"), out("y"), attrInt("q_num_heads", 4),
					attrInt("kv_num_heads", 4))), past,
			`node "a" (Attention): inputs have shapes [1,2,0,16] and [1,4,3,16], which differ beside axis 2`},
		{"attention of heads, with an empty cache", file(23, input("x", 1, 4, 3, 16), input("p", 1, 4, "past", 16),
			output("y"), node("Attention", "a", in("x", "x", "x", "", "p", "p"), out("y"))), past,
			"a/scores[1,4,3,3] = MatMul("},
		{"shares of attention", scores(3), nil, "a/scores/output[1,4,5,9] = Reshape(a/softmax)"},
		{"products of attention", scores(0), nil, "a/scores/output[1,4,5,9] = Reshape(a/scores/scale)"},
		{"capped", scores(1, attrInt("softcap", 30)), nil, "Tanh(a/scores/scale)"},
		{"no such scores", scores(4), nil, `node "a" (Attention): attribute "qk_matmul_output_mode" is 4, expected 0 to 3`},
		{"projecting attention with a cache", file(17, input("x", 1, 3, 64), input("p", 2, 1, 4, "past", 16), output("y"),
			output("c"), weights("w", 64, 192), weights("b", 192),
			ms("Attention", "a", in("x", "w", "b", "", "p"), out("y", "c"), attrInt("num_heads", 4),
				attrInt("unidirectional", 1))), map[string]int64{"past": 6}, "a/present[2,1,4,9,16] = Concat("},
		{"projecting attention with an empty cache",
			file(17, input("x", 1, 3, 64), input("p", 2, 1, 4, "past", 16), output("y"), output("c"), weights("w", 64, 192),
				ms("Attention", "a", in("x", "w", "", "", "p"), out("y", "c"), attrInt("num_heads", 4))), past,
			"a/present[2,1,4,3,16] = Concat("},
		{"cache of other dimensions", file(17, input("x", 1, 3, 64), input("p", 1, 4, 6, 16), output("y"),
			weights("w", 64, 192),
			ms("Attention", "a", in("x", "w", "", "", "p"), out("y"), attrInt("num_heads", 4))), nil,
			`node "a" (Attention): the cache "p" has shape [1,4,6,16], expected [2,batch,head,position,feature]`},
		{"one integer for a list, and a list for one", file(13, input("x", 1, 4, 8, 8), output("y"), weights("w", 4, 4, 3, 3),
			node("Conv", "c", in("x", "w"), out("c"), attrInt("strides", 2), attrInt("pads", 1), attrInt("kernel_shape", 3),
				attrList("group", 1)),
			node("ReduceMean", "r", in("c"), out("y"), attrInt("axes", -1), attrList("keepdims", 0))), nil,
			"Conv(x w*) Strides=[2 2] Dilations=[1 1] Pads=[1 1 1 1] Group=1\ny[1,4,4] = ReduceMean(c) Axes=[3]"},
		{"a list of two for one integer", file(13, input("x", 1, 4), output("y"),
			node("Softmax", "s", in("x"), out("y"), attrList("axis", 0, 1))), nil,
			`node "s" (Softmax): attribute "axis" is the list [0 1], expected an integer`},
		{"a float for an integer", file(13, input("x", 1, 4), output("y"),
			node("Softmax", "s", in("x"), out("y"), attrFlt("axis", 1))), nil,
			`node "s" (Softmax): attribute "axis" is a float, expected an integer`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := load(tt.data, Options{Dims: tt.dims})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v\nwant %s", err, tt.want)
				}
				return
			}
			if got := describe(g); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestExternalValues: shapes of a file lie in another one, as exporters leave them.
func TestExternalValues(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "net")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	values := []byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0} // 2 and 3, after four bytes
	for _, path := range []string{filepath.Join(folder, "w.bin"), filepath.Join(dir, "outside.bin")} {
		if err := os.WriteFile(path, values, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link.bin": "../outside.bin", "inside.bin": "w.bin", "up": "..", "root": "/",
		"self": "self", "here": "."} {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mkfifo", filepath.Join(folder, "pipe")).CombinedOutput(); err != nil {
		t.Logf("no pipe: %v %s", err, out)
	}
	for _, tt := range []struct{ name, location, offset, length, want string }{
		{"beside", "w.bin", "4", "16", ""},
		{"without length", "w.bin", "4", "", ""},
		{"missing", "v.bin", "4", "16",
			`node "r" (Reshape): input 1 ("s") is needed: its values lie in the external file "v.bin", which cannot be read`},
		{"outside", "../outside.bin", "4", "16", "path escapes from parent"},
		{"absolute", filepath.Join(dir, "outside.bin"), "4", "16", "path escapes from parent"},
		{"link", "link.bin", "4", "16", "path escapes from parent"},
		{"link inside", "inside.bin", "4", "16", ""},
		{"folder that is a link inside", "here/here/w.bin", "4", "16", ""},
		{"folder that is a link", "up/outside.bin", "4", "16", "path escapes from parent"},
		{"folder that is an absolute link", filepath.Join("root", dir, "outside.bin"), "4", "16", "path escapes from parent"},
		{"in and out", "here/../../outside.bin", "4", "16", "path escapes from parent"},
		{"link to itself", "self", "4", "16", "too many levels of symbolic links"},
		{"pipe", "pipe", "4", "16", "cannot be read"},
		{"folder", ".", "4", "16", "no regular file but a folder"},
		{"short", "w.bin", "8", "16",
			`initializer "s" has its data at bytes 8 to 24 of the external file "w.bin", which has 20`},
		{"far", "w.bin", "9223372036854775807", "16", `of the external file "w.bin", which has 20`},
		{"length", "w.bin", "4", "12",
			`initializer "s" has 12 bytes of data in the external file "w.bin", expected 16 for shape [2] of INT64`},
		{"offset", "w.bin", "-4", "16",
			`initializer "s" gives the offset of its external data as "-4", expected a number of at least 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries := []string{"location", tt.location, "offset", tt.offset}
			if tt.length != "" {
				entries = append(entries, "length", tt.length)
			}
			path := filepath.Join(folder, "net.onnx")
			data := file(17, input("x", 6), output("y"), external("s", tInt64, []int64{2}, entries...),
				node("Reshape", "r", in("x", "s"), out("y")))
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			g, err := Import(path, Options{})
			switch {
			case tt.want != "":
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), path) {
					t.Errorf("got %v\nwant %s", err, tt.want)
				}
			case err != nil:
				t.Error(err)
			case !g.Tensor(g.Outputs[0]).Shape.Equal(model.Shape{2, 3}):
				t.Errorf("output %v, want [2,3]", g.Tensor(g.Outputs[0]).Shape)
			}
		})
	}
}
