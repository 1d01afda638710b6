// linear/1 in 8 bits, by cuBLASLt: x is made rows of f8_e4m3 (scaled_fp8.h) and multiplied with a
// matrix of such rows; the product of the two scales goes with the sum, which is f32.
//
// Which layers: those whose matrix is HEDDLE_USE_LINEAR_FP8 and whose x has 16 bits. What a
// model makes in 16 bits has been rounded for a product (plugins/blocks/wide.h), and is its tokens
// on their way through the layers: nearly all of the work. What comes in f32, embeddings of time
// and text, modulation, the first and the last projection, is little work, and errors in it reach
// every token or the result itself: there the matrix is widened (linear.cu), as it is where the
// library has no such product, on other GPUs than Hopper, and on a device told to compute in f32.
#include "call.h"
#include "kernels.h"
#include "layouts.h"
#include "linear.cuh"
#include "scaled_fp8.h"
#include "widen.h"

namespace heddle::cuda {

namespace {

// How a call is done; follows from its shapes, types and attributes.
struct Way {
  Gemm gemm;  // of one item of the batch: its bytes are those that it has alone
  Rows x, out, residual;
  bool direct;                                           // the library writes the output
  std::int64_t pitch;                                    // scales from item to item
  std::size_t x_at, scales_at, bias_at, sums_at, bytes;  // in the workspace, behind the library's
};

bool plan(Device& device, const heddle_op_call& call, Way& way) {
  const heddle_tensor_info &x = call.in[0]->info, &weight = call.in[1]->info,
                           &whole = call.out[0]->info;
  const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
  const heddle_activation kind = attrs<heddle_activation_attrs>(call).kind;
  // Scales by row came with Hopper; later cards are asked, earlier ones have no use for a context.
  if (device.card().major < 9) return false;
  const bool is_small =
      device.settings().compute != HEDDLE_F32 && (x.dtype == HEDDLE_BF16 || x.dtype == HEDDLE_F16);
  if (weight.layout != kFp8Rows || !is_small) return false;
  Matmul* const library = device.matmul();  // it alone knows
  if (library == nullptr) return false;
  const std::int64_t n = weight.shape[0], k = weight.shape[1];
  if (n == 0 || k == 0 || !divides(k, weight.dtype) || !divides(n, weight.dtype)) return false;
  constexpr std::int64_t kMostItems = 64;  // which are products one after the other
  if (!even_rows(call, way.x, way.out, way.residual) || way.x.rows == 0 || way.x.batch == 0 ||
      way.x.batch > kMostItems)
    return false;

  Gemm& p = way.gemm;
  p = {};
  p.m = way.x.rows;
  p.n = n;
  p.k = k;
  p.batch = 1;
  p.operands = HEDDLE_F8_E4M3;
  p.x_step = p.weight_step = k;
  p.result = whole.dtype;
  p.out_step = p.m > 1 ? way.out.step : n;
  p.residual = residual != nullptr;
  p.residual_step = p.m > 1 ? way.residual.step : n;
  const bool even_added =
      residual == nullptr || (residual->info.dtype == whole.dtype && kind == HEDDLE_ACT_NONE &&
                              lies_evenly(way.residual, whole.dtype, n));
  way.direct =
      even_added && lies_evenly(way.out, whole.dtype, n) && has_epilogue(kind, residual != nullptr);
  if (way.direct) {
    p.epilogue = epilogue_of(kind, bias != nullptr);
    way.direct = library->takes(p);
  }
  if (!way.direct) {
    p.result = HEDDLE_F32;
    p.out_step = n;
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.residual = false;
    p.residual_step = 0;
    if (!library->takes(p)) return false;
  }
  const auto items = static_cast<std::size_t>(way.x.batch);
  const std::size_t scale_bytes = aligned(static_cast<std::size_t>(p.m) * sizeof(float));
  way.pitch = static_cast<std::int64_t>(scale_bytes / sizeof(float));
  way.x_at = Matmul::workspace_bytes(p);
  way.scales_at = way.x_at + aligned(items * static_cast<std::size_t>(p.m * k));
  way.bias_at = way.scales_at + items * scale_bytes;
  way.sums_at = way.bias_at + aligned(static_cast<std::size_t>(n) * sizeof(float));
  way.bytes =
      way.sums_at + (way.direct ? 0 : items * static_cast<std::size_t>(p.m * n) * sizeof(float));
  return true;
}

const char* element_at(const heddle_view& view, std::int64_t element) {
  return static_cast<const char*>(view.data) + device::bytes_of(view.info.dtype, element);
}

struct Fp8Linear {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static constexpr const char* name = "cublaslt f8";
  static void check(const heddle_op_call& call) { cpu::check_linear(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    Way way;
    return plan(device, call, way) ? 30 : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    Way way;
    return plan(device, call, way) ? way.bytes : 0;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    Way way;
    if (!plan(stream.device(), call, way))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 1).info));
    const heddle_view &x = in(call, 0), &weight = in(call, 1), &result = out(call);
    const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
    // Addresses are not known when kernels are chosen.
    for (const void* at : {weight.data, way.direct ? result.data : nullptr,
                           way.gemm.residual ? residual->data : nullptr})
      if (!lies_at_16(at)) return launch_other(kLinear, stream, call);
    auto* const memory = static_cast<char*>(workspace);
    const Gemm& p = way.gemm;
    Matrices m{};
    m.weight = weight.data;
    m.weight_scales = scales_of(weight);
    m.workspace = memory;
    if (way.direct && bias != nullptr) m.bias = bias_of(stream, *bias, p, memory + way.bias_at);
    for (std::int64_t item = 0; item < way.x.batch; ++item) {
      char* const fp8_x = memory + way.x_at + item * p.m * p.k;
      auto* const scales = reinterpret_cast<float*>(memory + way.scales_at) + item * way.pitch;
      to_fp8(stream, {.from = element_at(x, item * way.x.jump),
                      .dtype = x.info.dtype,
                      .rows = p.m,
                      .columns = p.k,
                      .step = way.x.step,
                      .to = fp8_x,
                      .scales = scales});
      m.x = fp8_x;
      m.x_scales = scales;
      m.out = way.direct ? const_cast<char*>(element_at(result, item * way.out.jump))
                         : memory + way.sums_at + item * p.m * p.n * std::int64_t{sizeof(float)};
      if (p.residual) m.residual = element_at(*residual, item * way.residual.jump);
      if (!stream.device().matmul()->multiply(stream.raw(), p, m))
        device::fail(HEDDLE_INTERNAL, "cuBLASLt has no algorithm any more for ",
                     device::describe(weight.info));
    }
    if (!way.direct) finish(stream, call, memory + way.sums_at);
  }
};

}  // namespace

constexpr heddle_kernel kFp8Linear = kernel_table<Fp8Linear>();

}  // namespace heddle::cuda
