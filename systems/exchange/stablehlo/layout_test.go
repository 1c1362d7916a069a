package stablehlo

import "testing"

// Between convolutions whose channels are last nothing is transposed: normalisation, activation, pooling and
// sums go through, and the mean over positions takes none either.
func TestChannelsLast(t *testing.T) {
	const image, weights = "tensor<1x8x8x6xf32>", "tensor<3x3x6x6xf32>"
	const conv = " dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (" + image + ", " + weights + ") -> " + image
	body := `%t = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x6x8x8xf32>) -> ` + image + `
%k = stablehlo.constant dense_resource<__elided__> : ` + weights + `
%s = stablehlo.constant dense_resource<__elided__> : tensor<6xf32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
%1 = stablehlo.convolution(%t, %k)` + conv + `
%2 = stablehlo.broadcast_in_dim %s, dims = [3] : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
%3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> ` + image + `
%4 = stablehlo.multiply %1, %3 : ` + image + `
%5 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> ` + image + `
%6 = stablehlo.maximum %4, %5 : ` + image + `
%7 = "stablehlo.reduce_window"(%6, %low) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %m = stablehlo.maximum %a, %b : tensor<f32>
  stablehlo.return %m : tensor<f32>
}) : (` + image + `, tensor<f32>) -> ` + image + `
%8 = stablehlo.convolution(%7, %k)` + conv + `
%9 = stablehlo.add %8, %6 : ` + image + `
%10 = stablehlo.reduce(%9 init: %z) applies stablehlo.add across dimensions = [1, 2] : (` + image + `, tensor<f32>) -> tensor<1x6xf32>
%11 = stablehlo.constant dense<64> : tensor<i32>
%12 = stablehlo.convert %11 : (tensor<i32>) -> tensor<f32>
%13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<1x6xf32>
%14 = stablehlo.divide %10, %13 : tensor<1x6xf32>`
	src := one("%x: tensor<1x6x8x8xf32>", body)
	g, err := read(src, Options{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := "Transpose [6,6,3,3]; Conv [2,6,8,8]; Reshape [6,1,1]; Mul [2,6,8,8]; Relu [2,6,8,8]; MaxPool [2,6,8,8]; " +
		"Transpose [6,6,3,3]; Conv [2,6,8,8]; Add [2,6,8,8]; ReduceMean [2,6]"
	if got := kinds(g); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
