// Small transformers of Stable Diffusion 3 and 3.5 (plugins/goldens/sd3), by the publisher's names
// and by those of diffusers.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

// kind: "first", "large" or "medium". Weights of norms of queries and keys are around 1.
inline std::vector<FileTensor> sd3_transformer(const std::string& kind) {
  std::vector<FileTensor> tensors = seeded_model(kind, false, "sd3");
  for (FileTensor& tensor : tensors) {
    if (tensor.name.find(".ln_") == std::string::npos) continue;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
      value += 1;
      std::memcpy(tensor.bytes.data() + at, &value, sizeof value);
    }
  }
  return tensors;
}

// Queries, keys and values apart, and the halves of two modulations the other way round.
inline void name_sd3_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> names[] = {
      {"x_embedder.proj.", "pos_embed.proj."},
      {"t_embedder.mlp.0.", "time_text_embed.timestep_embedder.linear_1."},
      {"t_embedder.mlp.2.", "time_text_embed.timestep_embedder.linear_2."},
      {"y_embedder.mlp.0.", "time_text_embed.text_embedder.linear_1."},
      {"y_embedder.mlp.2.", "time_text_embed.text_embedder.linear_2."},
      {"final_layer.adaLN_modulation.1.", "norm_out.linear."},
      {"final_layer.linear.", "proj_out."},
      {"joint_blocks.", "transformer_blocks."},
      {"x_block.adaLN_modulation.1.", "norm1.linear."},
      {"context_block.adaLN_modulation.1.", "norm1_context.linear."},
      {"x_block.attn.ln_", "attn.norm_"},
      {"context_block.attn.ln_", "attn.norm_added_"},
      {"x_block.attn2.ln_", "attn2.norm_"},
      {"x_block.attn.proj.", "attn.to_out.0."},
      {"context_block.attn.proj.", "attn.to_add_out."},
      {"x_block.attn2.proj.", "attn2.to_out.0."},
      {"x_block.mlp.fc1.", "ff.net.0.proj."},
      {"x_block.mlp.fc2.", "ff.net.2."},
      {"context_block.mlp.fc1.", "ff_context.net.0.proj."},
      {"context_block.mlp.fc2.", "ff_context.net.2."}};
  const std::pair<const char*, const char*> fused[] = {
      {"x_block.attn.qkv.", "attn.to_#."},
      {"context_block.attn.qkv.", "attn.add_#_proj."},
      {"x_block.attn2.qkv.", "attn2.to_#."}};
  std::vector<FileTensor> renamed;
  for (FileTensor tensor : tensors) {
    if (tensor.name == "pos_embed") tensor.name = "pos_embed.pos_embed";
    // Of the last block's text there are two parts of 128, of others six.
    const bool is_turned = tensor.name.starts_with("final_layer.adaLN") ||
                           (tensor.name.find("context_block.adaLN") != std::string::npos &&
                            tensor.shape[0] == 2 * 128);
    if (is_turned) {
      const std::size_t half = tensor.bytes.size() / 2;
      tensor.bytes = tensor.bytes.substr(half) + tensor.bytes.substr(0, half);
    }
    bool is_fused = false;
    for (const auto& [from, to] : fused) {
      const std::size_t at = tensor.name.find(from);
      if (at == std::string::npos) continue;
      is_fused = true;
      const std::size_t third = tensor.bytes.size() / 3;
      for (std::size_t i = 0; i < 3; ++i) {
        FileTensor part{std::string(tensor.name).replace(at, std::strlen(from), to), tensor.dtype,
                        tensor.shape, tensor.bytes.substr(i * third, third)};
        part.shape[0] /= 3;
        part.name[part.name.find('#')] = "qkv"[i];
        renamed.push_back(std::move(part));
      }
    }
    if (is_fused) {
      const std::size_t blocks = renamed.size() - 3;
      for (std::size_t i = blocks; i < renamed.size(); ++i)
        renamed[i].name.replace(0, std::strlen("joint_blocks"), "transformer_blocks");
      continue;
    }
    for (const auto& [from, to] : names)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::strlen(from), to);
    renamed.push_back(std::move(tensor));
  }
  tensors = std::move(renamed);
}

}  // namespace heddle::test
