// Rates of the CPU plugin's products beside the processor's register-only peak.
//
//   cpu_kernels_bench PLUGIN [THREADS [PART OF A NAME]]
//
// One line for each shape and kernel that fits it, the one that the engine would choose first:
// GFLOP/s on the clock and by processor time, and the latter's ratio to the peak of f32 arithmetic,
// of which a processor that multiplies pairs of bf16 can reach twice as much. Rates are the best of
// some short runs: the machine may be shared.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/abi/node.h"
#include "heddle/device.hpp"
#include "op_cases.h"
#include "test_device.h"

namespace heddle::conformance {

namespace {

// Processor time of all threads.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// ---- the peak: multiply-adds that never leave the registers ----

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * kWidth)));

// Gives the number of operations done.
double spin(std::int64_t count) {
  const Floats zero{}, b = zero + 0.999f, c = zero + 0.001f;
  Floats a0 = zero, a1 = zero + 1, a2 = zero + 2, a3 = zero + 3, a4 = zero + 4;
  Floats a5 = zero + 5, a6 = zero + 6, a7 = zero + 7, a8 = zero + 8, a9 = zero + 9;
  for (std::int64_t i = 0; i < count; ++i) {
    a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c, a4 = a4 * b + c;
    a5 = a5 * b + c, a6 = a6 * b + c, a7 = a7 * b + c, a8 = a8 * b + c, a9 = a9 * b + c;
  }
  const Floats sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;
  static volatile float sink;  // so that the work counts as used
  sink = sum[0];
  return 2.0 * 10 * kWidth * static_cast<double>(count);
}

// GFLOP/s of all threads together, by processor time.
double peak(unsigned threads) {
  double best = 0;
  for (int run = 0; run < 8; ++run) {
    const double start = processor_seconds();
    const double flops = spin(3'000'000);
    best = std::max(best, flops / (processor_seconds() - start) / 1e9);
  }
  return best * threads;
}

// ---- the shapes ----

struct Linear {
  std::int64_t m, n, k;
};
struct Conv {
  std::int64_t size, in, out;
};
struct Attention {
  std::int64_t queries, keys, heads, d;
};

HostTensor numbers(heddle_dtype dtype, Shape shape) {
  HostTensor tensor(dtype, std::move(shape));
  if (device::is_block_format(dtype)) {  // small scales and numbers, whatever they mean
    std::byte* const data = tensor.memory().data() + tensor.origin();
    const std::int64_t bytes = device::bytes_of(dtype, tensor.count());
    for (std::int64_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 % 31);
    return tensor;
  }
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    tensor.set(i, static_cast<double>(i * 7 % 31 - 15) / 64);
  return tensor;
}

OpCase linear_case(Linear s, heddle_dtype type, heddle_dtype weight) {
  return {.name = device::cat("linear ", s.m, " x ", s.k, " to ", s.n, ", ",
                              device::dtype_name(type), " by ", device::dtype_name(weight)),
          .op = HEDDLE_OP_LINEAR,
          .in = {numbers(type, {1, s.m, s.k}), numbers(weight, {s.n, s.k}),
                 numbers(HEDDLE_F32, {s.n}), std::nullopt},
          .out = {HostTensor(type, {1, s.m, s.n})},
          .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
          .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
}

OpCase conv_case(Conv s, heddle_dtype type, heddle_dtype weight) {
  return {.name = device::cat("conv 3x3 ", s.in, " to ", s.out, " at ", s.size, "^2, ",
                              device::dtype_name(type), " by ", device::dtype_name(weight)),
          .op = HEDDLE_OP_CONV2D,
          .in = {numbers(type, {1, s.size, s.size, s.in}), numbers(weight, {s.out, s.in, 3, 3}),
                 numbers(HEDDLE_F32, {s.out}), std::nullopt},
          .out = {HostTensor(type, {1, s.size, s.size, s.out})},
          .attrs = bytes_of(heddle_conv2d_attrs{{1, 1}, {1, 1, 1, 1}}),
          .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}};
}

OpCase attention_case(Attention s, heddle_dtype type) {
  return {
      .name = device::cat("attention ", s.queries, " x ", s.keys, ", ", s.heads, " heads of ", s.d,
                          ", ", device::dtype_name(type)),
      .op = HEDDLE_OP_ATTENTION,
      .in = {numbers(type, {1, s.queries, s.heads, s.d}), numbers(type, {1, s.keys, s.heads, s.d}),
             numbers(type, {1, s.keys, s.heads, s.d}), std::nullopt},
      .out = {HostTensor(type, {1, s.queries, s.heads, s.d})},
      .attrs = bytes_of(heddle_attention_attrs{0.1, 0, 0})};
}

