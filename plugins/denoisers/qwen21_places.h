// plugins/denoisers/qwen21_places.h - where the pictures that Qwen-Image 2.1 is shown stand in its
// joint sequence: the text, with each of them before one of its tokens, then the picture that is
// drawn. All of it is told by shapes: of reference.<i> (1|B, C, h, w), whose pixels are tokens, and
// of slot.<i> (n + 1), which is before token n of the text. Used in blocks, as they are traced; any
// thread.
#pragma once

#include <utility>
#include <vector>

#include <heddle/node.hpp>

#include "joint_attention.h"

namespace heddle::denoisers {

inline constexpr int kMostReferences = 10;  // as many as it was trained with

// Input ports of the blocks that have to know the places.
namespace qwen21_ports {
constexpr std::uint32_t kPlace = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE;
inline constexpr Input<Tensor> references[kMostReferences] = {
    Input<Tensor>{"reference.0", kPlace}, Input<Tensor>{"reference.1", kPlace},
    Input<Tensor>{"reference.2", kPlace}, Input<Tensor>{"reference.3", kPlace},
    Input<Tensor>{"reference.4", kPlace}, Input<Tensor>{"reference.5", kPlace},
    Input<Tensor>{"reference.6", kPlace}, Input<Tensor>{"reference.7", kPlace},
    Input<Tensor>{"reference.8", kPlace}, Input<Tensor>{"reference.9", kPlace}};
inline constexpr Input<Tensor> slots[kMostReferences] = {
    Input<Tensor>{"slot.0", kPlace}, Input<Tensor>{"slot.1", kPlace},
    Input<Tensor>{"slot.2", kPlace}, Input<Tensor>{"slot.3", kPlace},
    Input<Tensor>{"slot.4", kPlace}, Input<Tensor>{"slot.5", kPlace},
    Input<Tensor>{"slot.6", kPlace}, Input<Tensor>{"slot.7", kPlace},
    Input<Tensor>{"slot.8", kPlace}, Input<Tensor>{"slot.9", kPlace}};

// The ports of a block, and these.
template <class... P>
constexpr auto with_places(const P&... own) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return heddle::ports(own..., references[I]..., slots[I]...);
  }
  (std::make_index_sequence<std::size_t{kMostReferences}>{});
}
}  // namespace qwen21_ports

// A stretch of the joint sequence before the picture that is drawn: text, or a picture.
struct Qwen21Span {
  Range range;             // in the joint sequence
  std::int64_t begin = 0;  // its first token among those of the text, or of all pictures
  std::int64_t height = 0, width = 0;  // 0: text
  bool is_text() const { return height == 0; }
};
// In order. text: the number of its tokens. Throws where a picture is to stand before one that is
// not there, or before the one that precedes it.
std::vector<Qwen21Span> qwen21_prefix(Context& ctx, std::int64_t text);

}  // namespace heddle::denoisers
