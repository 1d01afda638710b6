// What the checks of operands share: each part of a call, held to what an op takes. Throws
// invalid_argument, with the operand's name, what it is and what it has to be.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <span>

#include "op_check.h"

namespace heddle::cpu::operands {

// A tensor in a message: only what is thrown is written out, checks that hold cost nothing.
struct Described {
  const heddle_tensor_info& info;
  friend std::ostream& operator<<(std::ostream& to, const Described& of) {
    return to << device::describe(of.info);
  }
};
inline Described describe(const heddle_tensor_info& info) { return {info}; }

template <class... Parts>
inline void require(bool holds, const Parts&... parts) {
  if (!holds) device::fail(HEDDLE_INVALID_ARGUMENT, parts...);
}

enum class Elements { kFloat, kStored, kAny, kF32, kI32, kIds };
enum class Layout { kStrided, kAny };

inline bool has_elements(heddle_dtype dtype, Elements elements) {
  switch (elements) {
    case Elements::kFloat:
      return device::is_compute_float(dtype);
    case Elements::kStored:
      return device::is_compute_float(dtype) || device::is_f8(dtype) ||
             device::is_block_format(dtype);
    case Elements::kF32:
      return dtype == HEDDLE_F32;
    case Elements::kI32:
      return dtype == HEDDLE_I32;
    case Elements::kIds:
      return dtype == HEDDLE_I32 || dtype == HEDDLE_I64;
    case Elements::kAny:
      break;
  }
  return device::dtype_bytes(dtype) != 0;
}

inline const char* wanted(Elements elements) {
  switch (elements) {
    case Elements::kFloat:
      return "f32, f16 or bf16";
    case Elements::kStored:
      return "f32, f16, bf16, of 8 bits or in blocks";
    case Elements::kF32:
      return "f32";
    case Elements::kI32:
      return "i32";
    case Elements::kIds:
      return "i32 or i64";
    case Elements::kAny:
      break;
  }
  return "a known element type";
}

inline const heddle_tensor_info& checked(const heddle_view& view, const char* name,
                                         Elements elements, Layout layout) {
  const heddle_tensor_info& info = view.info;
  require(info.rank <= HEDDLE_MAX_RANK, name, " has rank ", info.rank, ", at most ",
          int{HEDDLE_MAX_RANK}, " is possible");
  for (std::uint32_t axis = 0; axis < info.rank; ++axis)
    require(info.shape[axis] >= 0, name, " has the shape ", describe(info));
  require(has_elements(info.dtype, elements), name, " is ", describe(info), ", has to be ",
          wanted(elements));
  require(view.data != nullptr || device::element_count(info) == 0, name, " ", describe(info),
          " has no memory");
  if (layout == Layout::kAny && info.layout != 0) return info;
  require(info.layout == 0, name, " is ", describe(info), ": this op cannot read a packed weight");
  if ((elements == Elements::kFloat || elements == Elements::kStored) && info.rank > 0) {
    const std::uint32_t last = info.rank - 1;
    require(info.stride[last] == 1 || info.shape[last] <= 1, name, " ", describe(info),
            " has stride ", info.stride[last], " along its last axis, has to have 1");
  }
  return info;
}

inline const heddle_tensor_info* maybe(const heddle_op_call& call, std::uint32_t index,
                                       const char* name, Elements elements = Elements::kFloat) {
  const heddle_view* view = device::operand(call, index);
  return view == nullptr ? nullptr : &checked(*view, name, elements, Layout::kStrided);
}

inline const heddle_tensor_info& need(const heddle_op_call& call, std::uint32_t index,
                                      const char* name, Elements elements = Elements::kFloat,
                                      Layout layout = Layout::kStrided) {
  const heddle_view* view = device::operand(call, index);
  require(view != nullptr, "operand ", name, " is missing");
  return checked(*view, name, elements, layout);
}

inline const heddle_tensor_info& result(const heddle_op_call& call, std::uint32_t index = 0,
                                        const char* name = "out",
                                        Elements elements = Elements::kFloat) {
  require(index < call.out_count && call.out[index] != nullptr, "output ", name, " is missing");
  return checked(*call.out[index], name, elements, Layout::kStrided);
}

inline void require_rank(const heddle_tensor_info& info, const char* name, std::uint32_t rank) {
  require(info.rank == rank, name, " is ", describe(info), ", has to have rank ", rank);
}

inline void require_shape(const heddle_tensor_info& info, const char* name,
                          std::span<const std::int64_t> shape) {
  const bool equal =
      info.rank == shape.size() && std::equal(shape.begin(), shape.end(), info.shape);
  if (equal) return;
  const auto expected =
      device::row_major(info.dtype, shape.data(), static_cast<std::uint32_t>(shape.size()));
  require(false, name, " is ", describe(info), ", has to be ", describe(expected));
}

inline void require_shape(const heddle_tensor_info& info, const char* name,
                          std::initializer_list<std::int64_t> shape) {
  require_shape(info, name, std::span<const std::int64_t>(shape.begin(), shape.size()));
}

inline void require_same(const heddle_tensor_info& info, const char* name,
                         const heddle_tensor_info& other) {
  require_shape(info, name, std::span<const std::int64_t>(other.shape, other.rank));
}

inline void require_optional(const heddle_tensor_info* info, const char* name,
                             std::initializer_list<std::int64_t> shape) {
  if (info != nullptr) require_shape(*info, name, shape);
}

// Each axis equal to that of whole, or 1.
inline void require_broadcasts(const heddle_tensor_info& info, const char* name,
                               const heddle_tensor_info& whole) {
  bool fits = info.rank == whole.rank;
  for (std::uint32_t axis = 0; fits && axis < whole.rank; ++axis)
    fits = info.shape[axis] == whole.shape[axis] || info.shape[axis] == 1;
  require(fits, name, " is ", describe(info), ", which does not broadcast to ", describe(whole));
}

inline void require_activation(heddle_activation kind) {
  require(kind >= HEDDLE_ACT_NONE && kind <= HEDDLE_ACT_TANH, "activation ", kind, " is unknown");
}

inline std::int64_t last_size(const heddle_tensor_info& info, const char* name) {
  require(info.rank >= 1, name, " is ", describe(info), ", has to have at least one axis");
  return info.shape[info.rank - 1];
}

// (B|1, 1, D)
inline void require_per_item(const heddle_tensor_info& info, const char* name,
                             const heddle_tensor_info& x) {
  require(info.rank == 3 && (info.shape[0] == x.shape[0] || info.shape[0] == 1) &&
              info.shape[1] == 1 && info.shape[2] == x.shape[2],
          name, " is ", describe(info), ", has to be (", x.shape[0], " or 1, 1, ", x.shape[2], ")");
}

}  // namespace heddle::cpu::operands