struct Figures {
  double peak;
  unsigned threads;
  std::string part;  // of the names to measure
};

// Reference kernels are not worth waiting for.
void print(const TestDevice& device, OpCase op_case, double flops, const Figures& figures) {
  if (op_case.name.find(figures.part) == std::string::npos) return;
  for (const heddle_kernel* kernel : device.fitting(op_case)) {
    if (std::string(kernel->name) == "reference") continue;
    double wall = 1e30, processor = 1e30;
    for (int i = 0; i < 3; ++i) {
      wall = std::min(wall, device.measure(op_case, kernel, 0.03, wall_seconds));
      processor = std::min(
          processor, device.measure(op_case, kernel, 0.03, processor_seconds) / figures.threads);
    }
    const auto rate = [flops](double seconds) { return flops / seconds / 1e9; };
    std::printf("%-48s %-7s wall %6.1f  processor %6.1f = %3.0f %%\n", op_case.name.c_str(),
                kernel->name, rate(wall), rate(processor), 100 * rate(processor) / figures.peak);
    std::fflush(stdout);
  }
}

int run(const std::string& path, unsigned threads, const std::string& part) {
  const Plugin plugin(path);
  const TestDevice device(plugin, {{"threads", std::int64_t{threads}}});
  const Figures figures{peak(threads), threads, part};
  std::printf("%s, %u threads, register-only peak %.1f; all in GFLOP/s\n", device.info().name,
              threads, figures.peak);
  // Activations and weights: as they are with f32, with bf16, and with f32 on a 16-bit file.
  constexpr std::pair<heddle_dtype, heddle_dtype> kTypes[] = {
      {HEDDLE_F32, HEDDLE_F32}, {HEDDLE_BF16, HEDDLE_BF16}, {HEDDLE_F32, HEDDLE_BF16}};
  for (const Linear s : {Linear{320, 256, 256}, Linear{320, 768, 256}, Linear{256, 1024, 256},
                         Linear{256, 256, 1024}, Linear{64, 1024, 256}, Linear{320, 768, 768},
                         Linear{1344, 3072, 768}, Linear{1344, 3072, 3072},
                         Linear{512, 12288, 3072}, Linear{77, 768, 768}, Linear{1, 18432, 3072}})
    for (const auto& [type, weight] : kTypes)
      print(device, linear_case(s, type, weight), 2.0 * static_cast<double>(s.m * s.n * s.k),
            figures);
  // Matrices that stay quantised: few rows, a prompt's and a picture's.
  for (const Linear s : {Linear{1, 3072, 3072}, Linear{16, 3072, 3072}, Linear{256, 3072, 3072},
                         Linear{1344, 3072, 3072}})
    for (const heddle_dtype weight : {HEDDLE_F32, HEDDLE_F8_E4M3, HEDDLE_Q8_0, HEDDLE_Q4_0,
                                      HEDDLE_Q5_1, HEDDLE_Q4_K, HEDDLE_Q6_K})
      print(device, linear_case(s, HEDDLE_F32, weight), 2.0 * static_cast<double>(s.m * s.n * s.k),
            figures);
  for (const Conv s : {Conv{256, 32, 32}, Conv{128, 64, 64}, Conv{64, 128, 128}, Conv{32, 128, 128},
                       Conv{64, 320, 320}, Conv{16, 640, 640}, Conv{64, 4, 128}, Conv{256, 32, 3}})
    for (const auto& [type, weight] : kTypes)
      print(device, conv_case(s, type, weight),
            2.0 * 9 * static_cast<double>(s.size * s.size * s.in * s.out), figures);
  for (const Attention s : {Attention{320, 320, 4, 64}, Attention{1344, 1344, 24, 128},
                            Attention{4096, 77, 8, 40}, Attention{1024, 1024, 10, 64}})
    for (const heddle_dtype type : {HEDDLE_F32, HEDDLE_BF16})
      print(device, attention_case(s, type),
            4.0 * static_cast<double>(s.queries * s.keys * s.heads * s.d), figures);
  return 0;
}

}  // namespace

}  // namespace heddle::conformance

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cpu_kernels_bench PLUGIN [THREADS [PART OF A NAME]]\n");
    return 2;
  }
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::max(1, std::atoi(argv[2]))) : 1;
  try {
    return heddle::conformance::run(argv[1], threads, argc > 3 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpu_kernels_bench: %s\n", error.what());
    return 1;
  }
}
