#include "engine/memory/weight_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "engine/files/stored_rows.h"
#include "engine/memory/patch_merge.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/host_memory.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/node.h"

namespace heddle::engine {
namespace {

// Rows of one tensor on their way.
struct Piece {
  const WeightSource& source;
  const TensorView& tensor;
  std::int64_t begin, end;

  std::vector<std::int64_t> shape() const {
    std::vector<std::int64_t> shape = tensor.shape;
    shape[0] = end - begin;
    if (source.frame != 0) shape.erase(shape.begin() + kFrameAxis);
    if (source.frame < 0) std::swap(shape[0], shape[1]);
    if (!source.columns.empty()) {
      shape[1] = 0;
      for (const WeightSource::Range& c : source.columns) shape[1] += c.end - c.begin;
    }
    return shape;
  }
  // The elements of a row that are wanted.
  std::vector<PatchedRows::Span> spans() const {
    std::int64_t width = 1, below = 1;  // of a row, of one of its columns
    for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) {
      width *= tensor.shape[axis];
      if (axis > 1) below *= tensor.shape[axis];
    }
    std::vector<PatchedRows::Span> spans;
    if (source.frame > 0) {
      const std::int64_t size = below / tensor.shape[kFrameAxis];  // of one frame
      for (std::int64_t first = (source.frame - 1) * size; first < width; first += below)
        spans.push_back({first, first + size});
      return spans;
    }
    if (source.columns.empty()) return {{0, width}};
    for (const WeightSource::Range& c : source.columns)
      spans.push_back({c.begin * below, c.end * below});
    return spans;
  }
};

// Memory that goes with its last holder.
std::shared_ptr<std::byte> host_bytes(std::size_t bytes) {
  const HostPiece piece = allocate_host(bytes);
  return {static_cast<std::byte*>(piece.data), [piece](std::byte*) { free_host(piece); }};
}

void add(HostWeight& host, const std::vector<std::int64_t>& shape, DType dtype,
         const std::shared_ptr<std::byte>& bytes, double scale) {
  host.parts.push_back({make_info(heddle_dtype(dtype), shape), bytes.get(), scale});
  host.made_bytes += dense_bytes(host.parts.back().info);
  host.keep.push_back(bytes);
}

// One frame of (C, O, T), all of it, as (O, C).
void add_transposed(HostWeight& host, const Piece& piece) {
  const TensorView& t = piece.tensor;
  const std::vector<std::int64_t> shape = piece.shape();
  const auto bytes = host_bytes(dense_bytes(make_info(heddle_dtype(t.dtype), shape)));
  const auto size = std::size_t(dtype_bytes(t.dtype, 1));
  std::byte* to = bytes.get();
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (std::int64_t column = 0; column < shape[1]; ++column, to += size) {
      const std::int64_t at =
          (column * shape[0] + row) * t.shape[kFrameAxis] - piece.source.frame - 1;
      std::memcpy(to, t.data.data() + dtype_bytes(t.dtype, at), size);
    }
  add(host, shape, t.dtype, bytes, t.scale());
}

void add_as_in_file(HostWeight& host, const Piece& piece) {
  const TensorView& t = piece.tensor;
  const std::int64_t width = elements_below(t, 1);
  const std::byte* const rows = t.data.data() + dtype_bytes(t.dtype, piece.begin * width);
  const std::vector<std::int64_t> shape = piece.shape();
  if (piece.source.frame < 0) {
    add_transposed(host, piece);
    return;
  }
  if (piece.source.columns.empty() && piece.source.frame == 0) {
    // Kernels only read here; the ABI's view has one kind of pointer.
    host.parts.push_back(
        {make_info(heddle_dtype(t.dtype), shape), const_cast<std::byte*>(rows), t.scale()});
    host.keep.push_back(t.file);
    host.files.push_back(t.file);
    return;
  }
  const auto bytes = host_bytes(dense_bytes(make_info(heddle_dtype(t.dtype), shape)));
  std::byte* to = bytes.get();
  const std::vector<PatchedRows::Span> spans = piece.spans();
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const PatchedRows::Span& s : spans) {
      const std::int64_t size = dtype_bytes(t.dtype, s.end - s.begin);
      std::memcpy(to, rows + dtype_bytes(t.dtype, row * width + s.begin), std::size_t(size));
      to += size;
    }
  add(host, shape, t.dtype, bytes, t.scale());
}

void add_patched(HostWeight& host, const Piece& piece,
                 std::vector<const WeightPatches::Term*> terms) {
  const std::vector<std::int64_t> shape = piece.shape();
  const auto bytes = host_bytes(dense_bytes(make_info(HEDDLE_F32, shape)));
  merge_patches({&piece.tensor, piece.begin, piece.end, piece.spans(), std::move(terms)},
                reinterpret_cast<float*>(bytes.get()));
  add(host, shape, DType::f32, bytes, 1);
}

