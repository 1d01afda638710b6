// Normalized Attention Guidance changes a model's attentions by those of the same picture under the
// negative conditioning. So the model is called with a pair of conditionings at once, and computes
// both predictions (the input "nag" of heddle/diffusion/values.h). Which sets of a run make pairs,
// and what the model reads of them. Any thread, but for what takes a Context.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <heddle/infer.hpp>
#include <heddle/model.hpp>

#include "stretches.h"

namespace heddle::samplers {

// By the model's input names.
using Constants = std::vector<Infer::Named>;

// Why two sets cannot be a pair, as the end of a sentence; empty: they can.
std::string unlike(const Constants& positive, const Constants& negative);

struct PairedCalls {
  std::vector<ModelCall> calls;
  std::string lacking;  // why a set of the positive conditioning is in no pair; empty: all are
};
// Takes pairs out of calls: each set of the positive conditioning with the first of the negative
// one that has its area and window and is of the same call, so of the same model and weights.
// `unlike` is told their places in `sets`.
PairedCalls in_pairs(std::vector<ModelCall> calls, const std::vector<ModelSet>& sets,
                     const std::function<std::string(std::size_t, std::size_t)>& unlike);

// The shapes of a pair's constants, for `items` pictures. REQUIRES: they are not unlike.
Constants paired_shapes(const Constants& positive, const Constants& negative, std::int64_t items);
// The shapes of a record of constants.
Constants shapes_of(const Value& constants);
// The constants of a pair, on the device of the call. REQUIRES: as above.
Value paired_constants(Context& ctx, const NagNumbers& numbers, const Value& positive,
                       const Value& negative, std::int64_t items);

// A pair's prediction (B, 2 C, ...) as the positive's (side 0) or the negative's, (B, C, ...).
Tensor side_of_pair(Context& ctx, const Tensor& output, int side);

}  // namespace heddle::samplers
