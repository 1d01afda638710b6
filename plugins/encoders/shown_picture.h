// A picture as models see it that draw from one: CLIP's embedding of its middle in the place of a
// text, and its latent in the size of what is drawn. Of nodes with the ports clip_vision,
// init_image, vae, width and height. One call's thread.
#pragma once

#include <optional>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

inline constexpr std::int64_t kShownCell = 8;    // pixels of a side
inline constexpr std::int64_t kShownLatent = 4;  // channels

struct ShownPicture {
  Tensor text;    // (1, B, width) of B pictures
  Tensor latent;  // (B, channels, h, w), in the autoencoder's units
};
// noise: what is added to the pixels, from 0 to 1, of normal numbers that are the same in each run.
ShownPicture shown_picture(Context& ctx, const Value& tower, const Tensor& image, const Value& vae,
                           const blocks::GridSize& to, double noise);
Tensor zeros(Context& ctx, const Shape& shape);

// The same by shapes, with the calls; none where they are not known yet.
struct ShownShapes {
  Shape text, latent;
};
std::optional<ShownShapes> tell_shown(Infer& question, const Value& tower, const Shape& image,
                                      const Value& vae, const blocks::GridSize& to);

// By the ports of a node.
template <class Node>
ShownPicture shown_by(Context& ctx, double noise) {
  return shown_picture(ctx, ctx[Node::clip_vision], ctx[Node::init_image], ctx[Node::vae],
                       {ctx[Node::height], ctx[Node::width]}, noise);
}
template <class Node>
std::optional<ShownShapes> tell_shown_by(Infer& question) {
  const auto rows = question[Node::height], columns = question[Node::width];
  const auto tower = question[Node::clip_vision], value = question[Node::vae];
  const auto shape = question.shape(Node::init_image);
  if (!rows || !columns || !tower || !value || !shape) return {};
  return tell_shown(question, *tower, *shape, *value, {*rows, *columns});
}

}  // namespace heddle::encoders
