// Nodes for tests of isolated plugins that work on the device they are placed on.
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <heddle/call.hpp>
#include <heddle/node.hpp>
#include <heddle/ops.hpp>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;

// 0, 1, 2, ... as f32 on the device.
struct Ramp {
  static constexpr heddle::Info info{"test.device.ramp", 1, "Ramp", "test"};
  static constexpr Input<std::int64_t> rows{"rows", {.number = 2, .min = 0, .max = 1 << 20}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(rows, out);
  void execute(Context& ctx) {
    std::vector<float> values(std::size_t(ctx[rows] * 4));
    std::iota(values.begin(), values.end(), 0.f);
    ctx[out] = ctx.upload({ctx[rows], 4}, HEDDLE_F32, values.data());
  }
};

// The sum of both by an op of the device, columns first where that is asked for, and where that
// was. `how`: what happens when the op has been enqueued.
struct Sum {
  static constexpr heddle::Info info{"test.device.sum", 1, "Sum", "test", "", HEDDLE_NODE_IMPURE};
  static constexpr Input<Tensor> a{"a"};
  static constexpr Input<Tensor> b{"b"};
  static constexpr Input<std::string> how{"how", {.text = ""}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr Output<std::string> where{"where"};
  static constexpr Output<std::int64_t> process{"process"};
  static constexpr auto ports = heddle::ports(a, b, how, out, where, process);
  void execute(Context& ctx) {
    const Tensor sum = heddle::ops::add(ctx, ctx[a], ctx[b]);
    ctx.progress(0.5, "");
    if (ctx[how] == "kill") ::kill(::getpid(), SIGKILL);
    if (ctx[how] == "throw") throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "it was asked to fail");
    if (ctx[how] == "hang")
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    const std::vector<float> read = ctx.read<float>(sum);
    if (std::any_of(read.begin(), read.end(), [](float value) { return value != value; }))
      throw heddle::Error(HEDDLE_INTERNAL, "what was read back is no number");
    ctx[out] = ctx[how] == "turn" ? sum.permute({1, 0}) : sum;
    ctx[where] = heddle::device_of(ctx);
    ctx[process] = std::int64_t(::getpid());
  }
};

// Where calls of this process wait for each other.
class Gathering {
 public:
  // False: not so many have come within a minute, or the run is over.
  template <class F>
  bool wait(std::int64_t count, F is_over) {
    std::unique_lock lock(mutex_);
    std::int64_t& arrived = arrived_[count];
    const std::int64_t round = arrived++ / count;
    changed_.notify_all();
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (arrived < (round + 1) * count) {
      if (is_over() || std::chrono::steady_clock::now() > end) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, std::int64_t> arrived_;  // by how many wait for each other
};

class Threads {
 public:
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <class F>
  void start(F work) {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(std::move(work));
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

Gathering gathering;
Threads threads;

// a + b + b, of which the second sum is made when so many calls of the process are under way: each
// then works on the device in a thread of its own. `how`, then: "throw" fails, "kill" ends the
// process, "stay" goes on until the run is cancelled.
struct Together {
  static constexpr heddle::Info info{"test.device.together", 1, "Together", "test", "",
                                     HEDDLE_NODE_IMPURE};
  static constexpr Input<Tensor> a{"a"};
  static constexpr Input<Tensor> b{"b"};
  static constexpr Input<std::int64_t> count{"count", {.number = 2, .min = 1, .max = 64}};
  static constexpr Input<std::string> how{"how", {.text = ""}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr Output<std::string> where{"where"};
  static constexpr Output<std::int64_t> process{"process"};
  static constexpr auto ports = heddle::ports(a, b, count, how, out, where, process);
  void execute(Context& ctx) {
    Tensor first = heddle::ops::add(ctx, ctx[a], ctx[b]);
    threads.start([call = heddle::Deferred(ctx), sum = std::move(first),
                   wanted = std::int64_t{ctx[count]}]() mutable {
      const bool have_come = gathering.wait(wanted, [&] { return call.cancelled(); });
      call.finish([&](Context& later) {
        if (!have_come) throw heddle::Error(HEDDLE_CANCELLED, "the others have not come");
        if (later[how] == "throw")
          throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "it was asked to fail");
        if (later[how] == "kill") ::kill(::getpid(), SIGKILL);
        while (later[how] == "stay" && !later.cancelled())
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        later[out] = heddle::ops::add(later, sum, later[b]);
        sum = {};
        later[where] = heddle::device_of(later);
        later[process] = std::int64_t(::getpid());
      });
    });
  }
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.on_device", "1.0.0", Ramp, Sum, Together)
