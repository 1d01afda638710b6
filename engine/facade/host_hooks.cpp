#include "engine/facade/host_hooks.h"

#include <mutex>

#include "engine/base/log.h"
#include "engine/tensor/host_memory.h"

namespace heddle {

namespace {

std::mutex log_mutex;
std::uint64_t newest_log = 0;  // guarded by log_mutex

std::uint64_t take_log(const std::function<void(int, std::string_view)>& log) {
  const std::lock_guard lock(log_mutex);
  engine::set_log_sink([log](engine::Level level, std::string_view message) {
    try {
      log(int(level), message);
    } catch (...) {
      // Whoever logs has no use for it.
    }
  });
  return ++newest_log;
}

}  // namespace

HostHooks::HostHooks(const EngineOptions& options) {
  const HostAllocator& given = options.allocator;
  if (given.allocate != nullptr || given.free != nullptr)
    allocator_ = engine::use_host_allocator({given.allocate, given.free, given.user});
  if (options.log) log_ = take_log(options.log);
}

HostHooks::~HostHooks() {
  if (allocator_ != 0) engine::forget_host_allocator(allocator_);
  const std::lock_guard lock(log_mutex);
  if (log_ != 0 && log_ == newest_log) engine::set_log_sink({});
}

}  // namespace heddle
