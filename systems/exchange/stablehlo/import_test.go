package stablehlo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

func read(src string, opt Options) (*model.Graph, error) {
	return ImportReader("net.mlir", strings.NewReader(src), opt)
}

// kinds lists the operators of a graph as "Kind shape".
func kinds(g *model.Graph) string {
	var list []string
	for _, op := range g.Ops {
		list = append(list, fmt.Sprintf("%s %v", op.Kind, g.Tensor(op.Outputs[0]).Shape))
	}
	return strings.Join(list, "; ")
}

// one is a module of a function with arguments and a body of which the last value is the result.
func one(args, body string) string {
	lines := strings.Split(strings.TrimSpace(body), "\n")
	last := lines[len(lines)-1]
	name, _, _ := strings.Cut(last, " ")
	name, _, _ = strings.Cut(name, ":")
	typ := last[strings.LastIndex(last, "tensor<"):]
	typ = typ[:strings.LastIndex(typ, ">")+1]
	return "func.func @main(" + args + ") -> " + typ + " {\n" + body + "\n  return " + name + " : " + typ + "\n}\n"
}

// TestOperators has both printed forms where they differ by more than quotation marks.
func TestOperators(t *testing.T) {
	const x34, x2 = "%x: tensor<3x4xf32>, %y: tensor<3x4xf32>", "%x: tensor<2x3x8x8xf32>"
	const add = `({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
})`
	zero := "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
	for _, c := range []struct{ name, args, body, want string }{
		{"binary", x34, `%0 = stablehlo.add %x, %y : tensor<3x4xf32>`, "Add [3,4]"},
		{"binary, generic", x34, `%0 = "stablehlo.subtract"(%x, %y) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>`,
			"Sub [3,4]"},
		{"unary", x34, `%0 = stablehlo.tanh %x : tensor<3x4xf32>`, "Tanh [3,4]"},
		{"likened", x34, `%0 = stablehlo.round_nearest_even %x : tensor<3x4xf32>`, "Floor [3,4]"},
		{"leading zeros", "%x: tensor<3x4xi32>", `%0 = stablehlo.count_leading_zeros %x : tensor<3x4xi32>`, "Floor [3,4]"},
		{"rsqrt", x34, `%0 = stablehlo.rsqrt %x : tensor<3x4xf32>`, "Sqrt [3,4]; Reciprocal [3,4]"},
		{"erf", x34, `%0 = chlo.erf %x : tensor<3x4xf32> -> tensor<3x4xf32>`, "Erf [3,4]"},
		{"compare", x34, `%0 = stablehlo.compare  LT, %x, %y,  FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>`,
			"Less [3,4]"},
		{"compare, generic", x34,
			`%0 = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>`, "GreaterOrEqual [3,4]"},
		{"select", x34,
			"%p = stablehlo.compare EQ, %x, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>\n%0 = stablehlo.select %p, %x, %y : tensor<3x4xi1>, tensor<3x4xf32>", "Equal [3,4]; Where [3,4]"},
		{"relu", x34,
			zero +
				"%b = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<3x4xf32>\n%0 = stablehlo.maximum %x, %b : tensor<3x4xf32>", "Relu [3,4]"},
		{"clamp", x34,
			zero +
				"%o = stablehlo.constant dense<6.0> : tensor<f32>\n%0 = stablehlo.clamp %z, %x, %o : (tensor<f32>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>", "Clip [3,4]"},
		{"transpose", x34, `%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>`,
			"Transpose [4,3]"},
		{"transpose, generic", x34,
			`%0 = "stablehlo.transpose"(%x) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<3x4xf32>) -> tensor<4x3xf32>`, "Transpose [4,3]"},
		{"slice", x34, `%0 = stablehlo.slice %x [0:3, 0:4:2] : (tensor<3x4xf32>) -> tensor<3x2xf32>`, "Slice [3,2]"},
		{"slice, generic", x34,
			`%0 = "stablehlo.slice"(%x) <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 4>, strides = array<i64: 1, 1>}> : (tensor<3x4xf32>) -> tensor<2x4xf32>`, "Slice [2,4]"},
		{"concatenate", x34,
			`%0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>`,
			"Concat [6,4]"},
		{"pad", x34,
			zero +
				`%0 = stablehlo.pad %x, %z, low = [1, 0], high = [0, 2], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x6xf32>`, "Pad [4,6]"},
		{"reverse", x34, `%0 = stablehlo.reverse %x, dims = [1] : tensor<3x4xf32>`, "Slice [3,4]"},
		{"dynamic slice", x34,
			"%c = stablehlo.constant dense<1> : tensor<i32>\n%0 = stablehlo.dynamic_slice %x, %c, %c, sizes = [2, 4] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>", "Slice [2,4]"},
		{"update", x34,
			"%c = stablehlo.constant dense<1> : tensor<i32>\n%0 = stablehlo.dynamic_update_slice %x, %y, %c, %c : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>", "Scatter [3,4]"},
		{"reduce", x34,
			zero +
				`%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>`, "ReduceSum [3]"},
		{"reduce, reducer", x34,
			zero +
				"%0 = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>\n reducer(%a: tensor<f32>, %b: tensor<f32>)  {\n %m = stablehlo.maximum %a, %b : tensor<f32>\n stablehlo.return %m : tensor<f32>\n }\n%1 = stablehlo.negate %0 : tensor<4xf32>", "ReduceMax [4]; Neg [4]"},
		{"reduce, generic", x34, zero + `%0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0, 1>}> ` +
			strings.ReplaceAll(add, "\n", " ") + ` : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>`, "ReduceSum []"},
		{"mean", x34,
			zero +
				"%s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>\n%n = stablehlo.constant dense<4.0> : tensor<3xf32>\n%0 = stablehlo.divide %s, %n : tensor<3xf32>", "ReduceMean [3]"},
		{"no mean", x34,
			zero +
				"%s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>\n%n = stablehlo.constant dense<5.0> : tensor<3xf32>\n%0 = stablehlo.divide %s, %n : tensor<3xf32>", "ReduceSum [3]; Div [3]"},
		{"greatest and where", x34, zero + `%c = stablehlo.constant dense<0> : tensor<i32>
%i = stablehlo.iota dim = 1 : tensor<3x4xi32>
%1:2 = stablehlo.reduce(%x init: %z), (%i init: %c) across dimensions = [1] : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
 reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>)  {
  %2 = stablehlo.compare  GT, %a, %b,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %3 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
  %4 = stablehlo.select %2, %p, %q : tensor<i1>, tensor<i32>
  stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
 }
%9 = stablehlo.convert %1#1 : (tensor<3xi32>) -> tensor<3xf32>`, "ArgMax [3]; Cast [3]"},
		{"convolution", x2 + ", %w: tensor<5x3x3x3xf32>",
			`%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>`, "Conv [2,5,4,4]"},
		{"convolution, other layout", "%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x5xf32>",
			`%0 = "stablehlo.convolution"(%x, %w) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<1> : tensor<2x2xi64>, window_strides = array<i64: 1, 1>} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x8x8x5xf32>`,
			"Transpose [2,3,8,8]; Transpose [5,3,3,3]; Conv [2,5,8,8]; Transpose [2,8,8,5]"},
		{"transposed convolution", x2 + ", %w: tensor<5x3x2x2xf32>",
			`%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x16x16xf32>`,
			"Transpose [3,5,2,2]; ConvTranspose [2,5,16,16]"},
		{"pooling", x2,
			zero +
				`%0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ` + strings.ReplaceAll(strings.ReplaceAll(add, "\n", " "), ".add", ".maximum") + ` : (tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x4x4xf32>`, "MaxPool [2,3,4,4]"},
		{"average", x2,
			zero +
				`%s = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ` + strings.ReplaceAll(add, "\n", " ") + " : (tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x4x4xf32>\n%n = stablehlo.constant dense<4.0> : tensor<2x3x4x4xf32>\n%0 = stablehlo.divide %s, %n : tensor<2x3x4x4xf32>", "AveragePool [2,3,4,4]"},
		{"running sum", x34,
			zero +
				`%0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 4>}> ` + strings.ReplaceAll(add, "\n", " ") + ` : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>`, "CumSum [3,4]"},
		{"rows of a table", "%t: tensor<10x4xf32>, %i: tensor<2x5xi32>",
			`%0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, tensor<2x5xi32>) -> tensor<2x5x4xf32>`, "Gather [2,5,4]"},
		{"columns", "%t: tensor<10x4xf32>, %i: tensor<5x1xi32>",
			`%0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 10, 1>}> : (tensor<10x4xf32>, tensor<5x1xi32>) -> tensor<10x5xf32>`, "Reshape [5]; Gather [10,5]"},
		{"product", "%x: tensor<3x4xf32>, %w: tensor<4x5xf32>",
			`%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>`, "MatMul [3,5]"},
		{"transposed product", "%x: tensor<3x4xf32>, %w: tensor<5x4xf32>",
			`%0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>`, "Gemm [3,5]"},
		{"heads", "%q: tensor<2x7x3x4xf32>, %k: tensor<2x5x3x4xf32>",
			`%0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x7x3x4xf32>, tensor<2x5x3x4xf32>) -> tensor<2x3x7x5xf32>`, "Transpose [2,3,7,4]; Transpose [2,3,4,5]; MatMul [2,3,7,5]"},
		{"several contracted", "%x: tensor<2x3x4xf32>, %w: tensor<3x4x5x6xf32>",
			`%0 = stablehlo.dot_general %x, %w, contracting_dims = [1, 2] x [0, 1] : (tensor<2x3x4xf32>, tensor<3x4x5x6xf32>) -> tensor<2x5x6xf32>`, "Reshape [2,12]; Reshape [12,30]; MatMul [2,30]; Reshape [2,5,6]"},
		{"vectors", "%x: tensor<4xf32>, %y: tensor<4xf32>",
			`%0 = stablehlo.dot %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>`,
			"Reshape [1,4]; Reshape [4,1]; MatMul [1,1]; Reshape []"},
		{"bias", "%x: tensor<3x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>",
			"%0 = stablehlo.dot %x, %w : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>\n%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<3x5xf32>\n%2 = stablehlo.add %0, %1 : tensor<3x5xf32>", "Gemm [3,5]"},
		{"batch normalisation", x2 + ", %s: tensor<3xf32>",
			`%0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>`, "BatchNorm [2,3,8,8]"},
		{"sort", x34,
			"%0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %p : tensor<i1> }) : (tensor<3x4xf32>) -> tensor<3x4xf32>", "TopK [3,4]"},
		{"top", x34,
			"%0:2 = chlo.top_k(%x, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)\n%1 = stablehlo.negate %0#0 : tensor<3x2xf32>", "TopK [3,2]; Neg [3,2]"},
		{"expanded", "%b: tensor<4xf32>",
			`%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>`, "Expand [3,4]"},
		{"not expanded", x34 + ", %b: tensor<3xf32>",
			"%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>\n%1 = stablehlo.multiply %x, %0 : tensor<3x4xf32>", "Reshape [3,1]; Mul [3,4]"},
		{"calls", x34,
			"%0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = \"{replicated}\"} : (tensor<3x4xf32>) -> tensor<3x4xf32>\nstablehlo.custom_call @check.expect_close(%x, %y) {has_side_effect = true} : (tensor<3x4xf32>, tensor<3x4xf32>) -> ()\n%1 = stablehlo.abs %0 : tensor<3x4xf32>", "Abs [3,4]"},
		{"blobs", x34,
			"%w = stablehlo.constant dense<\"0x0011\"> : tensor<4x5xf32>\n%0 = stablehlo.dot %x, %w : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>", "MatMul [3,5]"},
		{"locations", x34,
			"%0 = stablehlo.abs %x : tensor<3x4xf32> loc(\"a\"(\"b\"))\n%1 = stablehlo.abs %0 : tensor<3x4xf32> loc(#loc1)\n%2 = stablehlo.negate %1 : tensor<3x4xf32>", "Abs [3,4]; Abs [3,4]; Neg [3,4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := read(one(c.args, c.body), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(g); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

const softmaxModule = `module @m {
  func.func public @main(%arg0: tensor<8x16xf32>) -> (tensor<8x16xf32> {jax.result_info = ""}) {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x16xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<8x16xf32>
    %4 = stablehlo.exponential %3 : tensor<8x16xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
    %7 = stablehlo.divide %4, %6 : tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
}
`

// A softmax is one only if all its parts are of one tensor along one axis.
func TestSoftmax(t *testing.T) {
	g, err := read(softmaxModule, Options{})
	if err != nil || kinds(g) != "Softmax [8,16]" {
		t.Fatalf("%v, %v", g, err)
	}
	for _, other := range [][2]string{{"%4 init: %zero", "%arg0 init: %zero"},
		{"stablehlo.maximum across", "stablehlo.minimum across"},
		{"subtract %arg0", "add %arg0"}} {
		g, err := read(strings.Replace(softmaxModule, other[0], other[1], 1), Options{})
		if err != nil || strings.Contains(kinds(g), "Softmax") {
			t.Errorf("%v: %v, %v", other, kinds(g), err)
		}
	}
}

const layers = `module {
  func.func private @dense(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %c = stablehlo.constant dense<0.0> : tensor<4x6xf32>
    %1 = stablehlo.maximum %0, %c : tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
  func.func public @main(%arg0: tensor<4x2x3xf32>, %arg1: tensor<6x6xf32>) -> tensor<24xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
    %1 = call @dense(%0, %arg1) : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %2 = func.call @dense(%1, %arg1) : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %3 = stablehlo.reshape %2 : (tensor<4x6xf32>) -> tensor<24xf32>
    func.return %3 : tensor<24xf32>
  }
}
`

// The batch goes through functions, reshapes and constants; what is read as a weight is one.
func TestBatch(t *testing.T) {
	for batch, want := range map[int64]string{
		0: "Reshape [4,6]; MatMul [4,6]; Relu [4,6]; MatMul [4,6]; Relu [4,6]; Reshape [24]",
		1: "Reshape [1,6]; MatMul [1,6]; Relu [1,6]; MatMul [1,6]; Relu [1,6]; Reshape [6]",
		9: "Reshape [9,6]; MatMul [9,6]; Relu [9,6]; MatMul [9,6]; Relu [9,6]; Reshape [54]",
	} {
		var said []string
		g, err := read(layers, Options{Batch: batch, Warn: func(s string) { said = append(said, s) }})
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds(g); got != want {
			t.Errorf("batch %d: %s, want %s", batch, got, want)
		}
		if g.Params() != 36 || len(g.Inputs) != 1 || len(said) != 1 || !strings.Contains(said[0], "%arg1") {
			t.Errorf("batch %d: %d parameters, %d inputs, said %q", batch, g.Params(), len(g.Inputs), said)
		}
	}
	// At batch 1 ones in front of a shape are the batch, and come and go.
	one := `func.func @main(%x: tensor<1x2x3xf32>) -> tensor<1x6xf32> {
  %0 = stablehlo.reshape %x : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.negate %0 : tensor<2x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x3xf32>) -> tensor<1x6xf32>
  return %2 : tensor<1x6xf32>
}`
	g, err := read(one, Options{Batch: 5})
	if err != nil || kinds(g) != "Reshape [10,3]; Neg [10,3]; Reshape [5,6]" {
		t.Errorf("%v, %v", kinds(g), err)
	}
	// Else they are not.
	four := `func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
  %1 = stablehlo.negate %0 : tensor<1x4x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}`
	g, err = read(four, Options{Batch: 2})
	if err != nil || kinds(g) != "Reshape [1,2,3]; Neg [1,2,3]; Reshape [2,3]" {
		t.Errorf("%v, %v", kinds(g), err)
	}
}

// The types of elements are those that operators and functions give.
func TestElementTypes(t *testing.T) {
	const args = "%x: tensor<3x4xf32>, %h: tensor<3x4xf16>, %i: tensor<3x4xi32>, %p: tensor<3x4xi1>, %w: tensor<4x2xf32>"
	const zero = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
	for _, c := range []struct{ body, want string }{
		{`%0 = stablehlo.add %x, %h : tensor<3x4xf32>`, "has h of type tensor<3x4xf16>, expected elements f32 as of x"},
		{`%0 = stablehlo.negate %i : (tensor<3x4xi32>) -> tensor<3x4xf32>`, "has 0 of type tensor<3x4xf32>, expected elements i32 as of i"},
		{`%0 = stablehlo.compare LT, %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>`, "expected elements i1"},
		{`%0 = stablehlo.select %i, %x, %x : tensor<3x4xi32>, tensor<3x4xf32>`, "has i of type tensor<3x4xi32>, expected elements i1"},
		{`%0 = stablehlo.select %p, %x, %h : tensor<3x4xi1>, tensor<3x4xf32>`, "has h of type tensor<3x4xf16>"},
		{`%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xi32>`,
			"expected elements of floats as of x"},
		{zero + `%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xi32>`,
			"expected elements of floats as of x"},
		{`%0 = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<12xf16>`, "expected elements f32 as of x"},
		{`%0 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [1] : (tensor<3x4xf16>, tensor<3x4xf16>) -> tensor<3x3xf32>`, ""},
		{`%0 = stablehlo.convert %x : (tensor<3x4xf32>) -> tensor<3x4xi32>`, ""},
	} {
		_, err := read(one(args, c.body), Options{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
	const called = "func.func private @f(%a: tensor<3xf32>) -> tensor<3xf32> {\n return %a : tensor<3xf32>\n}\n"
	for _, c := range []struct{ out, body, want string }{
		{" -> tensor<3xf16>", "return %x : tensor<3xf32>",
			"line 2, column 1: function @main returns x of type tensor<3xf32>, expected tensor<3xf16>"},
		{" -> tensor<2xf32>", "return %x : tensor<3xf32>", "expected tensor<2xf32>"},
		{" -> (tensor<3xf32>, tensor<3xf32>)", "return %x : tensor<3xf32>", "function @main returns 1 values, expected 2"},
		{"", "return %x : tensor<3xf32>", ""},
		{" -> tensor<3xf32>", "%0 = call @f(%y) : (tensor<4xf32>) -> tensor<3xf32>\nreturn %0 : tensor<3xf32>",
			"function @f takes y of type tensor<4xf32>, expected tensor<3xf32>"},
		{" -> tensor<3xf16>", "%0 = call @f(%x) : (tensor<3xf32>) -> tensor<3xf16>\nreturn %0 : tensor<3xf16>",
			"function @f returns x of type tensor<3xf32>, expected tensor<3xf16>"},
	} {
		src := "func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>)" + c.out + " {\n" + c.body + "\n}\n"
		if strings.Contains(src, "@f") {
			src += called
		}
		_, err := read(src, Options{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", src, err, c.want)
		}
	}
}

// Both printed forms of one module give one graph.
func TestForms(t *testing.T) {
	generic := `"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>, sym_name = "dense", sym_visibility = "private"}> ({
  ^bb0(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>):
    %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %c = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<4x6xf32>}> : () -> tensor<4x6xf32>
    %1 = "stablehlo.maximum"(%0, %c) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    "func.return"(%1) : (tensor<4x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x2x3xf32>, tensor<6x6xf32>) -> tensor<24xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4x2x3xf32>, %arg1: tensor<6x6xf32>):
    %0 = "stablehlo.reshape"(%arg0) : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
    %1 = "func.call"(%0, %arg1) <{callee = @dense}> : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %2 = "func.call"(%1, %arg1) <{callee = @dense}> : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<4x6xf32>) -> tensor<24xf32>
    "func.return"(%3) : (tensor<24xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
`
	a, err := read(layers, Options{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := read(generic, Options{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	dump := func(g *model.Graph) string {
		var s strings.Builder
		for _, x := range g.Tensors {
			fmt.Fprintln(&s, x.Name, x.Shape, x.DType, x.Role, x.Learned)
		}
		for _, o := range g.Ops {
			fmt.Fprintln(&s, o.Name, o.Kind, *o.Attr, o.Inputs, o.Outputs)
		}
		return s.String()
	}
	if x, y := dump(a), dump(b); x != y {
		t.Errorf("pretty:\n%s\ngeneric:\n%s", x, y)
	}
}

func TestDynamic(t *testing.T) {
	src := `func.func @main(%arg0: tensor<?x?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %p = stablehlo.multiply %n, %m : tensor<i32>
  %s = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %arg0, %s : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %1 = stablehlo.abs %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}`
	g, err := read(src, Options{Batch: 3, Dims: map[string]int64{"arg0.1": 5}})
	if err != nil || kinds(g) != "Reshape [15]; Abs [15]" {
		t.Errorf("%v, %v", g, err)
	}
	if _, err := read(src, Options{Batch: 3}); err == nil || !strings.Contains(err.Error(), "--dim arg0.1=N") {
		t.Error(err)
	}
	if _, err := read(src, Options{Batch: 3, Dims: map[string]int64{"arg0.1": 5, "arg0.7": 5}}); err == nil ||
		!strings.Contains(err.Error(), `"arg0.7"`) {
		t.Error(err)
	}
}

// A layer that JAX maps over a batch has its weights on the left and its result transposed.
func TestMappedLayer(t *testing.T) {
	const generic = `"stablehlo.dot_general"(%w, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2]>}>`
	const pretty = `stablehlo.dot_general %w, %x, contracting_dims = [1] x [2]`
	for _, form := range []string{pretty, generic} {
		src := one("%w: tensor<6x4xf32>, %b: tensor<6xf32>, %x: tensor<3x2x4xf32>", "%0 = "+form+
			` : (tensor<6x4xf32>, tensor<3x2x4xf32>) -> tensor<6x3x2xf32>
%1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<6x3x2xf32>) -> tensor<3x2x6xf32>
%2 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<6xf32>) -> tensor<3x2x6xf32>
%3 = stablehlo.add %1, %2 : tensor<3x2x6xf32>`)
		g, err := read(src, Options{Batch: 5})
		const want = "Transpose [4,6]; MatMul [5,2,6]; Add [5,2,6]"
		if err != nil || kinds(g) != want || g.Params() != 30 || len(g.Inputs) != 1 {
			t.Errorf("%v, %v", g, err)
		}
		still := strings.NewReplacer("[1, 2, 0]", "[2, 1, 0]", "3x2x6", "2x3x6").Replace(src)
		if g, err := read(still, Options{}); err != nil || !strings.Contains(kinds(g), "Transpose [2,3,6]") {
			t.Errorf("%v, %v", g, err)
		}
	}
}

// A result that is transposed after a product of inputs with weights stays as it is written.
func TestTransposedProduct(t *testing.T) {
	for args, layer := range map[string]string{
		"%x: tensor<32x64xf32>, %w: tensor<64x8xf32>": "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : " +
			"(tensor<32x64xf32>, tensor<64x8xf32>) -> tensor<32x8xf32>",
		"%x: tensor<32x64xf32>, %w: tensor<8x64xf32>": "stablehlo.abs %x : tensor<32x64xf32>\n" +
			"%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] : " +
			"(tensor<32x64xf32>, tensor<8x64xf32>) -> tensor<32x8xf32>",
	} {
		last := strings.Count(layer, "\n")
		g, err := read(one(args, fmt.Sprintf("%%0 = %s\n%%%d = stablehlo.transpose %%%d, dims = [1, 0] : "+
			"(tensor<32x8xf32>) -> tensor<8x32xf32>", layer, last+1, last)), Options{Batch: 5})
		if err != nil || g.Params() != 512 || !strings.Contains(kinds(g), " [5,8]; Transpose [8,5]") {
			t.Errorf("%s: %v, %v", args, g, err)
		}
	}
}

// Marks decide what is a weight.
func TestMarks(t *testing.T) {
	src := one(
		"%a: tensor<4x4xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>}, %b: tensor<4x4xf32> {ttcore.argument_type = #ttcore.argument_type<input>}",
		"%0 = stablehlo.dot %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>")
	g, err := read(src, Options{})
	if err != nil || len(g.Inputs) != 1 || g.Tensor(g.Inputs[0]).Name != "b" || g.Params() != 16 {
		t.Errorf("%v, %v", g, err)
	}
}

func TestErrors(t *testing.T) {
	const head = "func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {\n"
	for _, c := range []struct{ src, want string }{
		{"", "not StableHLO text"},
		{"nonsense", `line 1, column 1: found "nonsense", expected a function`},
		{head + "  %0 = stablehlo.add %x, %y : tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}",
			"line 2, column 8: stablehlo.add: reads %y"},
		{head + "  %0 = stablehlo.frobnicate %x : tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}",
			"stablehlo.frobnicate: is not among the operators"},
		{
			head +
				"  %0 = stablehlo.custom_call @cublas(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}",
			"stablehlo.custom_call: calls @cublas, which is not known"},
		{
			head +
				"  %0 = stablehlo.rng %x, %x, %x, distribution = UNIFORM : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}", "stablehlo.rng: random numbers"},
		{head + "  %0 = stablehlo.while(%i = %x) : tensor<3x4xf32>\n cond { } do { }\n}",
			"line 2, column 8: stablehlo.while: has a region that does not return"},
		{
			head +
				"  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}", "has the result [4,3], its type says [3,4]"},
		{
			head +
				"  %0 = stablehlo.transpose %x, dims = [1, 7] : (tensor<3x4xf32>) -> tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}", "is no permutation"},
		{head + "  %0 = stablehlo.abs %x : tensor<3x4xcomplex<f32>>\n return %0 : tensor<3x4xf32>\n}", ""},
		{head + "  return %x : tensor<3x4xf32>\n", "the end of the file"},
		{head + "}", "does not return"},
		{
			"func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32>\n}\nfunc.func @b(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32>\n}", "2 functions that no other calls (@a, @b)"},
		{
			"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n %0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32>\n}", "calls itself"},
		{"func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.1>>) -> tensor<4xf32> {\n return %x : tensor<4xf32>\n}",
			"!quant.uniform<i8:f32, 0.1>"},
		{"func.func @main() { " + strings.Repeat("\"a.b\"() ({", 5000), "nested deeper than 200"},
	} {
		_, err := read(c.src, Options{})
		if c.want == "" {
			continue // either way, without a panic
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "net.mlir: ") {
			t.Errorf("%.60q: %v, want %s", c.src, err, c.want)
		}
	}
	var e *Error
	_, err := read(head+"  %0 = stablehlo.fft %x : tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}", Options{})
	if !errors.As(err, &e) || e.Line != 2 || e.Col != 8 || e.Op != "stablehlo.fft" {
		t.Errorf("%+v", err)
	}
	// What is not known costs one operation per element, if that is wanted.
	g, err := read(head+"  %0 = stablehlo.fft %x : tensor<3x4xf32>\n return %0 : tensor<3x4xf32>\n}",
		Options{AllowUnknown: true})
	if err != nil || kinds(g) != "Unknown [3,4]" {
		t.Errorf("%v, %v", g, err)
	}
}

// TestTable: the table has each name once, and nothing that is refused.
func TestTable(t *testing.T) {
	if len(table) != len(rows) || len(rows) < 60 {
		t.Errorf("%d rows, %d names", len(rows), len(table))
	}
	for name := range refused {
		if table[name] != nil {
			t.Errorf("%s is refused and has a row", name)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(softmaxModule, int64(1))
	f.Add(layers, int64(3))
	f.Add(one("%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x5xf32>",
		`%0 = "stablehlo.convolution"(%x, %w) {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = dense<1> : tensor<2x2xi64>} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x8x8x5xf32>`), int64(2))
	f.Add(one("%t: tensor<10x4xf32>, %i: tensor<5x1xi32>",
		`%0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 10, 1>}> : (tensor<10x4xf32>, tensor<5x1xi32>) -> tensor<10x5xf32>`), int64(0))
	f.Add(one("%x: tensor<3x4xf32>", "%0 = stablehlo.slice %x [0:3, 0:4:2] : (tensor<3x4xf32>) -> tensor<3x2xf32>"),
		int64(0))
	f.Fuzz(func(t *testing.T, src string, batch int64) {
		g, err := read(src, Options{Batch: max(0, batch%64), AllowUnknown: batch%2 == 0})
		if err != nil {
			return
		}
		if err := g.Validate(); err != nil {
			t.Error(err)
		}
	})
}

// What decides a branch or a loop must follow from constants; then what runs is put in its place.
func TestControl(t *testing.T) {
	const head = "func.func @main(%x: tensor<3x4xf32>, %k: tensor<i32>) -> tensor<3x4xf32> {\n"
	const branches = ` ({ %a = stablehlo.abs %x : tensor<3x4xf32>
 stablehlo.return %a : tensor<3x4xf32> }, { %a = stablehlo.tanh %x : tensor<3x4xf32>
 stablehlo.return %a : tensor<3x4xf32> })`
	const end = "\nreturn %0 : tensor<3x4xf32> }"
	number := func(n int) string { return fmt.Sprintf("%%n = stablehlo.constant dense<%d> : tensor<i32>\n", n) }
	chosen := func(n int) string {
		return head + number(n) + `%0 = "stablehlo.case"(%n)` + branches + " : (tensor<i32>) -> tensor<3x4xf32>" + end
	}
	branch := func(by string) string {
		return head + number(5) + "%m = stablehlo.constant dense<[7]> : tensor<1xi32>\n%p = stablehlo.compare " + by +
			", %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" + `%0 = "stablehlo.if"(%p)` + branches +
			" : (tensor<i1>) -> tensor<3x4xf32>" + end
	}
	loop := func(n int, step, by string) string {
		return head + number(n) + `%z = stablehlo.constant dense<0> : tensor<i32>
%s = stablehlo.constant dense<` + step + `> : tensor<i32>
%0:2 = stablehlo.while(%a = %x, %i = %z) : tensor<3x4xf32>, tensor<i32>
cond {
  %c = stablehlo.compare LT, %i, ` + by + ` : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %r = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 4] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32>
  %e = stablehlo.add %a, %b : tensor<3x4xf32>
  %j = stablehlo.add %i, %s : tensor<i32>
  stablehlo.return %e, %j : tensor<3x4xf32>, tensor<i32>
}
return %0#0 : tensor<3x4xf32> }`
	}
	generic := strings.NewReplacer("stablehlo.while(%a = %x, %i = %z) : tensor<3x4xf32>, tensor<i32>",
		`"stablehlo.while"(%x, %z) (`, "cond {", "{\n^bb0(%a: tensor<3x4xf32>, %i: tensor<i32>):",
		"} do {", "}, {\n^bb0(%a: tensor<3x4xf32>, %i: tensor<i32>):",
		"}\nreturn", "}) : (tensor<3x4xf32>, tensor<i32>) -> (tensor<3x4xf32>, tensor<i32>)\nreturn")
	turn := func(n int) string {
		return strings.TrimSuffix(strings.Repeat("Slice [1,4]; Reshape [4]; Add [3,4]; ", n), "; ")
	}
	for _, c := range []struct{ name, src, want string }{
		{"first branch", chosen(0), "Abs [3,4]"},
		{"second branch", chosen(1), "Tanh [3,4]"},
		{"no such branch", chosen(2), "Tanh [3,4]"},
		{"a negative branch", chosen(-1), "Tanh [3,4]"},
		{"a branch at run time", strings.Replace(chosen(0), `case"(%n)`, `case"(%k)`, 1),
			"line 3, column 6: stablehlo.case: branches that are chosen at run time are not read"},
		{"true", branch("LE"), "Abs [3,4]"},
		{"false", branch("LT"), "Tanh [3,4]"},
		{"three turns", loop(3, "1", "%n"), turn(3)},
		{"three turns, generic", generic.Replace(loop(3, "1", "%n")), turn(3)},
		{"two turns of two", loop(3, "2", "%n"), turn(2)},
		{"no turn", loop(0, "1", "%n"), ""},
		{"turns at run time", loop(3, "1", "%k"),
			"line 5, column 8: stablehlo.while: loops whose number of turns is known at run time only are not read"},
		{"no end", loop(3, "0", "%n"), "line 5, column 8: stablehlo.while: loops of more than 1024 turns are not read"},
		{"too many turns", loop(1025, "1", "%n"),
			"line 5, column 8: stablehlo.while: loops of more than 1024 turns are not read"},
	} {
		g, err := read(c.src, Options{})
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "net.mlir: ")
		} else {
			got = kinds(g)
		}
		if got != c.want {
			t.Errorf("%s: got %s\nwant %s\n%s", c.name, got, c.want, c.src)
		}
	}
	// Each turn reads the row of its own.
	g, err := read(loop(3, "1", "%n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var starts []int64
	for _, op := range g.Ops {
		if op.Kind == "Slice" {
			starts = append(starts, op.Attr.Starts[0])
		}
	}
	if fmt.Sprint(starts) != "[0 1 2]" {
		t.Errorf("turns read rows %v", starts)
	}
}

// What says nothing of values passes them on.
func TestPassed(t *testing.T) {
	const x = "%x: tensor<4x8xf32>, %y: tensor<4x8xf32>"
	const add = "\n%1 = stablehlo.add %0#0, %0#1 : tensor<4x8xf32>"
	for _, c := range []struct{ name, args, body, want string }{
		{"a barrier of two", x, "%0:2 = stablehlo.optimization_barrier %x, %y : tensor<4x8xf32>, tensor<4x8xf32>" + add,
			"Add [4,8]"},
		{"a barrier of two, generic", x, `%0:2 = "stablehlo.optimization_barrier"(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)` +
			add, "Add [4,8]"},
		{"a sharding", x + ` {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y":(1)2}p1], replicated={"z"}>}`,
			`%0 = sdy.sharding_constraint %x <@mesh, [{"x", ?}, {}p0]> : tensor<4x8xf32>
%1 = sdy.reshard %0 <@mesh, [{"x":(1)2}, {}]> : tensor<4x8xf32>
sdy.sharding_group %1 group_id=21 : tensor<4x8xf32>
%2 = sdy.propagation_barrier %1 allowed_direction=NONE : tensor<4x8xf32>
%3 = stablehlo.abs %2 : tensor<4x8xf32>`, "Abs [4,8]"},
		{"several devices", x, `%0 = sdy.all_gather [{}, {"x"}] %x out_sharding=<@mesh, [{"y"}, {}]> : tensor<4x8xf32>`,
			"line 2, column 6: sdy.all_gather: several devices have no counterpart"},
		{"bits of another width", "%x: tensor<4xf32>",
			"%0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4x4xui8>",
			"line 2, column 6: stablehlo.bitcast_convert: from tensor<4xf32> to another width, tensor<4x4xui8>, has no counterpart"},
	} {
		g, err := read(one(c.args, c.body), Options{})
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "net.mlir: ")
		} else {
			got = kinds(g)
		}
		if got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
	if _, err := read("ML\xefR\rStableHLO_v1.8.0", Options{}); err == nil ||
		!strings.Contains(err.Error(), "MLIR bytecode: print it as text") {
		t.Errorf("bytecode: %v", err)
	}
	number := "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n return %x : tensor<f32>\n}"
	if _, err := read(number, Options{Batch: 4}); err == nil ||
		!strings.Contains(err.Error(), "batch 4: the network has no argument with a leading dimension") {
		t.Errorf("a batch of a number: %v", err)
	}
}
