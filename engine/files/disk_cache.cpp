#include "engine/files/disk_cache.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/files/value_file.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
// What a process that was killed has left half written goes, once nobody can be writing it.
constexpr std::chrono::hours kAbandoned{1};
// What was kept under a larger limit is still good.
constexpr std::uint64_t kLeastLimit = 1 << 30;

struct File {
  fs::file_time_type used;
  fs::path path;
  std::uint64_t bytes = 0;
};

// Files that go while the folder is read are left out.
std::vector<File> files_in(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const FolderEntry& entry : entries_of(folder, error)) {
    std::error_code gone;
    File file{fs::last_write_time(entry.path, gone), entry.path, 0};
    if (!gone) file.bytes = fs::file_size(entry.path, gone);
    if (!gone) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

DiskCache::DiskCache(fs::path folder, std::uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

fs::path DiskCache::path_of(const Hash128& key) const { return folder_ / cat(hex(key), kSuffix); }

std::optional<std::vector<Value>> DiskCache::find(const Hash128& key,
                                                  const MakeTensor& make) const {
  const fs::path path = path_of(key);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const std::string file =
        read_file(path, {"a kept result", std::max(limit_bytes_, kLeastLimit)});
    std::vector<Value> values =
        read_values(std::as_bytes(std::span(file)), hex(key), path.string(), make);
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return values;
  } catch (const Error& error) {
    if (error.code() != Code::not_found)  // another process may just have dropped it
      log(Level::warning, cat("a kept result is not used, and made again: ", error.full()));
    return std::nullopt;
  }
}

void DiskCache::add(const Hash128& key, std::span<const Value> values) const {
  try {
    const std::optional<std::string> file = write_values(values, hex(key));
    if (!file || file->size() > limit_bytes_) return;
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure) throw system_error(folder_.string(), failure.value());
    make_room(file->size());
    write_file(path_of(key), *file, Lasting::no);
  } catch (const Error& error) {
    log(Level::warning, cat("a result cannot be kept for later runs: ", error.full()));
  }
}

void DiskCache::make_room(std::uint64_t bytes) const {
  std::vector<File> files = files_in(folder_);
  const auto now = fs::file_time_type::clock::now();
  std::error_code ignored;
  std::erase_if(files, [&](const File& file) {
    const bool is_abandoned = file.path.extension() == ".part" && now - file.used > kAbandoned;
    if (is_abandoned) fs::remove(file.path, ignored);
    return file.path.extension() != kSuffix;
  });
  std::ranges::sort(files, {}, [](const File& file) { return std::pair(file.used, file.path); });
  for (const File& file : files) bytes += file.bytes;
  for (const File& file : files) {
    if (bytes <= limit_bytes_) return;
    fs::remove(file.path, ignored);
    bytes -= file.bytes;
  }
}

}  // namespace heddle::engine
