// What a model will be called with, by the shapes that are known of a CONDITIONING before a run.
// Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "attention_pairs.h"
#include "conditioning.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {

// The constants of one set; none when an entry lacks what the model reads.
std::optional<Constants> constants_of(const blocks::EntryShapes& entry,
                                      const std::vector<ConditioningInput>& inputs,
                                      const Value& model, const ConcatPlace& place);

// A call of a model, as it will be made.
struct ToldCall {
  Value model;
  std::size_t steps = 0;  // 0: it is called once, without a schedule
  std::vector<Infer::Set> sets;
  std::size_t predictions = 0;  // and copies of them
  double shown = 0;             // numbers in host memory for pictures that it reads
  double kept = 0;              // of what was made of reference pictures
};

}  // namespace heddle::samplers
