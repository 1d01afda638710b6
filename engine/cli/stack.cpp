#include "engine/cli/stack.h"

#include <pthread.h>
#include <sys/resource.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

constexpr std::size_t kEnough = std::size_t{8} << 20;  // what systems give where nobody says less

struct Call {
  const std::function<int()>& program;
  int code = 0;
};

}  // namespace

int with_enough_stack(const std::function<int()>& program) {
  rlimit limit{}, space{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0) return program();
  // The stack of the calling thread is mapped as it grows. Where address space is short that may
  // fail at any call, by SIGSEGV; that of another thread is there as a whole or refused.
  const bool is_short = ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
  if (limit.rlim_cur >= kEnough && !is_short) return program();
  // The default is for the threads of libraries, too.
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kEnough);
  int failure = ::pthread_setattr_default_np(&attributes);
  Call call{program};
  pthread_t thread{};
  if (failure == 0)
    failure = ::pthread_create(
        &thread, &attributes,
        [](void* raw) -> void* {
          Call& made = *static_cast<Call*>(raw);
          made.code = made.program();
          return nullptr;
        },
        &call);
  ::pthread_attr_destroy(&attributes);
  if (failure != 0)
    throw engine::Error(
        engine::Code::out_of_memory,
        is_short
            ? engine::cat("no address space is left for a stack of ", engine::format_bytes(kEnough),
                          ". Raise the limit, as with `ulimit -v unlimited`.")
            : engine::cat("the stack of ", engine::format_bytes(limit.rlim_cur),
                          " is too small, and the system gives no thread with one of ",
                          engine::format_bytes(kEnough),
                          ". Raise the limit, as with `ulimit -s 8192`."));
  ::pthread_join(thread, nullptr);
  return call.code;
}

}  // namespace heddle::cli
