// Small UNets of Stable Diffusion and SDXL (plugins/goldens/unet), by the names of diffusers and by
// the original ones.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

inline std::vector<FileTensor> unet_model(const std::string& name) {
  return seeded_model(name, false, "unet");
}

// The original name of a tensor. Residual blocks of a level, and the change of size behind them,
// are counted through; `layers`: how many residual blocks a level has downwards.
inline std::string original_unet_name(const std::string& name, int layers) {
  const std::pair<const char*, const char*> outside[] = {
      {"conv_in.", "input_blocks.0.0."},
      {"time_embedding.linear_1.", "time_embed.0."},
      {"time_embedding.linear_2.", "time_embed.2."},
      {"add_embedding.linear_1.", "label_emb.0.0."},
      {"add_embedding.linear_2.", "label_emb.0.2."},
      {"class_embedding.linear_1.", "label_emb.0.0."},
      {"class_embedding.linear_2.", "label_emb.0.2."},
      {"conv_norm_out.", "out.0."},
      {"conv_out.", "out.2."},
      {"mid_block.resnets.0.", "middle_block.0."},
      {"mid_block.attentions.0.", "middle_block.1."},
      {"mid_block.resnets.1.", "middle_block.2."}};
  std::string renamed = name;
  for (const auto& [from, to] : outside)
    if (name.starts_with(from)) renamed = to + name.substr(std::strlen(from));
  const bool is_down = name.starts_with("down_blocks."), is_up = name.starts_with("up_blocks.");
  if (is_down || is_up) {
    const std::size_t level_at = name.find('.') + 1, kind_at = name.find('.', level_at) + 1,
                      index_at = name.find('.', kind_at) + 1,
                      tail_at = name.find('.', index_at) + 1;
    const int level = std::stoi(name.substr(level_at)), index = std::stoi(name.substr(index_at));
    const std::string kind = name.substr(kind_at, index_at - kind_at - 1);
    const int each = layers + 1, first = level * each + (is_down ? 1 : 0);
    const std::string stage = is_down ? "input_blocks." : "output_blocks.";
    std::string tail = name.substr(tail_at);
    if (kind == "downsamplers") {
      renamed = stage + std::to_string(first + layers) + ".0.op" + tail.substr(4);
    } else if (kind == "upsamplers") {  // "?": behind the transformer, where there is one
      renamed = stage + std::to_string(first + layers) + ".?." + tail;
    } else {
      const char* part = kind == "resnets" ? ".0." : ".1.";
      renamed = stage + std::to_string(first + index) + part + tail;
    }
  }
  if (name.find("resnets.") == std::string::npos) return renamed;
  const std::pair<const char*, const char*> inside[] = {
      {".norm1.", ".in_layers.0."},          {".conv1.", ".in_layers.2."},
      {".time_emb_proj.", ".emb_layers.1."}, {".norm2.", ".out_layers.0."},
      {".conv2.", ".out_layers.3."},         {".conv_shortcut.", ".skip_connection."}};
  for (const auto& [from, to] : inside)
    if (const std::size_t at = renamed.find(from); at != std::string::npos)
      renamed.replace(at, std::strlen(from), to);
  return renamed;
}

inline void name_unet_as_original(std::vector<FileTensor>& tensors, int layers,
                                  const std::string& prefix = "") {
  for (FileTensor& tensor : tensors) tensor.name = prefix + original_unet_name(tensor.name, layers);
  for (FileTensor& tensor : tensors) {
    const std::size_t at = tensor.name.find(".?.");
    if (at == std::string::npos) continue;
    const std::string transformer = tensor.name.substr(0, at) + ".1.proj_in.weight";
    bool is_there = false;
    for (const FileTensor& other : tensors) is_there |= other.name == transformer;
    tensor.name[at + 1] = is_there ? '2' : '1';
  }
}

// OpenCLIP's names of a text encoder: queries, keys and values in one, the projection turned.
inline std::vector<FileTensor> as_open_clip(const std::vector<FileTensor>& tensors,
                                            const std::string& prefix) {
  const std::pair<const char*, const char*> names[] = {
      {"text_model.embeddings.token_embedding.weight", "token_embedding.weight"},
      {"text_model.embeddings.position_embedding.weight", "positional_embedding"},
      {"text_model.final_layer_norm.", "ln_final."},
      {"vision_model.embeddings.class_embedding", "class_embedding"},
      {"vision_model.embeddings.patch_embedding.weight", "conv1.weight"},
      {"vision_model.embeddings.position_embedding.weight", "positional_embedding"},
      {"vision_model.pre_layrnorm.", "ln_pre."},
      {"vision_model.post_layernorm.", "ln_post."},
      {"vision_model.encoder.layers.", "transformer.resblocks."},
      {"text_model.encoder.layers.", "transformer.resblocks."},
      {".layer_norm1.", ".ln_1."},
      {".layer_norm2.", ".ln_2."},
      {".self_attn.out_proj.", ".attn.out_proj."},
      {".mlp.fc1.", ".mlp.c_fc."},
      {".mlp.fc2.", ".mlp.c_proj."}};
  std::vector<FileTensor> renamed;
  const auto find = [&](const std::string& name) -> const FileTensor& {
    for (const FileTensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw std::runtime_error("no " + name);
  };
  for (FileTensor tensor : tensors) {
    std::string name = tensor.name;
    if (name == "text_projection.weight" || name == "visual_projection.weight") {
      const auto rows = std::size_t(tensor.shape[0]), columns = std::size_t(tensor.shape[1]);
      std::string turned(tensor.bytes.size(), '\0');
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column)
          std::memcpy(turned.data() + 4 * (column * rows + row),
                      tensor.bytes.data() + 4 * (row * columns + column), 4);
      tensor.bytes = turned;
      std::swap(tensor.shape[0], tensor.shape[1]);
      name = name.starts_with("text") ? "text_projection" : "proj";
    }
    if (name.find(".k_proj.") != std::string::npos || name.find(".v_proj.") != std::string::npos)
      continue;
    if (const std::size_t at = name.find(".self_attn.q_proj."); at != std::string::npos) {
      for (const char part : {'k', 'v'}) {
        std::string other = name;
        other[at + std::strlen(".self_attn.")] = part;
        tensor.bytes += find(other).bytes;
      }
      tensor.shape[0] *= 3;
      name.replace(at, std::strlen(".self_attn.q_proj."), ".attn.in_proj_");
    }
    for (const auto& [from, to] : names)
      if (const std::size_t at = name.find(from); at != std::string::npos)
        name.replace(at, std::strlen(from), to);
    tensor.name = prefix + name;
    renamed.push_back(std::move(tensor));
  }
  return renamed;
}

}  // namespace heddle::test
