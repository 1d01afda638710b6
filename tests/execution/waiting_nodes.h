// A node for the execution suite that goes on after its call, until others have begun as well.
#pragma once

#include <condition_variable>

#include "nodes.h"

namespace suite {

// Where calls wait for each other.
class Meeting {
 public:
  // "": all have come; else why they have not. `is_over`: asked now and then.
  template <class F>
  std::string wait(std::int64_t count, F is_over) {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    ++here_;
    if (here_ >= count) {
      here_ = 0;
      ++round_;
      changed_.notify_all();
      return "";
    }
    const int mine = round_;
    const auto end = std::chrono::steady_clock::now() + 600s;
    while (mine == round_) {
      if (changed_.wait_for(lock, 2ms, [&] { return mine != round_; })) return "";
      const bool is_late = std::chrono::steady_clock::now() > end;
      if (!is_late && !is_over()) continue;
      --here_;
      return is_late ? "nobody came in ten minutes" : "the run is over";
    }
    return "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t here_ = 0;
  int round_ = 0;
};
inline Meeting meeting;

// Is done when so many calls of its kind are under way together. With a text in `fails` it fails
// then.
struct Meet {
  static constexpr Info info{"t.Meet", 1, "", "t"};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Input<std::int64_t> count{"count", {.number = 1}};
  static constexpr Input<std::string> fails{"fails", {.text = ""}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(value, count, fails, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    threads.start([call = heddle::Deferred(ctx), wanted = std::int64_t{ctx[count]},
                   failure = std::string(ctx[fails])]() mutable {
      const std::string why = meeting.wait(wanted, [&] { return call.cancelled(); }) + failure;
      if (!why.empty()) return call.fail(HEDDLE_INVALID_ARGUMENT, why);
      call.finish([](Context& later) { later[out] = later[value]; });
    });
  }
};

}  // namespace suite
