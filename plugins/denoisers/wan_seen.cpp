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

Source WanSeen::vision(const std::string& path, const Source& vision) const {
  using B = WanVisionIn;
  Block block = graph_.add<B>(path);
  block.link(B::vision, vision);
  blocks::Slots slots(file_, block, path);
  vector_of(slots, B::norm1, "img_emb.proj.0.weight", s_.vision.width);
  vector_of(slots, B::norm1_bias, "img_emb.proj.0.bias", s_.vision.width);
  linear(slots, B::in, B::in_bias, "img_emb.proj.1", s_.vision.width, s_.vision.width);
  linear(slots, B::last, B::last_bias, "img_emb.proj.3", s_.width, s_.vision.width);
  vector_of(slots, B::norm2, "img_emb.proj.4.weight", s_.width);
  vector_of(slots, B::norm2_bias, "img_emb.proj.4.bias", s_.width);
  if (s_.vision.has_positions) {
    const std::string tensor = names_.one("img_emb.emb_pos");
    slots.fill(B::positions, tensor, {1, file_.size(tensor, 1), s_.vision.width});
  }
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
