// The names that diffusers gives Wan's tensors, whose original ones tests write.
#pragma once

#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

inline void name_wan_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> beginnings[] = {
      {"text_embedding.0.", "condition_embedder.text_embedder.linear_1."},
      {"text_embedding.2.", "condition_embedder.text_embedder.linear_2."},
      {"time_embedding.0.", "condition_embedder.time_embedder.linear_1."},
      {"time_embedding.2.", "condition_embedder.time_embedder.linear_2."},
      {"time_projection.1.", "condition_embedder.time_proj."},
      {"img_emb.proj.0.", "condition_embedder.image_embedder.norm1."},
      {"img_emb.proj.1.", "condition_embedder.image_embedder.ff.net.0.proj."},
      {"img_emb.proj.3.", "condition_embedder.image_embedder.ff.net.2."},
      {"img_emb.proj.4.", "condition_embedder.image_embedder.norm2."},
      {"img_emb.emb_pos", "condition_embedder.image_embedder.pos_embed"},
      {"head.head.", "proj_out."},
      {"head.modulation", "scale_shift_table"}};
  const std::pair<const char*, const char*> parts[] = {{".self_attn.", ".attn1."},
                                                       {".cross_attn.", ".attn2."},
                                                       {".q.", ".to_q."},
                                                       {".k.", ".to_k."},
                                                       {".v.", ".to_v."},
                                                       {".o.", ".to_out.0."},
                                                       {".k_img.", ".add_k_proj."},
                                                       {".v_img.", ".add_v_proj."},
                                                       {".norm3.", ".norm2."},
                                                       {".norm_k_img.", ".norm_added_k."},
                                                       {".ffn.0.", ".ffn.net.0.proj."},
                                                       {".ffn.2.", ".ffn.net.2."},
                                                       {".before_proj.", ".proj_in."},
                                                       {".after_proj.", ".proj_out."},
                                                       {".modulation", ".scale_shift_table"}};
  for (FileTensor& tensor : tensors) {
    const bool is_block =
        tensor.name.starts_with("blocks.") || tensor.name.starts_with("vace_blocks.");
    for (const auto& [from, to] : beginnings)
      if (!is_block && tensor.name.starts_with(from)) {
        tensor.name.replace(0, std::string(from).size(), to);
        break;
      }
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); is_block && at != std::string::npos)
        tensor.name.replace(at, std::string(from).size(), to);
  }
}

}  // namespace heddle::test
