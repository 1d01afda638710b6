// Rates of the CPU plugin's products beside the processor's register-only peak and, where the build
// has it, oneDNN's own whole-call primitives with all threads.
//
//   cpu_kernels_bench PLUGIN [THREADS [PART OF A NAME]]
//
// One line a shape: GFLOP/s of the kernel that the engine would choose, its ratio to the peak, and
// oneDNN's GFLOP/s. Rates are the best of some short runs: the machine may be shared.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/abi/node.h"
#include "heddle/device.hpp"
#include "op_cases.h"
#include "test_device.h"

#if defined(HEDDLE_WITH_ONEDNN)
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace heddle::conformance {

namespace {

// Processor time of all threads.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// How long something takes: on the clock, and in processor time shared evenly by the threads, which
// is what it would take if nobody else used the machine and no thread had to wait.
struct Seconds {
  double wall = 1e30, processor = 1e30;
};

// The best of some runs, each about 30 ms long.
Seconds best_seconds(const std::function<void()>& work, unsigned threads) {
  work();
  const double once = wall_seconds();
  work();
  const int repeats =
      std::clamp(static_cast<int>(0.03 / std::max(wall_seconds() - once, 1e-7)), 1, 1000);
  Seconds best;
  for (int run = 0; run < 5; ++run) {
    const double wall = wall_seconds(), processor = processor_seconds();
    for (int i = 0; i < repeats; ++i) work();
    best.wall = std::min(best.wall, (wall_seconds() - wall) / repeats);
    best.processor =
        std::min(best.processor, (processor_seconds() - processor) / repeats / threads);
  }
  return best;
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
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    tensor.set(i, static_cast<double>(i * 7 % 31 - 15) / 64);
  return tensor;
}

OpCase linear_case(Linear s, heddle_dtype weight) {
  return {.name = device::cat("linear ", s.m, " x ", s.k, " to ", s.n, ", weight ",
                              device::dtype_name(weight)),
          .op = HEDDLE_OP_LINEAR,
          .in = {numbers(HEDDLE_F32, {1, s.m, s.k}), numbers(weight, {s.n, s.k}),
                 numbers(HEDDLE_F32, {s.n}), std::nullopt},
          .out = {HostTensor(HEDDLE_F32, {1, s.m, s.n})},
          .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
          .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
}

OpCase conv_case(Conv s, heddle_dtype weight) {
  return {.name = device::cat("conv 3x3 ", s.in, " to ", s.out, " at ", s.size, "^2, weight ",
                              device::dtype_name(weight)),
          .op = HEDDLE_OP_CONV2D,
          .in = {numbers(HEDDLE_F32, {1, s.size, s.size, s.in}),
                 numbers(weight, {s.out, s.in, 3, 3}), numbers(HEDDLE_F32, {s.out}), std::nullopt},
          .out = {HostTensor(HEDDLE_F32, {1, s.size, s.size, s.out})},
          .attrs = bytes_of(heddle_conv2d_attrs{{1, 1}, {1, 1, 1, 1}}),
          .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}};
}

OpCase attention_case(Attention s) {
  return {
      .name = device::cat("attention ", s.queries, " x ", s.keys, ", ", s.heads, " heads of ", s.d),
      .op = HEDDLE_OP_ATTENTION,
      .in = {numbers(HEDDLE_F32, {1, s.queries, s.heads, s.d}),
             numbers(HEDDLE_F32, {1, s.keys, s.heads, s.d}),
             numbers(HEDDLE_F32, {1, s.keys, s.heads, s.d}), std::nullopt},
      .out = {HostTensor(HEDDLE_F32, {1, s.queries, s.heads, s.d})},
      .attrs = bytes_of(heddle_attention_attrs{0.1, 0, 0})};
}

#if defined(HEDDLE_WITH_ONEDNN)
using dnnl::memory;

Seconds onednn_seconds(const dnnl::primitive& primitive, const dnnl::engine& engine,
                       std::initializer_list<std::pair<int, memory::desc>> operands,
                       unsigned threads) {
  std::unordered_map<int, memory> arguments;
  for (const auto& [argument, desc] : operands) {
    arguments.emplace(argument, memory(desc, engine));
    auto* values = static_cast<float*>(arguments.at(argument).get_data_handle());
    std::fill(values, values + desc.get_size() / sizeof(float), 0.25f);
  }
  dnnl::stream stream(engine);
  return best_seconds(
      [&] {
        primitive.execute(stream, arguments);
        stream.wait();
      },
      threads);
}

Seconds onednn_seconds(Linear s, unsigned threads) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto f32 = memory::data_type::f32;
  const memory::desc x({s.m, s.k}, f32, memory::format_tag::ab),
      w({s.k, s.n}, f32, memory::format_tag::any), out({s.m, s.n}, f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(x, w, out), engine);
  return onednn_seconds(
      dnnl::matmul(made), engine,
      {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DST, out}}, threads);
}

