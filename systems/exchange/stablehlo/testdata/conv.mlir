// Channels in the second place, weights as constants that the printer left out.
module @conv {
  func.func @main(%x: tensor<4x3x32x32xf32>) -> tensor<4x10xf32> {
    %w1 = stablehlo.constant dense_resource<w1> : tensor<16x3x3x3xf32>
    %b1 = stablehlo.constant dense_resource<b1> : tensor<16xf32>
    %w2 = stablehlo.constant dense_resource<w2> : tensor<16x16x3x3xf32>
    %b2 = stablehlo.constant dense_resource<b2> : tensor<16xf32>
    %w3 = stablehlo.constant dense_resource<w3> : tensor<32x16x1x1xf32>
    %b3 = stablehlo.constant dense_resource<b3> : tensor<32xf32>
    %w = stablehlo.constant dense_resource<w> : tensor<32x10xf32>
    %b = stablehlo.constant dense_resource<b> : tensor<10xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %z1 = stablehlo.constant dense<0.0> : tensor<4x16x32x32xf32>
    %z2 = stablehlo.constant dense<0.0> : tensor<4x16x16x16xf32>
    %z3 = stablehlo.constant dense<0.0> : tensor<4x32x8x8xf32>
    %0 = stablehlo.convolution(%x, %w1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<4x16x32x32xf32>
    %1 = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<16xf32>) -> tensor<4x16x32x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x16x32x32xf32>
    %3 = stablehlo.maximum %2, %z1 : tensor<4x16x32x32xf32>
    %4 = "stablehlo.reduce_window"(%3, %low) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %m = stablehlo.maximum %p, %q : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<4x16x32x32xf32>, tensor<f32>) -> tensor<4x16x16x16xf32>
    %5 = "stablehlo.convolution"(%4, %w2) <{dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64, padding = dense<1> : tensor<2x2xi64>}> : (tensor<4x16x16x16xf32>, tensor<16x16x3x3xf32>) -> tensor<4x16x16x16xf32>
    %6 = stablehlo.broadcast_in_dim %b2, dims = [1] : (tensor<16xf32>) -> tensor<4x16x16x16xf32>
    %7 = stablehlo.add %5, %6 : tensor<4x16x16x16xf32>
    %8 = stablehlo.maximum %7, %z2 : tensor<4x16x16x16xf32>
    %9 = stablehlo.add %8, %4 : tensor<4x16x16x16xf32>
    %10 = stablehlo.convolution(%9, %w3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x16x16x16xf32>, tensor<32x16x1x1xf32>) -> tensor<4x32x8x8xf32>
    %11 = stablehlo.broadcast_in_dim %b3, dims = [1] : (tensor<32xf32>) -> tensor<4x32x8x8xf32>
    %12 = stablehlo.add %10, %11 : tensor<4x32x8x8xf32>
    %13 = stablehlo.maximum %12, %z3 : tensor<4x32x8x8xf32>
    %14 = stablehlo.reduce(%13 init: %zero) across dimensions = [2, 3] : (tensor<4x32x8x8xf32>, tensor<f32>) -> tensor<4x32xf32>
     reducer(%p: tensor<f32>, %q: tensor<f32>)  {
      %m = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }
    %n = stablehlo.constant dense<1.562500e-02> : tensor<4x32xf32>
    %15 = stablehlo.multiply %14, %n : tensor<4x32xf32>
    %16 = stablehlo.dot %15, %w : (tensor<4x32xf32>, tensor<32x10xf32>) -> tensor<4x10xf32>
    %17 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<10xf32>) -> tensor<4x10xf32>
    %18 = stablehlo.add %16, %17 : tensor<4x10xf32>
    return %18 : tensor<4x10xf32>
  }
}
