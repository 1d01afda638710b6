// heddle/call.hpp - what else a node may do in a call: go on after execute(), read inputs that it
// has not declared, tell what it made for people, ask where it runs. What each means: abi/call.h.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// A call that goes on after execute() has returned, for work that is neither on this thread nor on
// the stream. The node is done when finish() or fail() is called, once, on any thread; of an object
// that goes without either it fails. What the work uses has to outlive it: a node without members
// has none, and threads are joined before the plugin goes.
//   void execute(Context& ctx) {
//     pool.add([call = heddle::Deferred(ctx)]() mutable {
//       call.finish([](Context& ctx) { ctx[out] = fetch(ctx[address]); });
//     });
//   }
class Deferred {
 public:
  // Throws HEDDLE_UNSUPPORTED in a block; HEDDLE_OUT_OF_MEMORY.
  explicit Deferred(Context& ctx)
      : ctx_(ctx), handle_(service<heddle_completion_service>().defer(ctx.raw())) {
    if (handle_ == nullptr)
      throw Error(HEDDLE_UNSUPPORTED,
                  "this call cannot be deferred: it is a block's, or there is no memory");
  }
  Deferred(Deferred&& other) noexcept
      : ctx_(other.ctx_), handle_(std::exchange(other.handle_, nullptr)) {}
  Deferred& operator=(Deferred&&) = delete;
  ~Deferred() {
    // No std::string here: where there is no memory for it a destructor must not throw.
    if (handle_ != nullptr) end(HEDDLE_INTERNAL, "the node has let go of a call unfinished");
  }
  // Runs work(Context&), which sets the outputs; what it throws is the node's failure.
  template <class Work>
  void finish(Work&& work) {
    complete(guard([&] { work(ctx_); }));
  }
  void fail(heddle_code code, const std::string& message) { end(code, message.c_str()); }
  bool cancelled() const { return ctx_.cancelled(); }

 private:
  void end(heddle_code code, const char* message) {
    complete(services.host->fail(services.host, code, message));
  }
  void complete(heddle_status* status) {
    // From here on the engine may drop what the Context stands for.
    service<heddle_completion_service>().complete(std::exchange(handle_, nullptr), status);
  }
  Context ctx_;
  heddle_completion* handle_;
};

// An input that a workflow gives and the node does not declare (HEDDLE_NODE_ANY_INPUT).
struct ExtraInput {
  std::string name;
  Value value;
};
inline std::vector<ExtraInput> extra_inputs(Context& ctx) {
  const auto& io = service<heddle_io_service>();
  std::vector<ExtraInput> all;
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
    all.push_back({io.extra_name(ctx.raw(), i), Value::share(io.extra(ctx.raw(), i))});
  return all;
}

// A file that the node wrote for the user. Any thread.
inline void wrote(Context& ctx, const std::filesystem::path& file) {
  service<heddle_report_service>().wrote(ctx.raw(), file.c_str(), nullptr);
}
// A part of ComfyUI's "ui" of the node, as JSON: an object of lists, {"text": ["hello"]}. Lists of
// one name are joined. Any thread.
inline void shows(Context& ctx, const std::string& ui) {
  service<heddle_report_service>().wrote(ctx.raw(), nullptr, ui.c_str());
}

// "cuda:0"; "host" for a node that wants the host. Any thread.
inline std::string device_of(Context& ctx) {
  return service<heddle_call_service>().device(ctx.raw());
}
// The device's own stream, a cudaStream_t of cuda; nullptr on the CPU and in blocks.
inline void* native_stream(Context& ctx) {
  return service<heddle_call_service>().stream(ctx.raw());
}

}  // namespace heddle
