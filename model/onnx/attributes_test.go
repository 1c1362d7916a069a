package onnx

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Attributes with values that none has are refused, unless nothing depends on them: those
// stay as they are in the variant.
func TestExtremeAttributes(t *testing.T) {
	// What these say is of no consequence for shapes and work, or is clamped.
	free := strings.Fields(
		"Dropout.ratio If.then_branch If.else_branch Momentum.alpha Momentum.mode Shape.start Shape.end Slice.ends Constant.value_ints Constant.value_float")
	positive := strings.Fields(
		"kernel_shape strides dilations group K N block_size bits num_heads kv_num_heads q_num_heads blocksize size num_groups num_outputs k p opset")
	tried := 0
	for _, c := range rowCases {
		yields := func(attrs []msg) (string, bool) {
			d := c
			d.attrs = attrs
			s := summary(d.file(), Options{})
			return s, strings.HasPrefix(s, "> ") || strings.Contains(s, "\n> ")
		}
		if _, ok := yields(c.attrs); !ok {
			continue
		}
		op := c.row[:strings.IndexByte(c.row, '@')]
		op = op[strings.LastIndexByte(op, '.')+1:]
		for i, a := range c.attrs {
			_, _, n := protowire.ConsumeTag(a)
			field, _ := protowire.ConsumeBytes(a[n:])
			name := string(field)
			values := map[string]msg{"2^62": attrInt(name, 1<<62), "-2^63": attrInt(name, math.MinInt64),
				"[2^63-1]":    attrList(name, math.MaxInt64),
				"[2^62,2^62]": attrList(name, 1<<62, 1<<62), "1.5": attrFlt(name, 1.5), "NaN": attrFlt(name, float32(math.NaN())),
				"a string": attrStr(name, "NOSUCH")}
			if op == "Attention" && name == "softcap" {
				delete(values, "1.5")
				delete(values, "2^62")
			}
			byDefault := op == "QuantizeLinear" && name == "block_size" || op == "RotaryEmbedding" // 0 is for none
			if slices.Contains(positive, name) && !byDefault {
				values["0"], values["-1"], values["[0]"], values["[-1]"] = attrInt(name, 0), attrInt(name, -1),
					attrList(name, 0), attrList(name, -1)
			}
			for what, value := range values {
				tried++
				s, ok := yields(slices.Replace(slices.Clone(c.attrs), i, i+1, value))
				if ok && !strings.Contains(s, name+"=") && !slices.Contains(free, op+"."+name) {
					t.Errorf("%s with %q of %s becomes\n%s", c.row, name, what, s)
				}
				if !ok && len(s) > 400 {
					t.Errorf("%s with %q of %s: %s", c.row, name, what, s)
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d attributes were tried", tried)
	}
}

func TestRequiredAttributes(t *testing.T) {
	w := held("w", tUint8, 8, 2, 8)
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"no block size", `attribute "block_size" is 0, expected a power of two from 16 on`,
			file(17, input("x", 2, 3, 32), output("y"), w, weights("s", 16),
				nodeOf("com.microsoft", "MatMulNBits", "n", in("x", "w", "s"), out("y"), attrInt("K", 32), attrInt("N", 8)))},
		{"too few scales", `packed weights [8,2,8] and scales [15], expected 128 and 16 elements`,
			file(17, input("x", 2, 3, 32), output("y"), w, weights("s", 15),
				nodeOf("com.microsoft", "MatMulNBits", "n", in("x", "w", "s"), out("y"), attrInt("K", 32), attrInt("N", 8),
					attrInt("block_size", 16)))},
		{"blocks of the quantised table", `scales "s" have shape [8,1], expected [8,2] for blocks of 16`,
			file(17, of("x", tInt64, 5), output("y"), held("w", tUint8, 8, 16), weights("s", 8, 1),
				nodeOf("com.microsoft", "GatherBlockQuantized", "n", in("w", "x", "s"), out("y"), attrInt("block_size", 16)))},
		{"empty blocks of the quantised table", `attribute "block_size" is 0, expected a power of two from 16 on`,
			file(17, of("x", tInt64, 5), output("y"), held("w", tUint8, 8, 16), weights("s", 8, 2),
				nodeOf("com.microsoft", "GatherBlockQuantized", "n", in("w", "x", "s"), out("y"), attrInt("block_size", 0)))},
	} {
		if _, err := load(tt.data, Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// An attribute that no reader asks for is refused, told of, or part of what distinguishes operators, unless the node
// leaves no operator behind.
func TestAttributesThatNobodyReads(t *testing.T) {
	told := 0
	for _, c := range rowCases {
		before := summary(c.file(), Options{})
		if strings.HasPrefix(c.row, "ai.onnx.Dropout@") || strings.HasPrefix(c.row, "ai.onnx.If@") {
			continue // what is left is training's, or of the branch
		}
		if !strings.Contains(before, "\n> ") || !strings.Contains(before, " = ") {
			continue
		}
		c.attrs = append(slices.Clone(c.attrs), attrInt("nobody_reads_this", 7))
		warned := false
		s := summary(c.file(), Options{Warn: func(w string) { warned = warned || strings.Contains(w, "nobody_reads_this") }})
		if warned {
			told++
		}
		if !warned && strings.Contains(s, "\n> ") && !strings.Contains(s, "nobody_reads_this") {
			t.Errorf("%s drops an attribute in silence:\n%s", c.row, s)
		}
	}
	if told == 0 {
		t.Error("none is told of, expected those of nodes of several operators")
	}
}
