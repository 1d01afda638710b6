// Many prompts of one: other values for some of its inputs, and each of them several times. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace heddle::engine {

// An input as NODE.INPUT, by the node's id, and the values that it gets one after another.
struct BatchInput {
  std::string name;
  std::vector<Json> values;
};

struct Batch {
  // zipped: the first values of all inputs together, then the second ones; crossed: every value of
  // one with every value of the others, those of the last input varying fastest.
  enum class Mode { zipped, crossed } mode = Mode::crossed;
  std::vector<BatchInput> inputs;
  std::uint64_t repeats = 1;  // of each prompt, one behind the other
};

inline constexpr std::uint64_t kMostOfBatch = 10'000;  // prompts

// The "sweep" of a submission: {"mode": "zipped" or "crossed", "inputs": {"3.seed": [1, 2]},
// "repeats": 2}, each of which may be missing. Throws Error(invalid_argument) that says what is
// wrong with its values.
Batch read_batch(const Json& json);

// `prompt` in the API format, once for each set of values. Without inputs and repeats: itself.
// Throws Error(invalid_argument) for a name that is no input of the prompt, an empty list, lists of
// unequal length that are to be zipped, and for more than `most` prompts; nothing is made then.
std::vector<Json> expand_batch(const Json& prompt, const Batch& batch,
                               std::uint64_t most = kMostOfBatch);

}  // namespace heddle::engine