// Rows that a RowChange changes: of all that it needs, those that are wanted.
void add_changed(HostWeight& host, const Piece& piece, std::span<const WeightPatches::Term> terms) {
  const RowRange needed = rows_needed(terms, {piece.begin, piece.end});
  const std::int64_t width = elements_below(piece.tensor, 1);
  std::vector<float> whole(std::size_t((needed.end - needed.begin) * width));
  merge_changes(piece.tensor, needed, terms, whole.data());
  const std::vector<std::int64_t> shape = piece.shape();
  const auto bytes = host_bytes(dense_bytes(make_info(HEDDLE_F32, shape)));
  auto* to = reinterpret_cast<float*>(bytes.get());
  const std::vector<PatchedRows::Span> spans = piece.spans();
  for (std::int64_t row = piece.begin; row < piece.end; ++row)
    for (const PatchedRows::Span& s : spans) {
      const float* const from = whole.data() + (row - needed.begin) * width;
      to = std::copy(from + s.begin, from + s.end, to);
    }
  add(host, shape, DType::f32, bytes, 1);
}

// Rows of the file that a part is made of.
RowRange rows_read(const WeightSource& source, const WeightSource::Part& part) {
  if (source.patches == nullptr || is_patched_beside(*part.tensor, source.use))
    return {part.begin, part.end};
  return rows_needed(source.patches->of(part.tensor->name), {part.begin, part.end});
}

// Packed rows as a block format.
void add_blocks(HostWeight& host, const Piece& piece) {
  const TensorView& t = piece.tensor;
  const DType blocks = t.packed->blocks().value();
  const heddle_tensor_info info = make_info(heddle_dtype(blocks), piece.shape());
  const auto bytes = host_bytes(dense_bytes(info));
  std::byte* to = bytes.get();
  const std::vector<PatchedRows::Span> spans = piece.spans();
  for (std::int64_t row = piece.begin; row < piece.end; ++row)
    for (const PatchedRows::Span& s : spans) {
      t.packed->to_blocks(row, stored_row(t, row), s.begin, s.end, to);
      to += dtype_bytes(blocks, s.end - s.begin);
    }
  add(host, piece.shape(), blocks, bytes, 1);
}

// Parts that lie about in a matrix, in f32: where two overlap they are added.
void add_placed(HostWeight& host, const WeightSource& source) {
  const auto bytes = host_bytes(dense_bytes(source.info()));
  auto* const out = reinterpret_cast<float*>(bytes.get());
  std::fill(out, out + source.placed_rows * source.placed_width, 0.0f);
  std::vector<float> row;
  for (std::size_t i = 0; i < source.parts.size(); ++i) {
    const auto& [tensor, begin, end] = source.parts[i];
    const WeightSource::Place& place = source.places[i];
    const std::int64_t wide = elements_below(*tensor, 1);
    std::vector<WeightSource::Range> columns = source.columns;
    if (columns.empty()) columns.push_back({0, wide});
    row.resize(std::size_t(wide));
    for (std::int64_t r = begin; r < end; ++r) {
      if (tensor->packed != nullptr)
        tensor->packed->widen(r, stored_row(*tensor, r), row.data());
      else
        to_floats(tensor->dtype, stored_row(*tensor, r), row.data());
      float* to = out + (place.row + r - begin) * source.placed_width + place.column;
      for (const WeightSource::Range& c : columns)
        for (std::int64_t column = c.begin; column < c.end; ++column)
          *to++ += float(place.scale * double(row[std::size_t(column)] * tensor->scale()));
    }
  }
  add(host, {source.placed_rows, source.placed_width}, DType::f32, bytes, 1);
}

// Where the terms that touch these rows begin and end, from the first row to the last.
std::vector<std::int64_t> cuts(const WeightSource::Part& part,
                               std::span<const WeightPatches::Term> terms) {
  std::vector<std::int64_t> rows{part.begin, part.end};
  for (const WeightPatches::Term& term : terms)
    for (const std::int64_t row : {term.begin, term.end})
      if (row > part.begin && row < part.end) rows.push_back(row);
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// Of the tensors that the making reads, and of what is added to them.
void check_files(const WeightSource& source) {
  for (const WeightSource::Part& part : source.parts) {
    part.tensor->file->mapping->check();
    if (source.patches == nullptr) continue;
    for (const WeightPatches::Term& term : source.patches->of(part.tensor->name))
      if (term.up != nullptr) term.up->file->mapping->check();  // `down` is of the same file
  }
}

}  // namespace

