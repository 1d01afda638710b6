#include "engine/files/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/files/stored_rows.h"

namespace heddle::engine {

struct Checkpoint::Content {
  std::filesystem::path path;
  std::vector<TensorView> tensors;  // sorted by name
  std::vector<std::shared_ptr<const TensorFile>>
      files;  // in the order in which metadata are looked up
  Hash128 files_identity;
  std::string prefix;  // taken off the names
  std::optional<DType> cast;
  bool is_scaled_fp8 = false;
};

namespace {

namespace fs = std::filesystem;

TensorView view_of(const TensorEntry& entry, const std::shared_ptr<const TensorFile>& file) {
  return {.name = entry.name,
          .dtype = entry.dtype,
          .shape = entry.shape,
          .data = file->mapping->bytes().subspan(entry.offset, entry.size),
          .file = file,
          .packed = reshaped_rows(entry.dtype, entry.shape)};
}

const TensorEntry* find_entry(const TensorFile& file, std::string_view name) {
  const auto found =
      std::lower_bound(file.tensors.begin(), file.tensors.end(), name,
                       [](const TensorEntry& entry, std::string_view n) { return entry.name < n; });
  return found == file.tensors.end() || found->name != name ? nullptr : &*found;
}

Hash128 identity_of(const std::vector<std::shared_ptr<const TensorFile>>& files) {
  Hasher hasher;
  for (const auto& file : files) {
    std::error_code unreadable;  // then the path stays as it is
    const fs::path canonical = fs::weakly_canonical(file->mapping->path(), unreadable);
    hasher.add(unreadable ? file->mapping->path().native() : canonical.native());
    const FileIdentity& identity = file->mapping->identity();
    hasher.add(identity.size)
        .add(identity.modified_ns)
        .add(identity.changed_ns)
        .add(file->mapping->opening())
        .add(file->header_hash);
  }
  return hasher.finish();
}

// Shard name -> the tensors that it has to hold.
using Shards = std::map<std::string, std::set<std::string>>;

Shards read_index(const fs::path& path) {
  const std::string name = path.native();
  const Json json = parse_json(read_file(path, kIndexFile), name);
  Shards shards;
  try {
    for (const Json::Member& member : json.at("weight_map").members()) {
      const std::string& shard = member.value.as_string();
      if (member.repeated) {
        throw Error(Code::invalid_argument, cat(member.line, ":", member.column, ": the tensor ",
                                                quote(member.key), " is given more than once"));
      }
      if (shard.empty() || shard == "." || shard == ".." ||
          shard.find_first_of(std::string_view("/\\\0", 3)) != shard.npos) {
        throw Error(Code::invalid_argument,
                    cat(member.value.where(), ": ", quote(shard),
                        " is not a file name; shards lie beside their index"));
      }
      shards[shard].insert(member.key);
    }
  } catch (const Error& error) {
    throw Error(error.code(), cat(name, ":", error.what()));
  }
  return shards;
}

void check_shards_exist(const Shards& shards, const fs::path& index) {
  std::vector<std::string> missing;
  for (const auto& [shard, tensors] : shards) {
    std::error_code error;
    if (!fs::exists(index.parent_path() / shard, error)) missing.push_back(shard);
  }
  if (missing.empty()) return;
  throw Error(Code::not_found, cat(index.native(), ": ", missing.size(), " of ", shards.size(),
                                   " shards are missing, first ", quote(missing.front()),
                                   ". Download them into the folder of the index."));
}

void add_shard(std::vector<TensorView>& views, const std::set<std::string>& names,
               const std::shared_ptr<const TensorFile>& file, const fs::path& index) {
  for (const std::string& name : names) {
    const TensorEntry* entry = find_entry(*file, name);
    if (entry == nullptr) {
      throw Error(Code::not_found,
                  cat(index.native(), ": tensor ", quote(name), " is not in ",
                      quote(file->mapping->path().native()),
                      ", where the index has it. Index and shards are of different downloads."));
    }
    views.push_back(view_of(*entry, file));
  }
}

void sort_by_name(std::vector<TensorView>& views) {
  std::sort(views.begin(), views.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
}

bool is_f8(DType dtype) { return dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2; }

const TensorView* find_view(std::span<const TensorView> views, std::string_view name) {
  const auto found = std::partition_point(views.begin(), views.end(),
                                          [&](const TensorView& view) { return view.name < name; });
  return found == views.end() || found->name != name ? nullptr : &*found;
}

// REQUIRES: sorted.
void attach_scales(std::vector<TensorView>& views, const fs::path& path) {
  constexpr std::string_view kWeight = ".weight";
  for (TensorView& view : views) {
    if (!is_f8(view.dtype) || view.packed != nullptr || !view.name.ends_with(kWeight)) continue;
    const std::string_view module =
        std::string_view(view.name).substr(0, view.name.size() - kWeight.size());
    const TensorView* scale = find_view(views, cat(module, ".scale_weight"));
    if (scale == nullptr) scale = find_view(views, cat(module, ".weight_scale"));
    if (scale == nullptr) continue;
    if (scale->dtype != DType::f32 || scale->data.size() != sizeof(float))
      throw Error(Code::unsupported,
                  cat(path.native(), ": the scale ", quote(scale->name), " of ", quote(view.name),
                      " is ", dtype_name(scale->dtype), " (", join(scale->shape, ", "),
                      "); only one f32 for a whole tensor is read. Use a file with such scales."));
    view.scale_data = scale->data;
  }
}

std::optional<std::string_view> metadata_of(
    const std::vector<std::shared_ptr<const TensorFile>>& files, std::string_view key) {
  for (const auto& file : files) {
    const auto found = std::find_if(file->metadata.begin(), file->metadata.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (found != file->metadata.end()) return found->second;
  }
  return std::nullopt;
}

// Packed rows keep views of their own of these (column_factors()), which no join() comes across.
void mark_column_factors(std::vector<TensorView>& views, Hash128 identity) {
  for (TensorView& view : views)
    if (view.name.ends_with(".pre_quant_scale")) view.joined_from = identity;
}

}  // namespace

float TensorView::scale() const {
  float value = 1;
  if (!scale_data.empty()) std::memcpy(&value, scale_data.data(), sizeof value);
  return value;
}

std::uint64_t TensorView::file_offset() const {
  return data.empty() ? 0 : static_cast<std::uint64_t>(data.data() - file->mapping->bytes().data());
}

Checkpoint open_checkpoint(const fs::path& path, const TensorFileOpener& open) {
  auto content = std::make_shared<Checkpoint::Content>();
  content->path = path;
  if (path.extension() == ".json") {
    const Shards shards = read_index(path);
    check_shards_exist(shards, path);
    for (const auto& [shard, names] : shards) {
      content->files.push_back(open(path.parent_path() / shard));
      add_shard(content->tensors, names, content->files.back(), path);
    }
    sort_by_name(content->tensors);
  } else {
    content->files.push_back(open(path));
    for (const TensorEntry& entry : content->files.front()->tensors) {
      content->tensors.push_back(view_of(entry, content->files.front()));
    }
  }
  content->files_identity = identity_of(content->files);
  mark_column_factors(content->tensors, Checkpoint(content).identity());
  attach_packed_rows(content->tensors, metadata_of(content->files, "_quantization_metadata"), path);
  attach_scales(content->tensors, path);
  return Checkpoint(std::move(content));
}

Checkpoint open_checkpoint(const fs::path& path) {
  return open_checkpoint(path, [](const fs::path& file) {
    return std::make_shared<const TensorFile>(open_tensor_file(file));
  });
}

std::span<const TensorView> Checkpoint::tensors() const { return content_->tensors; }

std::span<const TensorView> Checkpoint::with_prefix(std::string_view prefix) const {
  const std::vector<TensorView>& all = content_->tensors;
  const auto begin = std::partition_point(
      all.begin(), all.end(), [&](const TensorView& view) { return view.name < prefix; });
  const auto end = std::partition_point(
      begin, all.end(), [&](const TensorView& view) { return view.name.starts_with(prefix); });
  return {begin, end};
}

const TensorView* Checkpoint::find(std::string_view name) const {
  return find_view(content_->tensors, name);
}

const TensorView& Checkpoint::at(std::string_view name) const {
  if (const TensorView* view = find(name)) return *view;
  std::vector<std::string_view> names;
  for (const TensorView& view : content_->tensors) names.push_back(view.name);
  throw Error(Code::not_found, cat(path().native(), ": there is no tensor ", quote(name), ".",
                                   did_you_mean(name, names)));
}

std::optional<std::string_view> Checkpoint::metadata(std::string_view key) const {
  return metadata_of(content_->files, key);
}

Checkpoint Checkpoint::strip_prefix(std::string_view prefix) const {
  auto content = std::make_shared<Content>();
  content->path = content_->path;
  content->files = content_->files;
  content->files_identity = content_->files_identity;
  content->prefix = cat(content_->prefix, prefix);
  content->cast = content_->cast;
  content->is_scaled_fp8 = content_->is_scaled_fp8;
  for (const TensorView& view : with_prefix(prefix)) {
    content->tensors.push_back(view);
    content->tensors.back().name.erase(0, prefix.size());
  }
  return Checkpoint(std::move(content));
}

Checkpoint Checkpoint::join(const Checkpoint& other, std::string_view prefix) const {
  auto content = std::make_shared<Content>(*content_);
  content->files.insert(content->files.end(), other.files().begin(), other.files().end());
  content->files_identity = Hasher().add(identity()).add(other.identity()).add(prefix).finish();
  const auto mark = [](TensorView& view, const Checkpoint& from) {
    if (!view.joined_from) view.joined_from = from.identity();
  };
  for (TensorView& view : content->tensors) mark(view, *this);
  for (const TensorView& view : other.tensors()) {
    content->tensors.push_back(view);
    mark(content->tensors.back(), other);
    content->tensors.back().name.insert(0, prefix);
  }
  sort_by_name(content->tensors);
  const auto twice = std::ranges::adjacent_find(content->tensors, {}, &TensorView::name);
  if (twice != content->tensors.end())
    throw Error(Code::invalid_argument, cat(path().native(), " and ", other.path().native(),
                                            " both have a tensor ", quote(twice->name)));
  return Checkpoint(std::move(content));
}

Checkpoint Checkpoint::cast(DType dtype) const {
  if (!is_f8(dtype))
    throw Error(Code::invalid_argument,
                cat(path().native(), ": weights are cast to f8_e4m3 or f8_e5m2, not to ",
                    dtype_name(dtype)));
  auto content = std::make_shared<Content>(*content_);
  content->cast = dtype;
  content->is_scaled_fp8 = false;
  for (TensorView& view : content->tensors) {
    if (is_block_format(view.dtype))
      throw Error(Code::invalid_argument,
                  cat(path().native(), ": tensor ", quote(view.name), " is ",
                      dtype_name(view.dtype), ", so its weights cannot be cast to ",
                      dtype_name(dtype), ". Leave the file's own type."));
    if (!is_floating(view.dtype) || view.packed != nullptr) continue;
    view.cast = dtype;
    view.is_scaled_fp8 = false;
  }
  return Checkpoint(std::move(content));
}

Checkpoint Checkpoint::scale_to_fp8() const {
  auto content = std::make_shared<Content>(*cast(DType::f8_e4m3).content_);
  content->is_scaled_fp8 = true;
  for (TensorView& view : content->tensors) view.is_scaled_fp8 = view.cast.has_value();
  return Checkpoint(std::move(content));
}

Checkpoint Checkpoint::widen(std::span<const std::string> tensors) const {
  auto content = std::make_shared<Content>(*content_);
  for (const std::string& name : tensors) {
    const auto index = &at(name) - content_->tensors.data();
    TensorView& view = content->tensors[std::size_t(index)];
    if (is_block_format(view.dtype))
      throw Error(Code::unsupported,
                  cat(path().native(), ": tensor ", quote(name), " is ", dtype_name(view.dtype),
                      ", to which products alone can be added. Use a file of the model with 8, 16 "
                      "or 32 bits."));
    // What casts matrices rounds the numbers that they have then: joined_dtype().
    view.is_widened = view.packed != nullptr || is_f8(view.dtype);
  }
  return Checkpoint(std::move(content));
}

std::uint64_t Checkpoint::total_bytes() const {
  std::uint64_t bytes = 0;
  for (const TensorView& view : content_->tensors) bytes += view.data.size();
  return bytes;
}

std::span<const std::shared_ptr<const TensorFile>> Checkpoint::files() const {
  return content_->files;
}

const fs::path& Checkpoint::path() const { return content_->path; }

Hash128 Checkpoint::identity() const {
  Hasher hasher;
  hasher.add(content_->files_identity).add(content_->prefix);
  if (content_->cast) hasher.add(std::int32_t(*content_->cast));
  if (content_->is_scaled_fp8) hasher.add(std::string_view("scaled_fp8"));
  return hasher.finish();
}

}  // namespace heddle::engine
