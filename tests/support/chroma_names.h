// The names that diffusers gives Chroma's tensors, whose original ones tests write.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

// The tensors under diffusers' names; each product of queries, keys and values as several.
inline void name_chroma_as_diffusers(std::vector<FileTensor>& tensors) {
  using Names = std::vector<std::pair<std::string, std::string>>;
  const Names beginnings{{"img_in.", "x_embedder."},
                         {"txt_in.", "context_embedder."},
                         {"final_layer.linear.", "proj_out."},
                         {"double_blocks.", "transformer_blocks."},
                         {"single_blocks.", "single_transformer_blocks."}};
  const Names parts{{".in_layer.", ".linear_1."},
                    {".out_layer.", ".linear_2."},
                    {".img_attn.norm.query_norm.scale", ".attn.norm_q.weight"},
                    {".img_attn.norm.key_norm.scale", ".attn.norm_k.weight"},
                    {".txt_attn.norm.query_norm.scale", ".attn.norm_added_q.weight"},
                    {".txt_attn.norm.key_norm.scale", ".attn.norm_added_k.weight"},
                    {".norm.query_norm.scale", ".attn.norm_q.weight"},
                    {".norm.key_norm.scale", ".attn.norm_k.weight"},
                    {"norms.0.scale", "norms.0.weight"},
                    {"norms.1.scale", "norms.1.weight"},
                    {".img_attn.proj.", ".attn.to_out.0."},
                    {".txt_attn.proj.", ".attn.to_add_out."},
                    {".img_mlp.", ".ff.net."},
                    {".txt_mlp.", ".ff_context.net."},
                    {".net.0.", ".net.0.proj."},
                    {".linear2.", ".proj_out."}};
  const std::pair<std::string, std::vector<std::string>> joined[] = {
      {".img_attn.qkv.", {".attn.to_q.", ".attn.to_k.", ".attn.to_v."}},
      {".txt_attn.qkv.", {".attn.add_q_proj.", ".attn.add_k_proj.", ".attn.add_v_proj."}},
      {".linear1.", {".attn.to_q.", ".attn.to_k.", ".attn.to_v.", ".proj_mlp."}}};
  std::vector<FileTensor> named;
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : beginnings)
      if (tensor.name.starts_with(from)) {
        tensor.name.replace(0, from.size(), to);
        break;
      }
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
    bool is_split = false;
    for (const auto& [from, names] : joined) {
      const std::size_t at = tensor.name.find(from);
      if (at == std::string::npos) continue;
      // An MLP is four times as wide as the model.
      const std::int64_t rows = tensor.shape[0] / (names.size() == 4 ? 7 : 3);
      const std::size_t row_bytes = tensor.bytes.size() / std::size_t(tensor.shape[0]);
      std::size_t begin = 0;
      for (std::size_t i = 0; i < names.size(); ++i) {
        FileTensor part = tensor;
        part.name.replace(at, from.size(), names[i]);
        part.shape[0] = i == 3 ? 4 * rows : rows;
        const std::size_t size = row_bytes * std::size_t(part.shape[0]);
        part.bytes = tensor.bytes.substr(begin, size);
        begin += size;
        named.push_back(std::move(part));
      }
      is_split = true;
    }
    if (!is_split) named.push_back(std::move(tensor));
  }
  tensors = std::move(named);
}

}  // namespace heddle::test
