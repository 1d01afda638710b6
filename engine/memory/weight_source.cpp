#include "engine/memory/weight_source.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::core {

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
  if (!columns.empty()) {
    std::int64_t wide = 0;
    for (const Range& c : columns) {
      if (shape.size() < 2 || c.begin < 0 || c.end < c.begin || c.end > shape[1])
        throw Error(Code::invalid_argument, cat(quote(first.name), " (", join(first.shape, ", "),
                                                ") has no columns ", c.begin, " to ", c.end));
      wide += c.end - c.begin;
    }
    shape[1] = wide;
  }
  return make_info(heddle_dtype(first.dtype), shape);
}

namespace {

// The rows' bytes of some columns, side by side; shape[1] becomes their number.
std::vector<std::byte> columns_of(const std::byte* rows, std::vector<std::int64_t>& shape,
                                  std::uint64_t row_bytes,
                                  const std::vector<WeightSource::Range>& columns) {
  const std::uint64_t column_bytes = row_bytes / std::uint64_t(shape[1]);
  shape[1] = 0;
  for (const WeightSource::Range& c : columns) shape[1] += c.end - c.begin;
  std::vector<std::byte> bytes;
  bytes.reserve(std::uint64_t(shape[0]) * std::uint64_t(shape[1]) * column_bytes);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const WeightSource::Range& c : columns) {
      const std::byte* const begin =
          rows + std::uint64_t(row) * row_bytes + std::uint64_t(c.begin) * column_bytes;
      bytes.insert(bytes.end(), begin, begin + std::uint64_t(c.end - c.begin) * column_bytes);
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
    const std::uint64_t row_bytes = t.shape[0] == 0 ? 0 : t.data.size() / std::uint64_t(t.shape[0]);
    // Kernels only read here; the ABI's view has one kind of pointer.
    auto* data = const_cast<std::byte*>(t.data.data()) + std::uint64_t(part.begin) * row_bytes;
    if (source.columns.empty()) {
      host.keep.push_back(t.file);
    } else {
      const auto gathered = std::make_shared<std::vector<std::byte>>(
          columns_of(data, shape, row_bytes, source.columns));
      data = gathered->data();
      host.keep.push_back(gathered);
    }
    host.parts.push_back({make_info(heddle_dtype(t.dtype), shape), data});
  }
  return host;
}

std::vector<FilePart> file_parts(const WeightSource& source) {
  std::vector<FilePart> parts;
  for (const WeightSource::Part& part : source.parts)
    parts.push_back(file_part(*part.tensor, part.begin, part.end));
  return parts;
}

HostWeight host_weight(const WeightSource& source, const DeviceState& state) {
  if (state.host_weights() == nullptr || source.parts.empty()) return host_weight(source);
  const std::shared_ptr<HostLease> lease =
      state.host_weights()->get(file_parts(source), state.share_device());
  // The same tensors, of which these rows lie in the lease; nobody looks at others.
  std::vector<TensorView> views;
  for (const WeightSource::Part& part : source.parts) views.push_back(*part.tensor);
  WeightSource leased = source;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::uint64_t before =
        file_part(views[i], leased.parts[i].begin, leased.parts[i].end).offset -
        views[i].file_offset();
    views[i].data = {lease->data(i) - before, views[i].data.size()};
    leased.parts[i].tensor = &views[i];
  }
  HostWeight host = host_weight(leased);
  host.keep.push_back(lease);
  host.lease = lease;
  return host;
}

namespace {

void end_lease(Stream& stream, const HostWeight& host) noexcept {
  if (host.lease == nullptr) return;
  try {
    Event passed(stream.device());
    stream.record(passed);
    host.lease->end_with(std::move(passed));
  } catch (const Error&) {  // then it ends with `keep`
  }
}

}  // namespace

void make_device_weight(Stream& stream, const HostWeight& host, const heddle_weight_form& form,
                        void* dst) {
  try {
    stream.device().make_weight(stream, host.use, form, host.parts, dst);
  } catch (const Error&) {
    end_lease(stream, host);
    throw;
  }
  end_lease(stream, host);
}

}  // namespace heddle::core
