// linear/1 of whole numbers (plugins/blocks/linear_int8.h), by cuBLASLt: x is made rows of i8
// (scaled_int8.h), multiplied with a matrix of such rows into i32, and a pass of ours over these
// sums makes the output: the library has no scales by row for them.
//
// Which layers: those whose matrix is kInt8Rows, which a file's int8 matrices are on a device that
// is asked for it, whatever the type of x: what is not to be rounded the file has in 16 bits. Where
// the library has no such product the matrix is widened (linear.cu).
//
// Sums are as long again as an output of f32, so that they are made for so many rows at a time as
// take kMostSums. All of these products are alike; rows that there are not are zeros.
#include <algorithm>

#include "call.h"
#include "kernels.h"
#include "layouts.h"
#include "linear.cuh"
#include "scaled_int8.h"
#include "widen.h"

namespace heddle::cuda {

namespace {

constexpr std::int64_t kMostSums = std::int64_t{64} << 20;  // bytes
// Rows of a product are so many, or a multiple: the library wants more than 16.
constexpr std::int64_t kInt8RowsTogether = 32;

std::int64_t over(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

// How a call is done; follows from its shapes and types.
struct Int8Way {
  Gemm gemm;  // of so many rows
  Rows x, out, residual;
  std::int64_t rows, products;                  // of x; to be made
  std::size_t x_at, scales_at, sums_at, bytes;  // in the workspace, behind the library's
};

bool plan_int8(Device& device, const heddle_op_call& call, Int8Way& way) {
  const heddle_tensor_info &weight = call.in[1]->info, &whole = call.out[0]->info;
  const heddle_view* bias = device::operand(call, 2);
  if (weight.layout != kInt8Rows || (bias != nullptr && bias->info.stride[0] != 1)) return false;
  Matmul* const library = device.matmul();  // it alone knows
  if (library == nullptr) return false;
  const std::int64_t n = weight.shape[0], k = weight.shape[1];
  if (!even_rows(call, way.x, way.out, way.residual)) return false;
  way.rows = way.x.batch * way.x.rows;
  if (way.rows == 0 || device::element_count(whole) != way.rows * n) return false;
  const std::int64_t most =
      std::max(kMostSums / (n * std::int64_t{sizeof(std::int32_t)}), kInt8RowsTogether);
  way.products = over(way.rows, most);

  Gemm& p = way.gemm;
  p = {};
  p.m = over(over(way.rows, way.products), kInt8RowsTogether) * kInt8RowsTogether;
  p.n = n;
  p.k = k;
  p.batch = 1;
  p.operands = HEDDLE_I8;
  p.result = HEDDLE_I32;
  p.x_step = p.weight_step = k;
  p.out_step = p.residual_step = n;
  p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  way.products = over(way.rows, p.m);  // fewer where rows were rounded up
  if (!library->takes(p)) return false;
  way.x_at = Matmul::workspace_bytes(p);
  way.scales_at = way.x_at + aligned(static_cast<std::size_t>(way.products * p.m * k));
  way.sums_at = way.scales_at + aligned(static_cast<std::size_t>(way.rows) * sizeof(float));
  way.bytes = way.sums_at + aligned(static_cast<std::size_t>(p.m * n) * sizeof(std::int32_t));
  return true;
}

struct Int8Linear {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static constexpr const char* name = "cublaslt i8";
  static void check(const heddle_op_call& call) { cpu::check_linear(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    Int8Way way;
    return plan_int8(device, call, way) ? 30 : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    Int8Way way;
    return plan_int8(device, call, way) ? way.bytes : 0;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    Int8Way way;
    if (!plan_int8(stream.device(), call, way))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 1).info));
    const heddle_view &x = in(call, 0), &weight = in(call, 1);
    if (!lies_at_16(weight.data)) return launch_other(kLinear, stream, call);
    const Gemm& p = way.gemm;
    auto* const memory = static_cast<char*>(workspace);
    auto* const numbers = memory + way.x_at;
    auto* const scales = reinterpret_cast<float*>(memory + way.scales_at);
    auto* const sums = reinterpret_cast<std::int32_t*>(memory + way.sums_at);
    to_int8(stream, {.from = x.data,
                     .dtype = x.info.dtype,
                     .x = way.x,
                     .columns = p.k,
                     .is_rotated = weight.info.dtype == HEDDLE_I8_ROTATED,
                     .padded = way.products * p.m,
                     .to = numbers,
                     .scales = scales});
    for (std::int64_t first = 0; first < way.rows; first += p.m) {
      Matrices m{};
      m.x = numbers + first * p.k;
      m.weight = weight.data;
      m.out = sums;
      m.workspace = memory;
      if (!stream.device().matmul()->multiply(stream.raw(), p, m))
        device::fail(HEDDLE_INTERNAL, "cuBLASLt has no algorithm any more for ",
                     device::describe(weight.info));
      finish_int8(stream, {.sums = sums,
                           .first = first,
                           .rows = std::min(p.m, way.rows - first),
                           .columns = p.n,
                           .x_scales = scales,
                           .weight_scales = scales_of(weight),
                           .bias = device::operand(call, 2),
                           .residual = device::operand(call, 3),
                           .out = &out(call),
                           .residual_rows = way.residual,
                           .out_rows = way.out,
                           .activation = attrs<heddle_activation_attrs>(call).kind});
    }
  }
};

}  // namespace

constexpr heddle_kernel kInt8Linear = kernel_table<Int8Linear>();

}  // namespace heddle::cuda
