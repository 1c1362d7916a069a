module @mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8x256xf32>, %w1: tensor<256x512xf32>, %b1: tensor<512xf32>, %w2: tensor<64x512xf32>, %b2: tensor<64xf32>) -> (tensor<8x64xf32> {jax.result_info = ""}) {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x256xf32>, tensor<256x512xf32>) -> tensor<8x512xf32>
    %1 = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<512xf32>) -> tensor<1x512xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x512xf32>) -> tensor<8x512xf32>
    %3 = stablehlo.add %0, %2 : tensor<8x512xf32>
    %4 = call @relu(%3) : (tensor<8x512xf32>) -> tensor<8x512xf32>
    %5 = stablehlo.dot_general %4, %w2, contracting_dims = [1] x [1] : (tensor<8x512xf32>, tensor<64x512xf32>) -> tensor<8x64xf32>
    %6 = stablehlo.broadcast_in_dim %b2, dims = [1] : (tensor<64xf32>) -> tensor<8x64xf32>
    %7 = stablehlo.add %5, %6 : tensor<8x64xf32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
    %9 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %10 = stablehlo.maximum %9, %8 : tensor<8xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<8xf32>) -> tensor<8x64xf32>
    %12 = stablehlo.subtract %7, %11 : tensor<8x64xf32>
    %13 = stablehlo.exponential %12 : tensor<8x64xf32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<8xf32>) -> tensor<8x64xf32>
    %16 = stablehlo.divide %13, %15 : tensor<8x64xf32>
    return %16 : tensor<8x64xf32>
  }
  func.func private @relu(%arg0: tensor<8x512xf32>) -> tensor<8x512xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x512xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<8x512xf32>
    return %1 : tensor<8x512xf32>
  }
}
