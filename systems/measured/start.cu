// Times how kernels begin and end: nodes of a graph that wait for each other. Each block copies a tile of 8 KiB, or does
// nothing. nvcc -O3 -arch=sm_90a start.cu && ./a.out
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#define OK(x) ok(int(x), #x)
constexpr int N = 500, T = 8192, SMS = 132;
__device__ unsigned long long stamps[N][2];
enum Kind { nothing, plain, bulk };

void ok(int error, const char* what) {
  if (error) printf("%s: %d\n", what, error), exit(1);
}

__device__ void stamp(int node, int i) {
  if (threadIdx.x == 0 && blockIdx.x == 0) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(stamps[node][i]));
}

template <Kind K>
__global__ void copy(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, uint4* in,
                     uint4* out, int at, int node) {
  extern __shared__ __align__(1024) char tile[];
  __shared__ unsigned long long barrier;
  if (K == nothing) return;
  stamp(node, 0);
  at += blockIdx.x;
  if (K == plain)
    for (int i = at * T / 16 + threadIdx.x; i < (at + 1) * T / 16; i += blockDim.x) out[i] = in[i];
  else {
    unsigned s = __cvta_generic_to_shared(tile), b = __cvta_generic_to_shared(&barrier), done = 0;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async.shared::cta;" ::"r"(b) : "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "n"(T) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],"
                   " [%1, {%2, %3}], [%4];" ::"r"(s), "l"(&from), "r"(0), "r"(at * 64), "r"(b) : "memory");
    }
    __syncthreads();
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(b) : "memory");
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                   ::"l"(&to), "r"(0), "r"(at * 64), "r"(s) : "memory");
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
  }
  stamp(node, 1);
}

template <Kind K>
void time(const char* what, uint4* in, uint4* out, const CUtensorMap* maps, int blocks, int threads, int shared,
          int cluster, bool cold) {
  cudaStream_t s;
  cudaGraph_t graph;
  cudaGraphExec_t run;
  cudaEvent_t a, b;
  OK(cudaFuncSetAttribute(copy<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  OK(cudaStreamCreate(&s)), OK(cudaEventCreate(&a)), OK(cudaEventCreate(&b));
  cudaLaunchAttribute x;
  x.id = cudaLaunchAttributeClusterDimension;
  x.val.clusterDim.x = cluster, x.val.clusterDim.y = x.val.clusterDim.z = 1;
  cudaLaunchConfig_t c = {dim3(blocks), dim3(threads), size_t(shared), s, &x, cluster > 1};
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < N; i++)
    OK(cudaLaunchKernelEx(&c, copy<K>, maps[0], maps[1], in, out, cold ? i * blocks : 0, i));
  OK(cudaStreamEndCapture(s, &graph)), OK(cudaGraphInstantiate(&run, graph, 0));
  float ms[9];
  for (float& m : ms) {
    OK(cudaEventRecord(a, s)), OK(cudaGraphLaunch(run, s)), OK(cudaEventRecord(b, s)), OK(cudaStreamSynchronize(s));
    OK(cudaEventElapsedTime(&m, a, b));
  }
  std::sort(ms, ms + 9);
  unsigned long long t[N][2];
  OK(cudaMemcpyFromSymbol(t, stamps, sizeof t));
  double inside = 0, between = 0;
  for (int i = 1; i < N && K; i++) inside += t[i][1] - t[i][0], between += t[i][0] - t[i - 1][1];
  printf("%s,%d,%d,%d,%d,%s,%.0f,%.0f,%.0f\n", what, blocks, threads, shared, cluster, cold ? "cold" : "warm",
         1e6 * ms[4] / N, inside / (N - 1), between / (N - 1));
}

int main() {
  size_t size = size_t(N) * SMS * T;
  uint4 *in, *out;
  OK(cudaMalloc(&in, size)), OK(cudaMalloc(&out, size)), OK(cudaMemset(in, 1, size));
  auto encode = (decltype(&cuTensorMapEncodeTiled))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuTensorMapEncodeTiled");
  CUtensorMap maps[2];
  cuuint64_t sizes[] = {64, size / 128}, stride = 128;
  cuuint32_t box[] = {64, 64}, ones[] = {1, 1};
  for (int i = 0; i < 2; i++)
    OK(encode(&maps[i], CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, i ? out : in, sizes, &stride, box, ones,
              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  puts("kernel,blocks,threads,shared bytes,cluster,L2,ns,ns inside,ns between");
#define TIME(K, ...) time<K>(#K, in, out, maps, __VA_ARGS__)
  TIME(nothing, 1, 128, T, 1, false), TIME(nothing, SMS, 128, T, 1, false), TIME(nothing, SMS, 1024, T, 1, false);
  TIME(nothing, 8 * SMS, 256, T, 1, false), TIME(nothing, SMS, 384, 200 << 10, 1, false);
  TIME(nothing, SMS, 384, 200 << 10, 2, false);
  for (bool cold : {false, true})
    for (int blocks : {1, SMS}) {
      TIME(plain, blocks, 512, T, 1, cold), TIME(bulk, blocks, 128, T, 1, cold);
      TIME(bulk, blocks, 384, 200 << 10, 1, cold);
      if (blocks > 1) TIME(bulk, blocks, 384, 200 << 10, 2, cold);
    }
}
