// heddle/stages.hpp - calls of models that follow each other in rounds, over several devices at a
// time (heddle/abi/stages.h). Where the engine cannot do that, one device does all.
#pragma once

#include <utility>

#include "abi/stages.h"
#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_stages_service> = HEDDLE_SERVICE_STAGES;

// The rounds of one call, as long as this lives.
class Stages {
 public:
  explicit Stages(Context& ctx) : ctx_(ctx), stages_(optional_service<heddle_stages_service>()) {
    if (stages_ != nullptr) ahead_ = stages_->begin(ctx.raw());
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  ~Stages() {
    if (stages_ != nullptr) stages_->end(ctx_.raw());
  }

  // Rounds to open beyond the one whose result is read; 0: one device does all.
  std::uint32_t ahead() const { return ahead_; }
  // As heddle_stages_service::written; also where one device does all.
  void written(const Tensor& tensor) {
    if (stages_ != nullptr) check(stages_->written(ctx_.raw(), tensor.raw()));
  }
  // Behind the last result. Throws what has failed on any device.
  void join() {
    if (ahead_ > 0) check(stages_->join(ctx_.raw()));
  }
  // Where there was no room: waits as join() does, and one device does all that the node still
  // calls.
  void give_up() {
    if (std::exchange(ahead_, 0) == 0) return;
    stages_->end(ctx_.raw());
    check(stages_->join(ctx_.raw()));
  }

 private:
  Context& ctx_;
  const heddle_stages_service* stages_;
  std::uint32_t ahead_ = 0;
};

}  // namespace heddle
