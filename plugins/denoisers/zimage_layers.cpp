#include "zimage_layers.h"

#include <optional>

#include "zimage_blocks.h"

namespace heddle::denoisers {

void ZImageLayers::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                          const std::string& module, std::int64_t out, std::int64_t in) const {
  slots.fill(matrix, names_.parts(module + ".weight"), {out, in});
  slots.fill(bias, names_.parts(module + ".bias"), {out});
}

Source ZImageLayers::add_modulation(const std::string& path, const std::string& at,
                                    const std::vector<Part>& norms, const Source& vector) const {
  using M = ZImageModulation;
  Block block = graph_.add<M>(path);
  block.link(M::vector, vector).set(M::activates, kind_.activates);
  blocks::Slots slots(file_, block, path);
  linear(slots, M::weight, M::bias, at + kind_.modulation, 4 * s_.hidden, s_.vector_width);
  slots.fill(M::norms, norms, {4 * s_.hidden});
  return block[M::out];
}

Source ZImageLayers::add(const std::string& path, const std::string& at, const Source& hidden,
                         const ZImageTold& told) const {
  using B = ZImageLayer;
  std::vector<Part> norms;
  for (const char* norm : {"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"})
    norms.push_back(names_.parts(at + norm + ".weight").front());
  const std::string block_path = path + (told.is_modulated ? ".block" : "");
  std::optional<Source> modulation;
  if (told.is_modulated) modulation = add_modulation(path + ".modulation", at, norms, told.vector);
  Block block = graph_.add<B>(block_path);
  block.link(B::hidden, hidden).link(B::cos, told.cos).link(B::sin, told.sin);
  if (told.point) block.link(B::point, *told.point);
  block.set(B::heads, s_.heads).set(B::kv_heads, s_.kv_heads);
  block.set(B::eps, s_.eps).set(B::is_last, told.is_last);
  blocks::Slots slots(file_, block, block_path);
  if (modulation)
    block.link(B::mod, *modulation);
  else
    slots.fill(B::norms, norms, {4 * s_.hidden});
  const auto weight = [&](const char* module) { return names_.parts(at + module + ".weight"); };
  slots.fill(B::qkv, weight("attention.qkv"), {(s_.heads + 2 * s_.kv_heads) * s_.head, s_.hidden});
  slots.fill(B::q_norm, weight("attention.q_norm"), {s_.head});
  slots.fill(B::k_norm, weight("attention.k_norm"), {s_.head});
  slots.fill(B::proj, weight("attention.out"), {s_.hidden, s_.hidden});
  slots.fill(B::up, {weight("feed_forward.w1").front(), weight("feed_forward.w3").front()},
             {2 * s_.mlp, s_.hidden});
  slots.fill(B::down, weight("feed_forward.w2"), {s_.hidden, s_.mlp});
  return block[B::out];
}

}  // namespace heddle::denoisers
