#include "engine/memory/weight_source.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::core {

namespace {

// Elements of a row that neighbour each other: everything below the first `axes` axes.
std::int64_t elements_below(const TensorView& tensor, std::size_t axes) {
  std::int64_t count = 1;
  for (std::size_t axis = axes; axis < tensor.shape.size(); ++axis) count *= tensor.shape[axis];
  return count;
}

void require_whole_blocks(const std::vector<WeightSource::Part>& parts,
                          const WeightSource::Range& columns) {
  for (const WeightSource::Part& part : parts) {
    const std::int64_t below = elements_below(*part.tensor, 2),
                       block = dtype_block(part.tensor->dtype).elements;
    if (columns.begin * below % block == 0 && columns.end * below % block == 0) continue;
    throw Error(Code::unsupported,
                cat(quote(part.tensor->name), " (", join(part.tensor->shape, ", "),
                    ") cannot be divided at its columns ", columns.begin, " and ", columns.end,
                    ": numbers of ", dtype_name(part.tensor->dtype), " stand in blocks of ", block,
                    ". Divide the model in another way than by rows."));
  }
}

}  // namespace

heddle_tensor_info WeightSource::info() const {
  const TensorView& first = *parts.at(0).tensor;
  std::vector<std::int64_t> shape = first.shape;
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    const TensorView& t = *part.tensor;
    if (t.shape.empty() || part.begin < 0 || part.end > t.shape[0] || part.begin > part.end)
      throw Error(Code::invalid_argument, cat(quote(t.name), " (", join(t.shape, ", "),
                                              ") has no rows ", part.begin, " to ", part.end));
    if (!std::equal(t.shape.begin() + 1, t.shape.end(), shape.begin() + 1, shape.end()))
      throw Error(
          Code::invalid_argument,
          cat(quote(first.name), " (", join(first.shape, ", "), ") and ", quote(t.name), " (",
              join(t.shape, ", "), ") cannot be joined: only their first sizes may differ"));
    rows += part.end - part.begin;
  }
  shape[0] = rows;
  std::vector<const TensorView*> tensors;
  for (const Part& part : parts) tensors.push_back(part.tensor);
  const DType dtype = joined_dtype(tensors, use);
  if (!columns.empty()) {
    std::int64_t wide = 0;
    for (const Range& c : columns) {
      if (shape.size() < 2 || c.begin < 0 || c.end < c.begin || c.end > shape[1])
        throw Error(Code::invalid_argument, cat(quote(first.name), " (", join(first.shape, ", "),
                                                ") has no columns ", c.begin, " to ", c.end));
      require_whole_blocks(parts, c);
      wide += c.end - c.begin;
    }
    shape[1] = wide;
  }
  return make_info(heddle_dtype(dtype), shape);
}

namespace {

// The rows' bytes of some columns, side by side; shape[1] becomes their number.
std::vector<std::byte> columns_of(const std::byte* rows, std::vector<std::int64_t>& shape,
                                  const TensorView& tensor,
                                  const std::vector<WeightSource::Range>& columns) {
  const std::int64_t below = elements_below(tensor, 2);
  const auto bytes_of = [&](std::int64_t count) {
    return dtype_bytes(tensor.dtype, count * below);
  };
  const std::int64_t row_bytes = bytes_of(shape[1]);
  shape[1] = 0;
  for (const WeightSource::Range& c : columns) shape[1] += c.end - c.begin;
  std::vector<std::byte> bytes;
  bytes.reserve(std::uint64_t(shape[0] * bytes_of(shape[1])));
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const WeightSource::Range& c : columns) {
      const std::byte* const begin = rows + row * row_bytes + bytes_of(c.begin);
      bytes.insert(bytes.end(), begin, begin + bytes_of(c.end - c.begin));
    }
  return bytes;
}

}  // namespace

HostWeight host_weight(const WeightSource& source) {
  HostWeight host;
  host.use = source.use;
  for (const WeightSource::Part& part : source.parts) {
    const TensorView& t = *part.tensor;
    std::vector<std::int64_t> shape = t.shape;
    shape[0] = part.end - part.begin;
    // Kernels only read here; the ABI's view has one kind of pointer.
    auto* data = const_cast<std::byte*>(t.data.data()) +
                 dtype_bytes(t.dtype, part.begin * elements_below(t, 1));
    if (source.columns.empty()) {
      host.keep.push_back(t.file);
    } else {
      const auto gathered =
          std::make_shared<std::vector<std::byte>>(columns_of(data, shape, t, source.columns));
      data = gathered->data();
      host.keep.push_back(gathered);
    }
    host.parts.push_back({make_info(heddle_dtype(t.dtype), shape), data, t.scale()});
  }
  return host;
}

void make_device_weight(Stream& stream, const HostWeight& host, const heddle_weight_form& form,
                        void* dst) {
  stream.device().make_weight(stream, host.use, form, host.parts, dst);
}

}  // namespace heddle::core
