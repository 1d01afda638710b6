#include "engine/memory/model_file.h"

#include <algorithm>
#include <set>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/files/joined_dtype.h"
#include "engine/memory/weight_source.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/value.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kPieceBytes = 64 << 20;

// What the file has of a tensor.
struct FileEntry {
  const SavedTensor* saved;
  std::vector<WeightSource::Part> parts;
  std::shared_ptr<const WeightPatches> patches;  // nullptr: none that touch it
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

std::int64_t rows_of(const TensorView& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape[0];
}
std::span<const std::int64_t> row_shape(const TensorView& tensor) {
  return std::span(tensor.shape).subspan(tensor.shape.empty() ? 0 : 1);
}
std::uint64_t bytes_of_row(const TensorView& tensor) {
  const std::int64_t rows = rows_of(tensor);
  return rows == 0 ? 0 : tensor.data.size() / std::uint64_t(rows);
}

void require_savable(const FileEntry& entry) {
  const std::string name = quote(entry.saved->name);
  const DType own = entry.parts[0].tensor->dtype;
  if (safetensors_name(entry.dtype).empty())
    throw Error(Code::unsupported,
                cat(name, " has the type ", dtype_name(entry.dtype),
                    ", which safetensors files do not have. Load the model from a file with 8, 16 "
                    "or 32 bits to save it"));
  if (std::ranges::any_of(entry.parts, [](const WeightSource::Part& part) {
        return part.tensor->packed != nullptr;
      }))
    throw Error(Code::unsupported,
                cat(name, " is packed in rows of ", dtype_name(own),
                    ", which are not saved. Load the model from a file with 16 or 32 bits to save "
                    "it"));
  if ((entry.patches != nullptr || entry.saved->dtype) && is_quantised(own))
    throw Error(Code::unsupported,
                cat(name, " has the type ", dtype_name(own),
                    ", to which sums are not rounded. Load the model from a file with 16 or 32 "
                    "bits to save it with what is added"));
  for (const WeightSource::Part& part : entry.parts)
    if (part.tensor->dtype != own ||
        !std::ranges::equal(row_shape(*part.tensor), row_shape(*entry.parts[0].tensor)))
      throw Error(
          Code::invalid_argument,
          cat(name, " would be put together from rows of ", quote(entry.parts[0].tensor->name),
              " and ", quote(part.tensor->name), ", which differ in type or width"));
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

FileEntry entry_of(const SavedTensor& saved) {
  FileEntry entry{&saved, {}, nullptr, DType::f32, {}, 0};
  std::int64_t rows = 0, count = 0;
  for (const WeightPatch::Rows& wanted : saved.rows) {
    const TensorView& tensor = saved.checkpoint->at(wanted.tensor);
    const std::int64_t end = wanted.end < 0 ? rows_of(tensor) : wanted.end;
    if (wanted.begin < 0 || wanted.begin > end || end > rows_of(tensor))
      throw Error(Code::invalid_argument, cat(quote(wanted.tensor), " has no rows ", wanted.begin,
                                              " to ", end, ", which are to be saved"));
    entry.parts.push_back({&tensor, wanted.begin, end});
    rows += end - wanted.begin;
    count += (end - wanted.begin) *
             (rows_of(tensor) == 0 ? 0 : count_of(tensor.shape) / rows_of(tensor));
    entry.bytes += std::uint64_t(end - wanted.begin) * bytes_of_row(tensor);
    if (saved.patches != nullptr && !saved.patches->of(wanted.tensor).empty())
      entry.patches = std::shared_ptr<const WeightPatches>(std::shared_ptr<void>(),
                                                           saved.patches);  // the caller's
  }
  if (entry.parts.empty())
    throw Error(Code::invalid_argument, cat(quote(saved.name), " would have no rows"));
  const TensorView& first = *entry.parts[0].tensor;
  entry.dtype = saved.dtype.value_or(first.dtype);
  if (saved.dtype) entry.bytes = std::uint64_t(count) * dtype_size(entry.dtype);
  entry.shape = first.shape;
  if (!entry.shape.empty()) entry.shape[0] = rows;
  if (!saved.shape.empty()) {
    if (count_of(saved.shape) != count_of(entry.shape))
      throw Error(Code::invalid_argument,
                  cat(quote(saved.name), " has another number of elements than its shape"));
    entry.shape = saved.shape;
  }
  require_savable(entry);
  return entry;
}

// Larger elements first, then by name, as the reference implementation writes them.
std::vector<FileEntry> in_order(std::span<const SavedTensor> tensors) {
  std::vector<FileEntry> all;
  for (const SavedTensor& saved : tensors) all.push_back(entry_of(saved));
  std::ranges::sort(all, [](const FileEntry& a, const FileEntry& b) {
    const std::size_t left = dtype_size(a.dtype), right = dtype_size(b.dtype);
    return left != right ? left > right : a.saved->name < b.saved->name;
  });
  std::set<std::string_view> names;
  for (const FileEntry& entry : all)
    if (!names.insert(entry.saved->name).second)
      throw Error(Code::invalid_argument,
                  cat("two tensors would be saved as ", quote(entry.saved->name)));
  return all;
}

std::string header(const std::vector<FileEntry>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  Json top = Json::object();
  if (!metadata.empty()) {
    Json entries = Json::object();
    for (const auto& [key, value] : metadata) entries.set(key, Json(value));
    top.set("__metadata__", std::move(entries));
  }
  std::uint64_t offset = 0;
  for (const FileEntry& one : tensors) {
    Json entry = Json::object(), shape = Json::array(), offsets = Json::array();
    for (const std::int64_t size : one.shape) shape.push(Json(size));
    offsets.push(Json(offset));
    offset += one.bytes;
    offsets.push(Json(offset));
    entry.set("dtype", Json(std::string(safetensors_name(one.dtype))));
    entry.set("shape", std::move(shape));
    entry.set("data_offsets", std::move(offsets));
    top.set(one.saved->name, std::move(entry));
  }
  std::string text = write_json(top);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

bool is_computed(const FileEntry& entry) {
  return entry.patches != nullptr || entry.dtype != entry.parts[0].tensor->dtype;
}

std::string_view chars(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), size};
}

// Rows of one part as patches make them, a piece at a time: what is put together for a piece is
// gone with it. use(view) gets them in f32, or as the file has them where nothing changes them.
template <class Use>
void for_each_piece(const FileEntry& entry, const WeightSource::Part& part, Use&& use) {
  const auto width = std::max<std::int64_t>(1, std::int64_t(bytes_of_row(*part.tensor)));
  const std::int64_t step = std::max<std::int64_t>(1, kPieceBytes / width);
  for (std::int64_t row = part.begin; row < part.end; row += step) {
    WeightSource source;
    source.parts = {{part.tensor, row, std::min(part.end, row + step)}};
    source.use = HEDDLE_USE_VECTOR;
    source.patches = entry.patches;
    const HostWeight host = host_weight(source);
    for (const heddle_view& view : host.parts) use(view);
    part.tensor->file->mapping->check();
  }
}

std::span<const std::byte> bytes_of(const heddle_view& view) {
  return {static_cast<const std::byte*>(view.data), std::size_t(dense_bytes(view.info))};
}

void append_made(const FileEntry& entry, const WeightSource::Part& part, const Append& append) {
  std::vector<float> values;
  std::vector<std::byte> rounded;
  for_each_piece(entry, part, [&](const heddle_view& view) {
    const std::span<const std::byte> bytes = bytes_of(view);
    const auto dtype = DType(view.info.dtype);
    if (dtype == entry.dtype) return append(chars(bytes.data(), bytes.size()));
    values.resize(bytes.size() / dtype_size(dtype));
    to_floats(dtype, bytes, values.data());
    rounded.resize(values.size() * dtype_size(entry.dtype));
    from_floats(entry.dtype, values, rounded.data());
    append(chars(rounded.data(), rounded.size()));
  });
}

void append_part(const WeightSource::Part& part, const Append& append) {
  const std::uint64_t width = bytes_of_row(*part.tensor);
  const auto data =
      part.tensor->data.subspan(std::size_t(std::uint64_t(part.begin) * width),
                                std::size_t(std::uint64_t(part.end - part.begin) * width));
  for (std::size_t at = 0; at < data.size(); at += std::size_t(kPieceBytes)) {
    const auto piece = data.subspan(at, std::min(data.size() - at, std::size_t(kPieceBytes)));
    append(chars(piece.data(), piece.size()));
  }
  part.tensor->file->mapping->check();
}

}  // namespace

