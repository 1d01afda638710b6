#include "engine/tensor/shape.h"

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

namespace {

void fill_row_major(heddle_tensor_info& info) {
  std::int64_t stride = 1;
  for (std::uint32_t i = info.rank; i-- > 0;) {
    info.stride[i] = stride;
    stride *= info.shape[i] > 0 ? info.shape[i] : 1;
  }
}

[[noreturn]] void refuse_size(const heddle_tensor_info& info, std::string_view what) {
  throw Error(Code::invalid_argument,
              cat(what, ": a tensor (", join(std::span(info.shape, info.rank), ", "),
                  ") takes more than ", format_bytes(kMostTensorBytes), ". Ask for less."));
}

// Offsets of elements are sums of these products.
void check_reach(const heddle_tensor_info& info, std::int64_t most, std::string_view what) {
  std::int64_t room = most;
  for (std::uint32_t i = 0; i < info.rank; ++i) {
    std::int64_t reach = 0;
    const bool fits =
        info.shape[i] == 0 || !__builtin_mul_overflow(info.shape[i] - 1, info.stride[i], &reach);
    if (!fits || reach > room || reach < -room) refuse_size(info, what);
    room -= reach < 0 ? -reach : reach;
  }
}

void check_blocks(const heddle_tensor_info& info, const DTypeBlock& block, std::string_view what) {
  const auto refuse = [&](const auto&... why) {
    throw Error(Code::invalid_argument, cat(what, ": ", describe(info), " ", why...));
  };
  if (info.layout != 0) return;  // a device's own way to keep them
  const std::uint32_t last = info.rank - 1;
  if (info.rank == 0 || info.shape[last] % block.elements != 0)
    refuse("has no whole blocks of ", block.elements, " elements along its last axis");
  if (info.stride[last] != 1 && info.shape[last] != 0)
    refuse("has the stride ", info.stride[last],
           " along its last axis, where elements stand in blocks");
  for (std::uint32_t i = 0; i < last; ++i)
    if (info.stride[i] % block.elements != 0)
      refuse("has the stride ", info.stride[i], " along axis ", i, ", which cuts a block of ",
             block.elements);
}

}  // namespace

heddle_tensor_info make_info(heddle_dtype dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > HEDDLE_MAX_RANK)
    throw Error(Code::invalid_argument,
                cat("a tensor has at most ", int(HEDDLE_MAX_RANK), " axes, got ", shape.size()));
  heddle_tensor_info info{
      sizeof(heddle_tensor_info), dtype, std::uint32_t(shape.size()), 0, {}, {}};
  for (std::size_t i = 0; i < shape.size(); ++i) info.shape[i] = shape[i];
  return checked_info(info, "tensor");
}

heddle_tensor_info checked_info(const heddle_tensor_info& given, std::string_view what) {
  if (given.rank > HEDDLE_MAX_RANK)
    throw Error(Code::invalid_argument, cat(what, ": a tensor has at most ", int(HEDDLE_MAX_RANK),
                                            " axes, got ", given.rank));
  heddle_tensor_info info = given;
  info.size = sizeof(heddle_tensor_info);
  if (!is_dtype(info.dtype))
    throw Error(Code::invalid_argument, cat(what, ": there is no element type ", info.dtype));
  const DTypeBlock block = dtype_block(DType(info.dtype));
  bool strides_given = false;
  std::int64_t room = kMostTensorBytes * block.elements / block.bytes;
  for (std::uint32_t i = 0; i < info.rank; ++i) {
    if (info.shape[i] < 0)
      throw Error(Code::invalid_argument,
                  cat(what, ": axis ", i, " has the negative size ", info.shape[i]));
    if (info.shape[i] > 0) room /= info.shape[i];
    strides_given = strides_given || info.stride[i] != 0;
  }
  if (room == 0) refuse_size(info, what);
  if (!strides_given)
    fill_row_major(info);
  else
    check_reach(info, kMostTensorBytes * block.elements / block.bytes, what);
  if (block.elements != 1) check_blocks(info, block, what);
  return info;
}

std::int64_t element_count(const heddle_tensor_info& info) {
  std::int64_t count = 1;
  for (std::uint32_t i = 0; i < info.rank; ++i) count *= info.shape[i];
  return count;
}

std::uint64_t dense_bytes(const heddle_tensor_info& info) {
  return std::uint64_t(dtype_bytes(DType(info.dtype), element_count(info)));
}

bool is_contiguous(const heddle_tensor_info& info) {
  std::int64_t stride = 1;
  for (std::uint32_t i = info.rank; i-- > 0;) {
    if (info.shape[i] != 1 && info.stride[i] != stride) return element_count(info) == 0;
    stride *= info.shape[i];
  }
  return info.layout == 0;
}

bool same_shape(const heddle_tensor_info& a, const heddle_tensor_info& b) {
  if (a.rank != b.rank) return false;
  for (std::uint32_t i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

Extent extent(const heddle_tensor_info& info) {
  Extent touched{0, 1};
  for (std::uint32_t i = 0; i < info.rank; ++i) {
    if (info.shape[i] == 0) return {0, 0};
    const std::int64_t reach = (info.shape[i] - 1) * info.stride[i];
    (reach < 0 ? touched.begin : touched.end) += reach;
  }
  return touched;
}

std::uint64_t span_bytes(const heddle_tensor_info& info) {
  return std::uint64_t(dtype_bytes(DType(info.dtype), extent(info).end));
}

std::string describe(const heddle_tensor_info& info) {
  return cat(dtype_name(DType(info.dtype)), " (", join(std::span(info.shape, info.rank), ", "),
             ")");
}

}  // namespace heddle::engine