Seconds onednn_seconds(Conv s, unsigned threads) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto f32 = memory::data_type::f32;
  const memory::desc x({1, s.in, s.size, s.size}, f32, memory::format_tag::nhwc),
      w({s.out, s.in, 3, 3}, f32, memory::format_tag::any),
      out({1, s.out, s.size, s.size}, f32, memory::format_tag::nhwc);
  const dnnl::convolution_forward::primitive_desc made({dnnl::prop_kind::forward_inference,
                                                        dnnl::algorithm::convolution_direct,
                                                        x,
                                                        w,
                                                        out,
                                                        {1, 1},
                                                        {1, 1},
                                                        {1, 1}},
                                                       engine);
  return onednn_seconds(
      dnnl::convolution_forward(made), engine,
      {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DST, out}}, threads);
}
#endif

struct Figures {
  double peak;
  unsigned threads;
  std::string part;  // of the names to measure
};

// library: gives oneDNN's seconds for the same, where there are any.
template <class Library>
void print(const TestDevice& device, OpCase op_case, double flops, Library&& library,
           const Figures& figures) {
  if (op_case.name.find(figures.part) == std::string::npos) return;
  const heddle_kernel* kernel = device.fitting(op_case).front();
  double wall = 1e30, processor = 1e30;
  for (int i = 0; i < 3; ++i) {
    wall = std::min(wall, device.measure(op_case, kernel, 0.03, wall_seconds));
    processor = std::min(
        processor, device.measure(op_case, kernel, 0.03, processor_seconds) / figures.threads);
  }
  const auto rate = [flops](double seconds) { return flops / seconds / 1e9; };
  std::printf("%-48s %-7s wall %6.1f  processor %6.1f = %3.0f %%", op_case.name.c_str(),
              kernel->name, rate(wall), rate(processor), 100 * rate(processor) / figures.peak);
  if (const std::optional<Seconds> other = library())
    std::printf("   oneDNN wall %6.1f  processor %6.1f", rate(other->wall), rate(other->processor));
  std::printf("\n");
  std::fflush(stdout);
}

int run(const std::string& path, unsigned threads, const std::string& part) {
  const Plugin plugin(path);
  const TestDevice device(plugin, {{"threads", std::int64_t{threads}}});
  const Figures figures{peak(threads), threads, part};
  std::printf("%s, %u threads, register-only peak %.1f; all in GFLOP/s\n", device.info().name,
              threads, figures.peak);
#if defined(HEDDLE_WITH_ONEDNN)
  omp_set_num_threads(static_cast<int>(threads));
  const auto library = [threads](const auto& shape) {
    return std::optional(onednn_seconds(shape, threads));
  };
#else
  const auto library = [](const auto&) { return std::optional<Seconds>(); };
#endif
  for (const Linear s : {Linear{320, 256, 256}, Linear{320, 768, 768}, Linear{320, 3072, 3072},
                         Linear{1344, 3072, 768}, Linear{1344, 768, 3072}, Linear{1344, 3072, 3072},
                         Linear{512, 12288, 3072}, Linear{77, 768, 768}, Linear{1, 18432, 3072}})
    for (const heddle_dtype weight : {HEDDLE_F32, HEDDLE_F16})
      print(
          device, linear_case(s, weight), 2.0 * static_cast<double>(s.m * s.n * s.k),
          [&] { return weight == HEDDLE_F32 ? library(s) : std::optional<Seconds>(); }, figures);
  for (const Conv s : {Conv{256, 32, 32}, Conv{128, 64, 64}, Conv{64, 128, 128}, Conv{32, 128, 128},
                       Conv{64, 320, 320}, Conv{16, 640, 640}, Conv{64, 4, 128}, Conv{256, 32, 3}})
    for (const heddle_dtype weight : {HEDDLE_F32, HEDDLE_F16})
      print(
          device, conv_case(s, weight),
          2.0 * 9 * static_cast<double>(s.size * s.size * s.in * s.out),
          [&] { return weight == HEDDLE_F32 ? library(s) : std::optional<Seconds>(); }, figures);
  for (const Attention s : {Attention{1344, 1344, 24, 128}, Attention{4096, 4096, 8, 40},
                            Attention{4096, 77, 8, 40}, Attention{1024, 1024, 10, 64}})
    print(
        device, attention_case(s), 4.0 * static_cast<double>(s.queries * s.keys * s.heads * s.d),
        [] { return std::optional<Seconds>(); }, figures);
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
