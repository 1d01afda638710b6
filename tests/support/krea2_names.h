// The names that diffusers gives Krea 2's tensors, whose original ones tests write.
#pragma once

#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

// The tensors under diffusers' names; modulations that stand in one row as six.
inline void name_krea2_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> beginnings[] = {
      {"first.", "img_in."},
      {"tmlp.0.", "time_embed.linear_1."},
      {"tmlp.2.", "time_embed.linear_2."},
      {"tproj.1.", "time_mod_proj."},
      {"txtmlp.0.scale", "txt_in.norm.weight"},
      {"txtmlp.1.", "txt_in.linear_1."},
      {"txtmlp.3.", "txt_in.linear_2."},
      {"txtfusion.", "text_fusion."},
      {"blocks.", "transformer_blocks."},
      {"last.linear.", "final_layer.linear."},
      {"last.norm.scale", "final_layer.norm.weight"},
      {"last.modulation.lin", "final_layer.scale_shift_table"}};
  const std::pair<const char*, const char*> parts[] = {
      {"attn.wq.", "attn.to_q."},
      {"attn.wk.", "attn.to_k."},
      {"attn.wv.", "attn.to_v."},
      {"attn.wo.", "attn.to_out.0."},
      {"attn.gate.", "attn.to_gate."},
      {"attn.qknorm.qnorm.scale", "attn.norm_q.weight"},
      {"attn.qknorm.knorm.scale", "attn.norm_k.weight"},
      {".mlp.", ".ff."},
      {".prenorm.scale", ".norm1.weight"},
      {".postnorm.scale", ".norm2.weight"},
      {".mod.lin", ".scale_shift_table"}};
  for (FileTensor& tensor : tensors) {
    if (tensor.name.ends_with(".mod.lin")) tensor.shape = {6, tensor.shape[0] / 6};
    for (const auto& [from, to] : beginnings)
      if (tensor.name.starts_with(from)) {
        tensor.name.replace(0, std::string(from).size(), to);
        break;
      }
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::string(from).size(), to);
  }
}

}  // namespace heddle::test
