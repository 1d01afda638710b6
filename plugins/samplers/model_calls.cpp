#include "model_calls.h"

#include <heddle/ops.hpp>

#include "attention_pairs.h"
#include "pair_latent.h"

namespace heddle::samplers {

void ModelCalls::open(Opening opening) {
  Call& call = calls_.emplace_back();
  call.opening = std::move(opening);
  open_session(call);
}

void ModelCalls::open_session(Call& call) {
  const Opening& with = call.opening;
  call.session =
      std::make_unique<Session>(ctx_, hooks_.model(with.call.model, with.own, with.call.weights),
                                with.constants, with.schedule, with.steps);
}

// Sessions that are open beside each other keep their memory from one evaluation to the next. Where
// that is too much for them together, each is opened for its part of an evaluation only.
std::vector<Value> ModelCalls::ask(Call& call, std::uint32_t index,
                                   const std::vector<Value>& inputs) {
  if (call.session == nullptr) open_session(call);
  if (one_at_a_time_) return call.session->step(index, inputs);
  try {
    return call.session->step(index, inputs);
  } catch (const Failed& failed) {
    if (services.host->status_code(failed.status) != HEDDLE_OUT_OF_MEMORY) throw;
    const bool others_gave = others_ && others_();
    if (!others_gave && calls_.size() < 2) throw;
    services.host->status_free(failed.status);
  }
  take_turns();
  open_session(call);
  return call.session->step(index, inputs);
}

void ModelCalls::take_turns() {
  one_at_a_time_ = true;
  for (Call& each : calls_) each.session.reset();
}

std::vector<Tensor> ModelCalls::step(
    std::uint32_t index, const std::vector<Value>& inputs,
    const std::function<void(std::size_t set, const Value& made)>& look) {
  std::vector<Tensor> outputs(inputs.size());
  for (Call& call : calls_) {
    const std::vector<std::size_t>& sets = call.opening.call.sets;
    const bool pairs = call.opening.call.pairs;
    std::vector<Value> given;  // both of a pair see the same point
    for (std::size_t k = 0; k < sets.size(); k += pairs ? 2 : 1) given.push_back(inputs[sets[k]]);
    const std::vector<Value> made = ask(call, index, given);
    for (std::size_t k = 0; k < made.size(); ++k) {
      Tensor output = point_output(ctx_, made[k]);
      if (pairs) {
        for (const int side : {0, 1})
          outputs[sets[2 * k + std::size_t(side)]] = side_of_pair(ctx_, output, side);
        continue;
      }
      if (look) look(sets[k], made[k]);
      // What a session gives lies in its own memory, which is to go with it.
      if (one_at_a_time_) {
        const Tensor copy = ctx_.make_like(output);
        ops::copy_into(ctx_, output, copy);
        output = copy;
      }
      outputs[sets[k]] = output;
    }
    if (one_at_a_time_) call.session.reset();
  }
  return outputs;
}

}  // namespace heddle::samplers
