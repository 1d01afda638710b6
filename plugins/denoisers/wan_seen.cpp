#include "wan_seen.h"

#include "wan_blocks.h"

namespace heddle::denoisers {

void WanSeen::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                     const std::string& module, std::int64_t out, std::int64_t in) const {
  slots.fill(matrix, names_.one(module + ".weight"), {out, in});
  slots.fill(bias, names_.one(module + ".bias"), {out});
}

void WanSeen::vector_of(blocks::Slots& slots, const Weight& weight, const std::string& tensor,
                        std::int64_t width) const {
  slots.fill(weight, names_.one(tensor), {width});
}

Source WanSeen::text(const std::string& path, const Source& context) const {
  using B = WanTextIn;
  Block block = graph_.add<B>(path);
  block.link(B::context, context);
  blocks::Slots slots(file_, block, path);
  linear(slots, B::in, B::in_bias, "text_embedding.0", s_.width, s_.text);
  linear(slots, B::last, B::last_bias, "text_embedding.2", s_.width, s_.width);
  return block[B::out];
}

Source WanSeen::vision(const std::string& path, const Source& vision,
                       const std::string& module) const {
  using B = WanVisionIn;
  Block block = graph_.add<B>(path);
  block.link(B::vision, vision);
  blocks::Slots slots(file_, block, path);
  const std::string at = module + ".proj.";
  vector_of(slots, B::norm1, at + "0.weight", s_.vision.width);
  vector_of(slots, B::norm1_bias, at + "0.bias", s_.vision.width);
  linear(slots, B::in, B::in_bias, at + "1", s_.vision.width, s_.vision.width);
  linear(slots, B::last, B::last_bias, at + "3", s_.width, s_.vision.width);
  vector_of(slots, B::norm2, at + "4.weight", s_.width);
  vector_of(slots, B::norm2_bias, at + "4.bias", s_.width);
  const std::string positions = names_.one(module + ".emb_pos");
  if (file_.has(positions))
    slots.fill(B::positions, positions, {1, file_.size(positions, 1), s_.vision.width});
  return block[B::out];
}

Source WanSeen::keys(const std::string& path, const Source& seen, const std::string& at,
                     const std::string& tail, const Source& x) const {
  using B = WanKeys;
  Block block = graph_.add<B>(path);
  block.link(B::seen, seen).link(B::x, x).set(B::eps, eps_);
  blocks::Slots slots(file_, block, path);
  linear(slots, B::k, B::k_bias, at + "k" + tail, s_.width, s_.width);
  linear(slots, B::v, B::v_bias, at + "v" + tail, s_.width, s_.width);
  vector_of(slots, B::norm, at + "norm_k" + tail + ".weight", s_.width);
  return block[B::out];
}

}  // namespace heddle::denoisers
