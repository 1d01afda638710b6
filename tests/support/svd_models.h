// A small Stable Video Diffusion, and SV3D (plugins/goldens/svd), by the names of diffusers and by
// the original ones.
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/unet_models.h"

namespace heddle::test {

inline std::vector<FileTensor> svd_model(const std::string& name) {
  return seeded_model(name, false, "svd");
}

// The UNet of SV3D: one that is told so many numbers.
inline std::vector<FileTensor> sv3d_unet(std::int64_t label) {
  std::vector<FileTensor> tensors = svd_model("unet");
  for (FileTensor& tensor : tensors)
    if (tensor.name == "add_embedding.linear_1.weight")
      tensor = seeded_tensor(tensor.name, {tensor.shape[0], label});
  return tensors;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

inline void name_svd_as_original(std::vector<FileTensor>& tensors, const std::string& prefix = "") {
  for (FileTensor& tensor : tensors) tensor.name = replaced(tensor.name, "spatial_res_block.", "");
  name_unet_as_original(tensors, 1, prefix);
  const std::pair<const char*, const char*> names[] = {
      {"temporal_res_block.", "time_stack."},
      {"temporal_transformer_blocks.", "time_stack."},
      {"time_pos_embed.linear_1.", "time_pos_embed.0."},
      {"time_pos_embed.linear_2.", "time_pos_embed.2."}};
  for (FileTensor& tensor : tensors)
    for (const auto& [from, to] : names) tensor.name = replaced(tensor.name, from, to);
}

// The autoencoder of four levels.
inline void name_svd_vae_as_original(std::vector<FileTensor>& tensors,
                                     const std::string& prefix = "") {
  const std::pair<const char*, const char*> names[] = {
      {R"(\.time_mixer\.mix_factor)", ".mix_factor"},
      {R"(\.spatial_res_block)", ""},
      {R"(\.temporal_res_block\.norm1)", ".time_stack.in_layers.0"},
      {R"(\.temporal_res_block\.conv1)", ".time_stack.in_layers.2"},
      {R"(\.temporal_res_block\.norm2)", ".time_stack.out_layers.0"},
      {R"(\.temporal_res_block\.conv2)", ".time_stack.out_layers.3"},
      {R"(mid_block\.resnets\.0)", "mid.block_1"},
      {R"(mid_block\.resnets\.1)", "mid.block_2"},
      {R"(mid_block\.attentions\.0)", "mid.attn_1"},
      {R"(\.group_norm)", ".norm"},
      {R"(\.to_(q|k|v)\.)", ".$1."},
      {R"(\.to_out\.0)", ".proj_out"},
      {R"(down_blocks\.(\d)\.resnets)", "down.$1.block"},
      {R"(down_blocks\.(\d)\.downsamplers\.0)", "down.$1.downsample"},
      {R"(up_blocks\.0\.)", "up.3."},
      {R"(up_blocks\.1\.)", "up.2."},
      {R"(up_blocks\.2\.)", "up.1."},
      {R"(up_blocks\.3\.)", "up.0."},
      {R"(\.resnets\.)", ".block."},
      {R"(\.upsamplers\.0)", ".upsample"},
      {R"(conv_shortcut)", "nin_shortcut"},
      {R"(conv_norm_out)", "norm_out"},
      {R"(\.time_conv_out)", ".conv_out.time_mix_conv"}};
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : names)
      tensor.name = std::regex_replace(tensor.name, std::regex(from), to);
    tensor.name.insert(0, prefix);
    // The original files have the attention's matrices as filters.
    if (tensor.name.find("attn_1.") != std::string::npos && tensor.shape.size() == 2)
      tensor.shape.insert(tensor.shape.end(), {1, 1});
  }
}

}  // namespace heddle::test
