// CONDITIONING values as a model's constant inputs: one set for each entry of the list, weighted.
// One call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::samplers {

struct ConditioningSet {
  Value constants;      // record by the model's input names
  double weight = 1.0;  // of its prediction; the weights of a list add up to 1, or are all 0
};

// What a model reads besides x and timestep, and where in a conditioning it stands.
struct ConditioningInput {
  enum class Kind { kText, kPooled, kGuidance } kind;
  std::string name;  // the model's
};
// Throws when the model reads something that the samplers cannot give it.
std::vector<ConditioningInput> conditioning_inputs(const Value& model);

// Rows that a tensor of `rows` rows has when it is given to a model with a batch of `items`, as in
// ComfyUI: repeated or cut to the batch. A single row serves the whole batch as it is.
constexpr std::int64_t fitted_rows(std::int64_t rows, std::int64_t items) {
  return rows == 1 ? 1 : items;
}

// The entries of a list, for a batch of `items`. Where all have a strength of 0 the list predicts a
// clean picture of zeros, as in ComfyUI. Throws when an entry asks for something that this
// sampler does not do, or lacks something that the model reads.
std::vector<ConditioningSet> conditioning_sets(Context& ctx, const Value& list, const Value& model,
                                               std::int64_t items);

}  // namespace heddle::samplers
