// plugins/blocks/slots.h - what every model family needs while it builds: counting layers, finding
// a prefix, and filling slots with checked tensors. A tensor that is missing or has another shape
// than the family works out is an error here, at build time, with the file, the tensor, both shapes
// and the block it was for. Functions of names and shapes only; nothing is kept, so any thread may
// call them.
#pragma once

#include <heddle/model.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace heddle::blocks {

// "(3072, 64)".
std::string shape_text(const Shape& shape);

// 1 + the largest i for which some tensor is named "<prefix>i.<anything>"; 0 when there is none. A
// gap counts: filling the absent layer then says what is missing. At most 10000, whatever i a file
// names: whoever goes through them comes to an end.
int layer_count(const Checkpoint& file, std::string_view prefix);

// The prefix before the first tensor whose name ends in `tail`, such as "vae." before
// "decoder.conv_in.weight"; nothing when no tensor does.
std::optional<std::string> prefix_before(const Checkpoint& file, std::string_view tail);

// Fills the slots of one block.
class Slots {
 public:
  // path: the block's name in plans, for messages. file and block outlive this object.
  Slots(const Checkpoint& file, Block& block, std::string path)
      : file_(file), block_(block), path_(std::move(path)) {}

  // The parts, one after another along axis 0, make a tensor of the expected shape; parts without
  // an end have the same number of rows each. A tensor with an axis of 0 is refused, too.
  void fill(const Weight& slot, const std::vector<Part>& parts, const Shape& expected);
  // Parts with a frame are expected with an axis of frames behind the second.
  void fill(const Weight& slot, const std::string& tensor, const Shape& expected) {
    fill(slot, std::vector<Part>{{tensor}}, expected);
  }

 private:
  const Checkpoint& file_;
  Block& block_;
  std::string path_;
};

}  // namespace heddle::blocks
