module @head {
  func.func private @project(%x: tensor<2x128x256xf32>, %w: tensor<256x64xf32>, %b: tensor<64xf32>) -> tensor<2x128x64xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x128x256xf32>, tensor<256x64xf32>) -> tensor<2x128x64xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<64xf32>) -> tensor<2x128x64xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x128x64xf32>
    return %2 : tensor<2x128x64xf32>
  }
  func.func public @main(%x: tensor<2x128x256xf32>, %wq: tensor<256x64xf32>, %bq: tensor<64xf32>, %wk: tensor<256x64xf32>, %bk: tensor<64xf32>, %wv: tensor<256x64xf32>, %bv: tensor<64xf32>, %w: tensor<64x256xf32>) -> tensor<2x128x256xf32> {
    %q = call @project(%x, %wq, %bq) : (tensor<2x128x256xf32>, tensor<256x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
    %k = call @project(%x, %wk, %bk) : (tensor<2x128x256xf32>, tensor<256x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
    %v = call @project(%x, %wv, %bv) : (tensor<2x128x256xf32>, tensor<256x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
    %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x64xf32>, tensor<2x128x64xf32>) -> tensor<2x128x128xf32>
    %scale = stablehlo.constant dense<1.250000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<2x128x128xf32>
    %1 = stablehlo.multiply %s, %0 : tensor<2x128x128xf32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x128xf32>, tensor<f32>) -> tensor<2x128xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x128xf32>) -> tensor<2x128x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x128x1xf32>) -> tensor<2x128x128xf32>
    %5 = stablehlo.subtract %1, %4 : tensor<2x128x128xf32>
    %6 = stablehlo.exponential %5 : tensor<2x128x128xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x128xf32>, tensor<f32>) -> tensor<2x128xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x128xf32>
    %9 = stablehlo.divide %6, %8 : tensor<2x128x128xf32>
    %10 = stablehlo.dot_general %9, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x128xf32>, tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
    %11 = stablehlo.dot_general %10, %w, contracting_dims = [2] x [0] : (tensor<2x128x64xf32>, tensor<64x256xf32>) -> tensor<2x128x256xf32>
    %12 = stablehlo.add %11, %x : tensor<2x128x256xf32>
    return %12 : tensor<2x128x256xf32>
  }
}
