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

// Those of Wan 2.2 Animate with `halvings` blocks in its motion encoder: keys and values of a face
// become tensors of their own, and biases of filters lose their axes of pixels.
inline void name_animate_as_diffusers(std::vector<FileTensor>& tensors, int halvings = 2) {
  name_wan_as_diffusers(tensors);
  const std::string convs = "motion_encoder.enc.net_app.convs.";
  const auto replace = [](std::string& name, const std::string& from, const std::string& to) {
    if (const std::size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  };
  std::vector<FileTensor> all;
  for (FileTensor tensor : tensors) {
    std::string& name = tensor.name;
    if (name.find(".net_app.") != std::string::npos && name.ends_with(".bias"))
      tensor.shape = {tensor.shape[1]};
    replace(name, "motion_encoder.dec.direction.weight", "motion_encoder.motion_synthesis_weight");
    replace(name, "motion_encoder.enc.fc.", "motion_encoder.motion_network.");
    replace(name, convs + "0.0.", "motion_encoder.conv_in.");
    replace(name, convs + "0.1.", "motion_encoder.conv_in.act_fn.");
    replace(name, convs + std::to_string(halvings + 1) + ".weight",
            "motion_encoder.conv_out.weight");
    for (int k = 0; k < halvings; ++k) {
      const std::string here = convs + std::to_string(k + 1) + ".",
                        there = "motion_encoder.res_blocks." + std::to_string(k) + ".";
      replace(name, here + "conv1.0.", there + "conv1.");
      replace(name, here + "conv1.1.", there + "conv1.act_fn.");
      replace(name, here + "conv2.1.", there + "conv2.");
      replace(name, here + "conv2.2.", there + "conv2.act_fn.");
      replace(name, here + "skip.1.", there + "conv_skip.");
    }
    if (name.starts_with("face_encoder.")) replace(name, ".conv.", ".");
    if (!name.starts_with("face_adapter.")) {
      all.push_back(std::move(tensor));
      continue;
    }
    replace(name, ".fuser_blocks.", ".");
    replace(name, ".q_norm.", ".norm_q.");
    replace(name, ".k_norm.", ".norm_k.");
    replace(name, ".linear1_q.", ".to_q.");
    replace(name, ".linear2.", ".to_out.");
    if (name.find(".linear1_kv.") == std::string::npos) {
      all.push_back(std::move(tensor));
      continue;
    }
    for (const bool is_key : {true, false}) {
      FileTensor half = tensor;
      half.shape[0] /= 2;
      const std::size_t bytes = tensor.bytes.size() / 2;
      half.bytes = tensor.bytes.substr(is_key ? 0 : bytes, bytes);
      replace(half.name, ".linear1_kv.", is_key ? ".to_k." : ".to_v.");
      all.push_back(std::move(half));
    }
  }
  tensors = std::move(all);
}

}  // namespace heddle::test
