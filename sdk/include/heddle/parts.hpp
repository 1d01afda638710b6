// heddle/parts.hpp - tensors that arrive in parts: who reads them begins while who makes them goes
// on (heddle/abi/parts.h). Where the engine cannot do that, everybody waits for the whole.
#pragma once

#include <algorithm>

#include "abi/parts.h"
#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_parts_service> = HEDDLE_SERVICE_PARTS;

// An output on its way: a tensor of make_host() whose rows are filled from the first one on. The
// call sets its output to the same tensor in the end. What is not ended by whole() was not made
// after all: it is taken back.
class PartsOfOutput {
 public:
  // output: of this call's node.
  PartsOfOutput(Context& ctx, heddle_port_index output, const Tensor& tensor)
      : ctx_(ctx), output_(output) {
    const auto* parts = optional_service<heddle_parts_service>();
    if (parts != nullptr && parts->begin(ctx.raw(), output, tensor.raw()) != 0) parts_ = parts;
  }
  PartsOfOutput(const PartsOfOutput&) = delete;
  PartsOfOutput& operator=(const PartsOfOutput&) = delete;
  ~PartsOfOutput() {
    if (parts_ != nullptr && !is_whole_) parts_->take_back(ctx_.raw(), output_);
  }

  // So many rows are written, and stay as they are.
  void made(std::int64_t rows) {
    if (parts_ != nullptr) parts_->made(ctx_.raw(), output_, rows);
  }
  void whole() { is_whole_ = true; }

 private:
  Context& ctx_;
  const heddle_port_index output_;
  const heddle_parts_service* parts_ = nullptr;
  bool is_whole_ = false;
};

// Waits until so many rows of what an input flagged HEDDLE_PORT_PARTS gave are there. Throws
// HEDDLE_CANCELLED where they never will be.
inline void await_rows(Context& ctx, const Tensor& tensor, std::int64_t rows) {
  if (const auto* parts = optional_service<heddle_parts_service>())
    check(parts->await(ctx.raw(), tensor.raw(), rows));
}
// All of them.
inline void await_whole(Context& ctx, const Tensor& tensor) {
  if (tensor && tensor.rank() > 0) await_rows(ctx, tensor, tensor.size(0));
}

}  // namespace heddle
