#include "engine/files/checkpoint_cache.h"

#include <system_error>

#include "engine/base/mapped_file.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const TensorFile> if_current(const std::weak_ptr<const TensorFile>& known,
                                             const FileIdentity& identity) {
  std::shared_ptr<const TensorFile> file = known.lock();
  const bool is_current =
      file != nullptr && file->mapping->identity() == identity && !file->mapping->is_damaged();
  return is_current ? file : nullptr;
}

}  // namespace

Checkpoint CheckpointCache::open(const fs::path& path) {
  return open_checkpoint(path, [this](const fs::path& shard) { return file(shard); });
}

std::shared_ptr<const TensorFile> CheckpointCache::file(const fs::path& path) {
  const FileIdentity identity = identify_file(path);
  std::error_code unreadable;  // then the mapping below fails and says why
  const fs::path key = fs::canonical(path, unreadable);
  {
    const auto files = files_.lock();
    const auto found = files->find(key);
    if (found != files->end()) {
      if (auto known = if_current(found->second, identity)) return known;
    }
  }
  // The lock is not held while the file is read. Another thread may do the same meanwhile; the
  // first to come back wins.
  auto fresh = std::make_shared<const TensorFile>(open_tensor_file(path));
  const auto files = files_.lock();
  std::erase_if(*files, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const TensorFile>& entry = (*files)[key];
  if (auto known = if_current(entry, fresh->mapping->identity())) return known;
  entry = fresh;
  return fresh;
}

}  // namespace heddle::engine
