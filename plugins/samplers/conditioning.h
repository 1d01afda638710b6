// CONDITIONING values as a model's constant inputs: one set for each entry of the list, weighted.
// One call's thread.
#pragma once

#include <vector>

#include <heddle/model.hpp>

namespace heddle::field {

struct ConditioningSet {
  Value constants;      // record by the model's input names
  double weight = 1.0;  // of its prediction; the weights of a list add up to 1
};

// The entries of a list, for a batch of `items`. Throws when an entry asks for something that this
// sampler does not do, or lacks something that the model reads.
std::vector<ConditioningSet> conditioning_sets(Context& ctx, const Value& list, const Value& model,
                                               std::int64_t items);

}  // namespace heddle::field
