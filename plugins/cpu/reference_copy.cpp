// copy/1 and fill/1: the two ops that take every element type.
#include <cstring>

#include "kernels.h"
#include "number.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Copy : Reference {
  static constexpr const char* op = HEDDLE_OP_COPY;
  static void check(const heddle_op_call& call) { check_copy(call); }

  static void run(const Call& call) {
    const heddle_view &in = call.in(0), &out = call.out();
    const auto in_bytes = static_cast<std::int64_t>(device::dtype_bytes(in.info.dtype));
    const auto out_bytes = static_cast<std::int64_t>(device::dtype_bytes(out.info.dtype));
    const std::int64_t in_step = last_stride(in.info), out_step = last_stride(out.info);
    const bool same = in.info.dtype == out.info.dtype;
    const bool contiguous = same && in_step == 1 && out_step == 1;
    const bool rows =
        device::is_compute_float(in.info.dtype) && device::is_compute_float(out.info.dtype);
    for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
      const std::byte* from =
          element(in, row_offset(in.info, out.info, piece.row) + piece.begin * in_step);
      std::byte* to =
          element(out, row_offset(out.info, out.info, piece.row) + piece.begin * out_step);
      if (contiguous) {
        std::memcpy(to, from, static_cast<std::size_t>(piece.count * in_bytes));
      } else if (same) {  // not through numbers: a NaN keeps its bits
        for (std::int64_t i = 0; i < piece.count; ++i)
          std::memcpy(to + i * out_step * out_bytes, from + i * in_step * in_bytes,
                      static_cast<std::size_t>(in_bytes));
      } else if (rows) {
        auto* values = scratch.take<float>(static_cast<std::size_t>(piece.count));
        load_row(in.info.dtype, from, piece.count, in_step, values);
        store_row(out.info.dtype, values, piece.count, out_step, to);
      } else {
        for (std::int64_t i = 0; i < piece.count; ++i)
          store_number(out.info.dtype, load_number(in.info.dtype, from + i * in_step * in_bytes),
                       to + i * out_step * out_bytes);
      }
    });
  }
};

struct Fill : Reference {
  static constexpr const char* op = HEDDLE_OP_FILL;
  static void check(const heddle_op_call& call) { check_fill(call); }

  static void run(const Call& call) {
    const heddle_view& out = call.out();
    const std::size_t bytes = device::dtype_bytes(out.info.dtype);
    const std::int64_t step = last_stride(out.info);
    std::byte value[8];
    store_number(out.info.dtype, call.attrs<heddle_fill_attrs>().value, value);
    for_each_piece(call, out.info, [&](Piece piece, Scratch&) {
      std::byte* to = element(out, row_offset(out.info, out.info, piece.row) + piece.begin * step);
      for (std::int64_t i = 0; i < piece.count; ++i)
        std::memcpy(to + i * step * static_cast<std::int64_t>(bytes), value, bytes);
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceCopy = kernel_table<Copy>();
constexpr heddle_kernel kReferenceFill = kernel_table<Fill>();

}  // namespace heddle::cpu
