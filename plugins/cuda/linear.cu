// linear/1 by cuBLASLt. Operands of other types than the weight's are cast first, and a weight in
// blocks or of 8 bits is widened to the device's type to compute with; bias and residual go with
// the product where the library has them for the output's type and the activation, else a pass of
// ours over f32 sums makes the output.
#include "call.h"
#include "kernels.h"
#include "layouts.h"
#include "linear.cuh"
#include "widen.h"

namespace heddle::cuda {

namespace {

// How a call is done; follows from its shapes, types and attributes.
struct Way {
  Gemm gemm;
  bool widens, cast_x, direct;  // direct: the library writes the output
  std::size_t weight_at, x_at, bias_at, sums_at,
      bytes;  // of what lies in the workspace behind the library's part
};

// False: not for this library.
bool plan(const Device& device, const heddle_op_call& call, Way& way) {
  const heddle_tensor_info &x = call.in[0]->info, &weight = call.in[1]->info,
                           &whole = call.out[0]->info;
  const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
  const heddle_activation kind = attrs<heddle_activation_attrs>(call).kind;
  way.widens = is_widened(weight);
  const bool readable =
      way.widens ? weight.layout == 0 || has_scales(weight.layout) || weight.layout == kInt8Rows
                 : weight.layout == 0 && device::is_compute_float(weight.dtype);
  if (!readable) return false;
  const heddle_dtype operands = way.widens ? device.settings().compute : weight.dtype;
  const std::int64_t n = weight.shape[0], k = weight.shape[1],
                     step = way.widens ? k : weight.stride[0],
                     m = n == 0 ? 0 : device::element_count(whole) / n;
  if (m == 0 || n == 0 || k == 0) return false;
  // Tensor cores want rows at multiples of 16 bytes; what is not so is small.
  if (!divides(k, operands) || !divides(step, operands) || !divides(n, HEDDLE_F16)) return false;
  Rows in{}, out{}, added{};
  const bool even = even_rows(call, in, out, added);

  Gemm& p = way.gemm;
  p = {};
  p.n = n;
  p.k = k;
  p.operands = operands;
  p.weight_step = step;
  const bool plain_rows = even && in.batch <= 65535;
  way.cast_x = x.dtype != operands || !plain_rows || (in.rows > 1 && !divides(in.step, x.dtype)) ||
               (in.batch > 1 && !divides(in.jump, x.dtype)) || (in.rows > 1 && in.step < k);
  const bool same_type = whole.dtype == operands || whole.dtype == HEDDLE_F32;
  const bool even_out = plain_rows && lies_evenly(out, whole.dtype, n);
  const bool even_added =
      residual == nullptr || (residual->info.dtype == whole.dtype && kind == HEDDLE_ACT_NONE &&
                              lies_evenly(added, whole.dtype, n));
  way.direct = same_type && even_out && even_added && has_epilogue(kind, residual != nullptr) &&
               !(way.cast_x && !plain_rows);
  if (way.direct) {
    p.batch = out.batch;
    p.m = out.rows;
    p.result = whole.dtype;
    p.out_step = out.rows > 1 ? out.step : n;
    p.out_jump = out.jump;
    p.residual = residual != nullptr;
    p.residual_step = added.rows > 1 ? added.step : n;
    p.residual_jump = added.jump;
    p.epilogue = epilogue_of(kind, bias != nullptr);
  } else {
    p.batch = 1;
    p.m = m;
    p.result = HEDDLE_F32;
    p.out_step = n;
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (!way.cast_x && in.batch > 1) {  // rows of the sums lie one after the other all the same
      p.batch = in.batch;
      p.m = in.rows;
      p.out_jump = in.rows * n;
    }
  }
  p.x_step = way.cast_x || in.rows == 1 ? k : in.step;
  p.x_jump = way.cast_x ? p.m * k : in.jump;
  const auto room = [](bool wanted, std::int64_t elements, std::size_t bytes) {
    return wanted ? aligned(static_cast<std::size_t>(elements) * bytes) : 0;
  };
  way.weight_at = Matmul::workspace_bytes(p);
  way.x_at = way.weight_at + room(way.widens, n * k, device::dtype_bytes(operands));
  way.bias_at = way.x_at + room(way.cast_x, m * k, device::dtype_bytes(operands));
  way.sums_at = way.bias_at + room(way.direct && bias != nullptr, n, sizeof(float));
  way.bytes = way.sums_at + room(!way.direct, m * n, sizeof(float));
  return true;
}

// kWidens: of weights in blocks or 8 bits, which plans and `heddle devices` call by their own name.
template <bool kWidens>
struct MatmulLinear {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static constexpr const char* name = kWidens ? "cublaslt widened" : "cublaslt";
  static void check(const heddle_op_call& call) { cpu::check_linear(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    Way way;
    return device.multiplies() && plan(device, call, way) && way.widens == kWidens ? 20 : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    Way way;
    if (!plan(device, call, way)) return 0;
    if (Matmul* const library = device.has_context() ? device.matmul() : nullptr)
      library->expect(way.gemm);
    return way.bytes;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    Way way;
    // It was chosen because the library is there; whether it can be opened, the first work finds.
    if (stream.device().matmul() == nullptr) return launch_other(kLinear, stream, call);
    if (!plan(stream.device(), call, way))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(call.in[1]->info));
    const heddle_view &x = in(call, 0), &weight = in(call, 1), &result = out(call);
    const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
    auto* const memory = static_cast<char*>(workspace);
    Matrices m{x.data,
               way.widens ? memory + way.weight_at : weight.data,
               nullptr,
               way.direct && residual != nullptr ? residual->data : nullptr,
               way.direct ? result.data : memory + way.sums_at,
               memory};
    // Addresses are not known when kernels are chosen; operands that begin at odd ones are as good
    // for our own tiles.
    for (const void* at :
         {way.cast_x ? nullptr : m.x, m.weight, m.residual, static_cast<const void*>(m.out)})
      if (!lies_at_16(at)) return launch_other(kLinear, stream, call);
    if (way.widens) widen(stream, weight, way.gemm.operands, memory + way.weight_at);
    if (way.cast_x) {
      const heddle_view to = scratch(way.gemm.operands, x.info, memory + way.x_at);
      cast(stream, x, to);
      m.x = to.data;
    }
    if (way.direct && bias != nullptr)
      m.bias = bias_of(stream, *bias, way.gemm, memory + way.bias_at);
    if (!stream.device().matmul()->multiply(stream.raw(), way.gemm, m))
      return launch_other(kLinear, stream, call);
    if (!way.direct) finish(stream, call, memory + way.sums_at);
  }
};

}  // namespace

constexpr heddle_kernel kMatmulLinear = kernel_table<MatmulLinear<false>>();
constexpr heddle_kernel kWidenedLinear = kernel_table<MatmulLinear<true>>();

}  // namespace heddle::cuda
