#include "sam3_decoder.h"

#include "attention_blocks.h"
#include "sam3_segment_blocks.h"

namespace heddle::detection {
namespace {

constexpr std::int64_t kDecoderHeads = 8;

}  // namespace

// The module that the file has; the first where it has none.
std::string Sam3Decoder::first_of(const std::vector<std::string>& modules) const {
  for (const std::string& module : modules)
    if (maker_.file().has(module + ".weight")) return module;
  return modules.front();
}

Source Sam3Decoder::tokens() {
  tokens_ = seen_.tokens;
  cells_ = seen_.cells;
  const std::string whole = names_ + "transformer.", at = whole + "layers.",
                    norm = first_of({whole + "norm_final_attn", whole + "norm_final"});
  for (int i = 0; i < blocks::layer_count(maker_.file(), at); ++i) two_ways(i, at);
  tokens_ = to_cells(path_ + "final", whole + "final_attn_token_to_image", norm);
  return tokens_;
}

Source Sam3Decoder::to_cells(const std::string& path, const std::string& at,
                             const std::string& norm) const {
  return maker_.attend(path, at, norm, tokens_,
                       {.places = seen_.tokens,
                        .memory = cells_,
                        .memory_places = seen_.places,
                        .heads = kDecoderHeads,
                        .norm_first = false});
}

// Tokens see each other and the cells, then the cells the tokens.
void Sam3Decoder::two_ways(int index, const std::string& layers) {
  const std::string path = path_ + std::to_string(index), at = layers + std::to_string(index) + ".";
  const bool is_first = index == 0;
  tokens_ = maker_.attend(path + ".self", at + "self_attn", at + "norm1", tokens_,
                          {.places = is_first ? Source() : seen_.tokens,
                           .heads = kDecoderHeads,
                           .norm_first = false,
                           .keeps = !is_first});
  tokens_ = to_cells(path + ".cells", at + "cross_attn_token_to_image", at + "norm2");
  tokens_ =
      maker_.feed(path + ".feed", first_of({at + "mlp.lin1", at + "mlp.0", at + "mlp.layers.0"}),
                  first_of({at + "mlp.lin2", at + "mlp.2", at + "mlp.layers.1"}), at + "norm3",
                  tokens_, {.norm_first = false});
  cells_ = maker_.attend(path + ".tokens", at + "cross_attn_image_to_token", at + "norm4", cells_,
                         {.places = seen_.places,
                          .memory = tokens_,
                          .memory_places = seen_.tokens,
                          .heads = kDecoderHeads,
                          .norm_first = false});
}

Source Sam3Decoder::pixels(const Source& middle, const Source& fine) const {
  using B = Sam3MaskPixels;
  const std::string at = names_ + "output_upscaling.", path = path_ + "pixels";
  Block block = maker_.graph().add<B>(path);
  block.link(B::cells, cells_).link(B::middle, middle).link(B::fine, fine);
  blocks::Slots slots(maker_.file(), block, path);
  const std::int64_t c = maker_.sizes().channels;
  slots.fill(B::first, at + "0.weight", {c, c / 4, 2, 2});
  slots.fill(B::first_bias, at + "0.bias", {c / 4});
  Sam3Maker::fill(slots, B::norm, B::norm_bias, at + "1", {c / 4});
  slots.fill(B::second, at + "3.weight", {c / 4, c / 8, 2, 2});
  slots.fill(B::second_bias, at + "3.bias", {c / 8});
  Sam3Maker::fill(slots, B::middle_conv, B::middle_bias, names_ + "conv_s1", {c / 4, c, 1, 1});
  Sam3Maker::fill(slots, B::fine_conv, B::fine_bias, names_ + "conv_s0", {c / 8, c, 1, 1});
  return block[B::out];
}

}  // namespace heddle::detection
