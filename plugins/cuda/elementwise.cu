// Elementwise ops.
#include "call.h"
#include "kernels.h"
#include "map.cuh"

namespace heddle::cuda {

namespace {

struct AddValues {
  __device__ float operator()(const float* x) const { return x[0] + x[1]; }
};
struct MulValues {
  __device__ float operator()(const float* x) const { return x[0] * x[1]; }
};
struct ActivateValue {
  std::int32_t kind;
  __device__ float operator()(const float* x) const { return activate(kind, x[0]); }
};
struct GateValues {
  std::int32_t kind;
  __device__ float operator()(const float* x) const { return activate(kind, x[0]) * x[1]; }
};
struct RsqrtValue {
  __device__ float operator()(const float* x) const { return 1 / sqrtf(x[0]); }
};
struct LeakValue {
  float slope;
  __device__ float operator()(const float* x) const { return x[0] > 0 ? x[0] : x[0] * slope; }
};
struct LeakValues {
  __device__ float operator()(const float* x) const { return x[0] > 0 ? x[0] : x[0] * x[1]; }
};
struct ScaleValue {
  float scale, shift, low, high;
  __device__ float operator()(const float* x) const {
    const float y = fmaf(x[0], scale, shift);
    return isnan(y) ? y : fminf(fmaxf(y, low), high);
  }
};
struct GatedAddValues {
  __device__ float operator()(const float* x) const { return fmaf(x[1], x[2], x[0]); }
};
// In f32 in the order of the operands, each product rounded, as the op says.
template <int kCount>
struct CombineValues {
  float coefficient[kCount];
  __device__ float operator()(const float* x) const {
    float sum = __fmul_rn(coefficient[0], x[0]);
#pragma unroll
    for (int n = 1; n < kCount; ++n) sum = __fadd_rn(sum, __fmul_rn(coefficient[n], x[n]));
    return sum;
  }
};

struct Add : Plain {
  static constexpr const char* op = HEDDLE_OP_ADD;
  static void check(const heddle_op_call& call) { cpu::check_broadcast(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<2>(stream, call, AddValues{});
  }
};

struct Mul : Plain {
  static constexpr const char* op = HEDDLE_OP_MUL;
  static void check(const heddle_op_call& call) { cpu::check_broadcast(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<2>(stream, call, MulValues{});
  }
};

struct Activation : Plain {
  static constexpr const char* op = HEDDLE_OP_ACTIVATION;
  static void check(const heddle_op_call& call) { cpu::check_activation(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<1>(stream, call, ActivateValue{attrs<heddle_activation_attrs>(call).kind});
  }
};

struct GatedActivation : Plain {
  static constexpr const char* op = HEDDLE_OP_GATED_ACTIVATION;
  static void check(const heddle_op_call& call) { cpu::check_gated_activation(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<2>(stream, call, GateValues{attrs<heddle_activation_attrs>(call).kind});
  }
};

struct LeakyRelu : Plain {
  static constexpr const char* op = HEDDLE_OP_LEAKY_RELU;
  static void check(const heddle_op_call& call) { cpu::check_leaky_relu(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    if (device::operand(call, 1) != nullptr)
      map::launch<2>(stream, call, LeakValues{});
    else
      map::launch<1>(stream, call, LeakValue{float(attrs<heddle_leaky_relu_attrs>(call).slope)});
  }
};

struct Rsqrt : Plain {
  static constexpr const char* op = HEDDLE_OP_RSQRT;
  static void check(const heddle_op_call& call) { cpu::check_rsqrt(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<1>(stream, call, RsqrtValue{});
  }
};

struct ScaleClamp : Plain {
  static constexpr const char* op = HEDDLE_OP_SCALE_CLAMP;
  static void check(const heddle_op_call& call) { cpu::check_scale_clamp(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_scale_clamp_attrs>(call);
    map::launch<1>(stream, call,
                   ScaleValue{float(a.scale), float(a.shift), float(a.low), float(a.high)});
  }
};

struct GatedAdd : Plain {
  static constexpr const char* op = HEDDLE_OP_GATED_ADD;
  static void check(const heddle_op_call& call) { cpu::check_gated_add(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    map::launch<3>(stream, call, GatedAddValues{});
  }
};

template <int kCount>
void combine(Stream& stream, const heddle_op_call& call, const float* coefficient) {
  CombineValues<kCount> f;
  for (int n = 0; n < kCount; ++n) f.coefficient[n] = coefficient[n];
  map::launch<kCount>(stream, call, f);
}

struct Combine : Plain {
  static constexpr const char* op = HEDDLE_OP_COMBINE;
  static void check(const heddle_op_call& call) { cpu::check_combine(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_combine_attrs>(call);
    // Absent operands close up.
    const heddle_view* present[map::kMaxOperands] = {};
    float coefficient[map::kMaxOperands] = {};
    int count = 0;
    for (std::uint32_t n = 0; n < call.in_count; ++n) {
      if (call.in[n] == nullptr) continue;
      present[count] = call.in[n];
      coefficient[count++] = static_cast<float>(a.coefficient[n]);
    }
    heddle_op_call dense = call;
    dense.in = present;
    if (count == 1) combine<1>(stream, dense, coefficient);
    if (count == 2) combine<2>(stream, dense, coefficient);
    if (count == 3) combine<3>(stream, dense, coefficient);
    if (count == 4) combine<4>(stream, dense, coefficient);
  }
};

}  // namespace

constexpr heddle_kernel kAdd = kernel_table<Add>();
constexpr heddle_kernel kMul = kernel_table<Mul>();
constexpr heddle_kernel kActivation = kernel_table<Activation>();
constexpr heddle_kernel kGatedActivation = kernel_table<GatedActivation>();
constexpr heddle_kernel kLeakyRelu = kernel_table<LeakyRelu>();
constexpr heddle_kernel kRsqrt = kernel_table<Rsqrt>();
constexpr heddle_kernel kScaleClamp = kernel_table<ScaleClamp>();
constexpr heddle_kernel kGatedAdd = kernel_table<GatedAdd>();
constexpr heddle_kernel kCombine = kernel_table<Combine>();

}  // namespace heddle::cuda
