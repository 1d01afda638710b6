// The models of a run, called with all sets of inputs of an evaluation: a session for each model
// and for each of the weights that its sets ask for. One call's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <heddle/session.hpp>

#include "stretches.h"

namespace heddle::samplers {

class ModelCalls {
 public:
  // `hooks`: of the run.
  ModelCalls(Context& ctx, HookStrengths hooks) : ctx_(ctx), hooks_(std::move(hooks)) {}
  HookStrengths& hooks() { return hooks_; }

  // What a session is opened with. `call`: its weights as hooks() numbers them; `own`: its model
  // without hooks.
  struct Opening {
    ModelCall call;
    Value own;
    std::vector<Value> constants;  // of its sets, or of its pairs
    Value schedule;
    std::uint32_t steps = 0;
  };
  void open(Opening opening);
  void close() { calls_.clear(); }
  // There is no memory for these sessions and others beside each other: each is open for its part
  // of an evaluation only, from now on.
  void take_turns();
  // What is asked for its memory where a session finds none; false: it has none.
  void share_with(std::function<bool()> others) { others_ = std::move(others); }
  // What the models make of each set. `inputs`: of all sets of the calls. `look`: is shown all that
  // a model made of a set, which lasts as long as its session; not of pairs.
  std::vector<Tensor> step(
      std::uint32_t index, const std::vector<Value>& inputs,
      const std::function<void(std::size_t set, const Value& made)>& look = {});

 private:
  struct Call {
    Opening opening;
    std::unique_ptr<Session> session;
  };
  void open_session(Call& call);
  std::vector<Value> ask(Call& call, std::uint32_t index, const std::vector<Value>& inputs);

  Context& ctx_;
  HookStrengths hooks_;
  std::vector<Call> calls_;
  bool one_at_a_time_ = false;  // there is no memory for all sessions beside each other
  std::function<bool()> others_;
};

}  // namespace heddle::samplers
