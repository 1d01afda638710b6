#include "engine/base/temporary_file.h"

#include <unistd.h>

namespace heddle::engine {
namespace {

// A handler can take no lock. Few are written at a time; what finds no place is removed by its
// owner alone.
constexpr int kPlaces = 64;
constinit std::atomic<const char*> places[kPlaces] = {};
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

TemporaryFile::TemporaryFile(std::string path) : path_(std::move(path)) {
  for (std::atomic<const char*>& place : places) {
    const char* none = nullptr;
    if (!place.compare_exchange_strong(none, path_.c_str())) continue;
    place_ = &place;
    return;
  }
}

TemporaryFile::~TemporaryFile() {
  ::unlink(path_.c_str());  // not there any more, where it has been renamed
  if (place_ != nullptr) place_->store(nullptr);
}

void unlink_temporary_files() noexcept {
  for (const std::atomic<const char*>& place : places)
    if (const char* path = place.load()) ::unlink(path);
}

}  // namespace heddle::engine