bool create_model_file(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<FileEntry> entries = in_order(tensors);
  const std::string text = header(entries, metadata);
  return create_file(path, [&](const Append& append) {
    const std::uint64_t size = text.size();  // little-endian, as everything here
    append(chars(&size, sizeof size));
    append(text);
    for (const FileEntry& entry : entries)
      for (const WeightSource::Part& part : entry.parts)
        is_computed(entry) ? append_made(entry, part, append) : append_part(part, append);
  });
}

void read_rows(const SavedTensor& tensor, std::span<float> out) {
  SavedTensor in_floats = tensor;
  in_floats.dtype = DType::f32;
  const FileEntry entry = entry_of(in_floats);
  if (entry.bytes != out.size_bytes())
    throw Error(Code::invalid_argument,
                cat(quote(tensor.name), " has ", entry.bytes / sizeof(float),
                    " elements; there is room for ", out.size()));
  float* to = out.data();
  for (const WeightSource::Part& part : entry.parts)
    for_each_piece(entry, part, [&](const heddle_view& view) {
      const std::span<const std::byte> bytes = bytes_of(view);
      to_floats(DType(view.info.dtype), bytes, to);
      to += bytes.size() / dtype_size(DType(view.info.dtype));
    });
}

}  // namespace heddle::engine
