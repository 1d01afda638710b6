// plugins/detection/sam3_prompts.h - what SAM3_Detect is told to look for: texts of a CONDITIONING,
// boxes, points. Values only; any thread. All throw HEDDLE_INVALID_ARGUMENT with the port's name.
#pragma once

#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::detection {

// A point in pixels of a picture and what it is of (sam3_segment_blocks.h): 0 not of the object, 1
// of it, 2 and 3 corners of a box, 4 no point.
struct PromptPoint {
  double x = 0, y = 0;
  std::int32_t kind = 4;
};
inline constexpr std::int32_t kNoPoint = 4;

// In pixels.
struct PromptBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// States of a text (1, N, W) without padding, and of how many things at most.
struct PromptText {
  Tensor states;
  std::int64_t most = 1;
};
// None without a conditioning.
std::vector<PromptText> prompt_texts(const Value& conditioning);
// How many texts a conditioning's first entry has, and of how many things each at most.
std::vector<std::int64_t> most_of_texts(const Value& entry);

// The shapes of their states, before a run.
std::vector<Shape> text_shapes(Infer& question, const Input<Value>& conditioning);

// JSON: a list of objects with numbers x and y. None of an empty text.
std::vector<PromptPoint> prompt_points(const std::string& json, std::int32_t kind,
                                       const char* port);

// For each of `pictures`: one box or one list for all, or a list for each, whose last one is
// everybody's behind it.
std::vector<std::vector<PromptBox>> prompt_boxes(const Value& value, std::int64_t pictures);

}  // namespace heddle::detection
