#include "upscaler_bench_tensors.h"

#include <cmath>

namespace heddle::upscalers {
namespace {

constexpr std::int64_t kColours = 3;
constexpr double kSpread = 0.02;

std::string numbered(const char* name, int i) { return name + std::to_string(i); }

// Of a transformer: channels, heads, channels of what comes before the enlarging, groups of layers,
// layers of each.
struct Layers {
  std::int64_t width, heads, features;
  int groups, depth;
};
constexpr Layers kPublishedLayers{180, 6, 64, 6, 6}, kSmallLayers{24, 2, 8, 1, 2};

// Norms, attention and MLP of SwinIR and HAT, with a table for `distances` along each side.
void layer_attention(const UpscalerTensors& tensors, const std::string& block,
                     const std::string& attn, const Layers& size, std::int64_t distances) {
  const std::int64_t width = size.width;
  tensors.norm(block + ".norm1", width);
  tensors.add(attn + ".relative_position_bias_table", {distances * distances, size.heads}, 0,
              kSpread);
  tensors.matrix(attn + ".qkv", 3 * width, width);
  tensors.matrix(attn + ".proj", width, width);
  tensors.norm(block + ".norm2", width);
  tensors.matrix(block + ".mlp.fc1", 2 * width, width);
  tensors.matrix(block + ".mlp.fc2", width, 2 * width);
}

void shuffled_end(const UpscalerTensors& tensors, const Layers& size) {
  const std::int64_t features = size.features;
  tensors.conv("conv_before_upsample.0", features, size.width);
  tensors.conv("upsample.0", 4 * features, features);
  tensors.conv("upsample.2", 4 * features, features);
  tensors.conv("conv_last", kColours, features);
}

void running_norm_of(const UpscalerTensors& tensors, const std::string& module,
                     std::int64_t width) {
  tensors.norm(module, width);
  tensors.add(module + ".running_mean", {width}, 0, kSpread);
  tensors.add(module + ".running_var", {width}, 1, 0);
}

// A layer of DAT, with windows of side x side.
void dat_layer(const UpscalerTensors& tensors, const std::string& block, const Layers& size,
               bool by_channel, std::int64_t side) {
  const std::int64_t width = size.width, pos = width / 2 / 4 / 4;
  const std::string attn = block + ".attn.";
  tensors.norm(block + ".norm1", width);
  tensors.matrix(attn + "qkv", 3 * width, width);
  tensors.matrix(attn + "proj", width, width);
  tensors.add(attn + "dwconv.0.weight", {width, 1, 3, 3}, 0, 1.0 / 3);
  tensors.add(attn + "dwconv.0.bias", {width}, 0, kSpread);
  running_norm_of(tensors, attn + "dwconv.1", width);
  tensors.conv(attn + "channel_interaction.1", width / 8, width, 1);
  running_norm_of(tensors, attn + "channel_interaction.2", width / 8);
  tensors.conv(attn + "channel_interaction.4", width, width / 8, 1);
  tensors.conv(attn + "spatial_interaction.0", width / 16, width, 1);
  running_norm_of(tensors, attn + "spatial_interaction.1", width / 16);
  tensors.conv(attn + "spatial_interaction.3", 1, width / 16, 1);
  if (by_channel) tensors.add(attn + "temperature", {size.heads, 1, 1}, 1, 0);
  for (int i = 0; i < 2 && !by_channel; ++i) {
    const std::string one = attn + numbered("attns.", i);
    // The last distances are all that is read of it, and all its numbers are the same here.
    tensors.add(one + ".rpe_biases", {(2 * side - 1) * (2 * side - 1), 2}, double(side - 1), 0);
    tensors.matrix(one + ".pos.pos_proj", pos, 2);
    for (int j = 1; j <= 3; ++j) {
      tensors.norm(one + numbered(".pos.pos", j) + ".0", pos);
      tensors.matrix(one + numbered(".pos.pos", j) + ".2", j == 3 ? size.heads / 2 : pos, pos);
    }
  }
  tensors.norm(block + ".norm2", width);
  tensors.matrix(block + ".ffn.fc1", 4 * width, width);
  tensors.norm(block + ".ffn.sg.norm", 2 * width);
  tensors.add(block + ".ffn.sg.conv.weight", {2 * width, 1, 3, 3}, 0, 1.0 / 3);
  tensors.add(block + ".ffn.sg.conv.bias", {2 * width}, 0, kSpread);
  tensors.matrix(block + ".ffn.fc2", width, 2 * width);
}

}  // namespace

void UpscalerTensors::conv(const std::string& module, std::int64_t out, std::int64_t in,
                           std::int64_t side) const {
  add(module + ".weight", {out, in, side, side}, 0, 1 / std::sqrt(double(side * side * in)));
  add(module + ".bias", {out}, 0, kSpread);
}

void UpscalerTensors::matrix(const std::string& module, std::int64_t out, std::int64_t in) const {
  add(module + ".weight", {out, in}, 0, 1 / std::sqrt(double(in)));
  add(module + ".bias", {out}, 0, kSpread);
}

void UpscalerTensors::norm(const std::string& module, std::int64_t width) const {
  add(module + ".weight", {width}, 1, kSpread);
  add(module + ".bias", {width}, 0, kSpread);
}

void UpscalerTensors::add(const std::string& name, const Shape& shape, double mean,
                          double deviation) const {
  const heddle_bench_tensor tensor{
      sizeof tensor, file_, name.c_str(), HEDDLE_F32, std::uint32_t(shape.size()),
      shape.data(),  mean,  deviation};
  sink_.tensor(sink_.to, &tensor);
}

void esrgan_tensors(const UpscalerTensors& tensors, bool is_small) {
  const std::int64_t width = is_small ? 16 : 64, growth = is_small ? 8 : 32;
  const int depth = is_small ? 1 : 23;
  tensors.conv("conv_first", width, kColours);
  for (int i = 0; i < depth; ++i)
    for (int dense = 1; dense <= 3; ++dense)
      for (int c = 1; c <= 5; ++c)
        tensors.conv(numbered("body.", i) + numbered(".rdb", dense) + numbered(".conv", c),
                     c == 5 ? width : growth, width + (c - 1) * growth);
  for (const char* name : {"conv_body", "conv_up1", "conv_up2", "conv_hr"})
    tensors.conv(name, width, width);
  tensors.conv("conv_last", kColours, width);
}

void span_tensors(const UpscalerTensors& tensors, bool is_small) {
  constexpr std::int64_t kGain = 2;  // of the convolutions inside
  constexpr double kRange = 255;     // colours count to it, and are made small at once
  const std::int64_t width = is_small ? 16 : 48;
  const auto triple = [&](const std::string& module, std::int64_t in, double share) {
    const auto point = [&](const std::string& name, std::int64_t out, std::int64_t from,
                           double part) {
      tensors.add(module + name + ".weight", {out, from, 1, 1}, 0, part / std::sqrt(double(from)));
      tensors.add(module + name + ".bias", {out}, 0, kSpread);
    };
    point(".sk", width, in, share);
    point(".conv.0", kGain * in, in, 1);
    tensors.conv(module + ".conv.1", kGain * width, kGain * in);
    point(".conv.2", width, kGain * width, share);
  };
  triple("conv_1", kColours, 1 / kRange);
  for (int i = 1; i <= 6; ++i)
    for (int c = 1; c <= 3; ++c) triple(numbered("block_", i) + numbered(".c", c) + "_r", width, 1);
  triple("conv_2", width, 1);
  tensors.conv("conv_cat", width, 4 * width, 1);
  tensors.add("upsampler.0.weight", {16 * kColours, width, 3, 3}, 0,
              1 / std::sqrt(9 * double(width)));
  tensors.add("upsampler.0.bias", {16 * kColours}, 0.5, kSpread);
}

void swinir_tensors(const UpscalerTensors& tensors, bool is_small) {
  constexpr std::int64_t kWindow = 8;
  const Layers size = is_small ? kSmallLayers : kPublishedLayers;
  tensors.conv("conv_first", size.width, kColours);
  tensors.norm("patch_embed.norm", size.width);
  for (int i = 0; i < size.groups; ++i) {
    for (int j = 0; j < size.depth; ++j) {
      const std::string block = numbered("layers.", i) + numbered(".residual_group.blocks.", j);
      layer_attention(tensors, block, block + ".attn", size, 2 * kWindow - 1);
    }
    tensors.conv(numbered("layers.", i) + ".conv", size.width, size.width);
  }
  tensors.norm("norm", size.width);
  tensors.conv("conv_after_body", size.width, size.width);
  tensors.conv("conv_before_upsample.0", size.features, size.width);
  for (const char* name : {"conv_up1", "conv_up2", "conv_hr"})
    tensors.conv(name, size.features, size.features);
  tensors.conv("conv_last", kColours, size.features);
}

void hat_tensors(const UpscalerTensors& tensors, bool is_small) {
  constexpr std::int64_t kWindow = 16, kReach = 24;
  const Layers size = is_small ? kSmallLayers : kPublishedLayers;
  const std::int64_t narrow = size.width / 3, few = is_small ? 2 : 6;
  tensors.conv("conv_first", size.width, kColours);
  tensors.norm("patch_embed.norm", size.width);
  for (int i = 0; i < size.groups; ++i) {
    const std::string group = numbered("layers.", i) + ".residual_group.";
    for (int j = 0; j < size.depth; ++j) {
      const std::string block = group + numbered("blocks.", j);
      layer_attention(tensors, block, block + ".attn", size, 2 * kWindow - 1);
      tensors.conv(block + ".conv_block.cab.0", narrow, size.width);
      tensors.conv(block + ".conv_block.cab.2", size.width, narrow);
      tensors.conv(block + ".conv_block.cab.3.attention.1", few, size.width, 1);
      tensors.conv(block + ".conv_block.cab.3.attention.3", size.width, few, 1);
    }
    layer_attention(tensors, group + "overlap_attn", group + "overlap_attn", size,
                    kWindow + kReach - 1);
    tensors.conv(numbered("layers.", i) + ".conv", size.width, size.width);
  }
  tensors.norm("norm", size.width);
  tensors.conv("conv_after_body", size.width, size.width);
  shuffled_end(tensors, size);
}

void dat_tensors(const UpscalerTensors& tensors, bool is_small) {
  const Layers size = is_small ? Layers{32, 4, 8, 1, 3} : kPublishedLayers;
  tensors.conv("conv_first", size.width, kColours);
  tensors.norm("before_RG.1", size.width);
  for (int i = 0; i < size.groups; ++i) {
    for (int j = 0; j < size.depth; ++j)
      dat_layer(tensors, numbered("layers.", i) + numbered(".blocks.", j), size, j % 2 == 1,
                is_small ? 8 : 16);
    tensors.conv(numbered("layers.", i) + ".conv", size.width, size.width);
  }
  tensors.norm("norm", size.width);
  tensors.conv("conv_after_body", size.width, size.width);
  shuffled_end(tensors, size);
}

}  // namespace heddle::upscalers
