#include "engine/files/stored_rows.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/tensor/block_numbers.h"

namespace heddle::engine {
namespace {

std::int64_t numbers_of_row(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

class ReshapedRows : public PackedRows {
 public:
  ReshapedRows(DType dtype, std::int64_t width) : dtype_(dtype), width_(width) {}

  // `bytes`: the blocks that hold a number of the row.
  void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const override {
    const DTypeBlock block = dtype_block(dtype_);
    std::vector<float> all(bytes.size() / std::size_t(block.bytes) * std::size_t(block.elements));
    block_floats(dtype_, bytes, all.data());
    std::copy_n(all.begin() + row * width_ % block.elements, width_, to);
  }
  void to_blocks(std::int64_t, std::span<const std::byte>, std::int64_t, std::int64_t,
                 std::byte*) const override {
    throw Error(Code::internal, "rows that are no whole blocks were asked for as blocks");
  }

 private:
  const DType dtype_;
  const std::int64_t width_;
};

}  // namespace

StoredBytes stored_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = tensor.shape.at(0);
  if (!is_block_format(tensor.dtype)) {
    const std::uint64_t row = tensor.data.size() / std::uint64_t(rows);
    return {std::uint64_t(begin) * row, std::uint64_t(end - begin) * row};
  }
  const DTypeBlock block = dtype_block(tensor.dtype);
  const std::int64_t width = numbers_of_row(tensor.shape), first = begin * width / block.elements,
                     last = (end * width + block.elements - 1) / block.elements;
  return {std::uint64_t(first * block.bytes), std::uint64_t((last - first) * block.bytes)};
}

std::span<const std::byte> stored_row(const TensorView& tensor, std::int64_t row) {
  const StoredBytes at = stored_rows(tensor, row, row + 1);
  return tensor.data.subspan(at.begin, at.size);
}

std::shared_ptr<const PackedRows> reshaped_rows(DType dtype,
                                                const std::vector<std::int64_t>& shape) {
  if (!is_block_format(dtype) || shape.empty() || shape.back() % dtype_block(dtype).elements == 0)
    return nullptr;
  return std::make_shared<const ReshapedRows>(dtype, numbers_of_row(shape));
}

}  // namespace heddle::engine