HostWeight host_weight(const WeightSource& source) {
  HostWeight host;
  host.use = source.device_use();
  if (!source.places.empty()) {
    add_placed(host, source);
    check_files(source);
    return host;
  }
  const bool in_blocks = is_block_format(DType(source.info().dtype));
  for (const WeightSource::Part& part : source.parts) {
    const bool is_plain = source.patches == nullptr || is_patched_beside(*part.tensor, source.use);
    const auto terms =
        is_plain ? std::span<const WeightPatches::Term>() : source.patches->of(part.tensor->name);
    const std::vector<std::int64_t> rows = cuts(part, terms);
    const bool is_packed = part.tensor->packed != nullptr;
    if (rows.size() == 1) add_as_in_file(host, {source, *part.tensor, part.begin, part.end});
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const Piece piece{source, *part.tensor, rows[i - 1], rows[i]};
      std::vector<const WeightPatches::Term*> here;
      for (const WeightPatches::Term& term : terms)
        if (term.begin <= piece.begin && piece.end <= term.end) here.push_back(&term);
      const auto is_change = [](const auto* term) { return term->change != nullptr; };
      if (std::ranges::any_of(here, is_change))
        add_changed(host, piece, terms);
      else if (here.empty() && !is_packed)
        add_as_in_file(host, piece);
      else if (is_packed && in_blocks)
        add_blocks(host, piece);
      else
        add_patched(host, piece, std::move(here));
    }
  }
  check_files(source);
  return host;
}

bool is_made(const WeightSource& source) {
  const auto is_packed = [](const WeightSource::Part& p) { return p.tensor->packed != nullptr; };
  return !source.places.empty() || !source.columns.empty() || source.frame != 0 ||
         has_merged(source) || std::ranges::any_of(source.parts, is_packed);
}

void detach(HostWeight& host) {
  std::vector<std::shared_ptr<const void>> keep;
  for (heddle_view& part : host.parts) {
    const auto made = std::ranges::find(host.keep, static_cast<const void*>(part.data),
                                        &std::shared_ptr<const void>::get);
    if (made != host.keep.end()) {
      keep.push_back(*made);
      continue;
    }
    const std::size_t size = dense_bytes(part.info);
    const auto bytes = host_bytes(size);
    std::memcpy(bytes.get(), part.data, size);
    part.data = bytes.get();
    host.made_bytes += size;
    keep.push_back(bytes);
  }
  for (const auto& file : host.files) file->mapping->check();
  host.files.clear();
  host.keep = std::move(keep);
  host.lease = nullptr;
}

std::vector<FilePart> file_parts(const WeightSource& source) {
  std::vector<FilePart> parts;
  for (const WeightSource::Part& part : source.parts) {
    const RowRange rows = rows_read(source, part);
    parts.push_back(file_part(*part.tensor, rows.begin, rows.end));
  }
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
    const RowRange rows = rows_read(source, source.parts[i]);
    const std::uint64_t before =
        file_part(views[i], rows.begin, rows.end).offset - views[i].file_offset();
    views[i].data = {lease->data(i) - before, views[i].data.size()};
    views[i].file = lease->file(i);  // the same, perhaps by another opening
    leased.parts[i].tensor = &views[i];
  }
  HostWeight host = host_weight(leased);
  host.keep.push_back(lease);
  host.lease = lease;
  return host;
}

namespace {

// A device knows shapes and types only.
void add_tensors(Error& error, const WeightSource& source) {
  if (error.code() != Code::unsupported && error.code() != Code::invalid_argument) return;
  constexpr std::size_t kMost = 4;
  std::vector<std::string> tensors, files;
  for (const WeightSource::Part& part : source.parts) {
    const TensorView& t = *part.tensor;
    tensors.push_back(cat(quote(t.name), " of ", dtype_name(t.dtype)));
    std::string file =
        t.file == nullptr || t.file->mapping == nullptr ? "" : t.file->mapping->path().string();
    if (!file.empty() && std::ranges::find(files, file) == files.end())
      files.push_back(std::move(file));
  }
  if (tensors.size() > kMost) {
    const std::size_t others = tensors.size() - kMost;
    tensors.resize(kMost);
    tensors.push_back(cat(others, " more"));
  }
  error.at(cat("weight made of ", join(tensors, ", ")));
  if (!files.empty()) error.at(join(files, ", "));
}

void end_lease(Stream& stream, const HostWeight& host) noexcept {
  if (host.lease == nullptr) return;
  try {
    Event passed(stream.device());
    stream.record(passed);
    host.lease->end_with(std::move(passed));
  } catch (const std::exception&) {
    host.lease->leave();  // it ends with `keep`
  }
}

}  // namespace

heddle_weight_layout device_layout(const Device& device, const WeightSource& source) {
  try {
    return device.weight_layout(source.device_use(), source.device_info());
  } catch (Error& error) {
    add_tensors(error, source);
    throw;
  }
}

void make_device_weight(Stream& stream, const WeightSource& source, const HostWeight& host,
                        const heddle_weight_layout& layout, void* dst) {
  try {
    stream.device().make_weight(stream, host.use, layout, host.parts, dst);
  } catch (std::exception& failure) {
    end_lease(stream, host);
    for (const auto& file : host.files) file->mapping->check_size();
    if (auto* const error = dynamic_cast<Error*>(&failure)) add_tensors(*error, source);
    throw;
  }
  end_lease(stream, host);
}

}  // namespace heddle::engine
