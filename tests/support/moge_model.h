// The tensors of a small MoGe of plugins/goldens/moge, seeded as make_moge_goldens.py has them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

using engine::cat;

inline std::vector<FileTensor> moge_tensors(const std::string& model) {
  static constexpr float kMean[] = {0.485f, 0.456f, 0.406f},
                         kDeviation[] = {0.229f, 0.224f, 0.225f}, kSees[] = {0.5f};
  std::vector<FileTensor> tensors = seeded_model(model, true, "moge");
  const auto put = [](FileTensor& tensor, const auto& numbers) {
    std::memcpy(tensor.bytes.data(), numbers, sizeof numbers);
  };
  for (FileTensor& tensor : tensors) {
    if (tensor.name.ends_with("image_mean")) put(tensor, kMean);
    if (tensor.name.ends_with("image_std")) put(tensor, kDeviation);
    if (tensor.name == "head.output_block.1.2.bias") put(tensor, kSees);
  }
  return tensors;
}

// DINOv2 by ComfyUI's names.
inline std::vector<FileTensor> renamed_moge(const std::vector<FileTensor>& tensors) {
  static constexpr const char* kNames[][2] = {
      {"backbone.patch_embed.proj", "backbone.embeddings.patch_embeddings.projection"},
      {"backbone.cls_token", "backbone.embeddings.cls_token"},
      {"backbone.mask_token", "backbone.embeddings.mask_token"},
      {"backbone.pos_embed", "backbone.embeddings.position_embeddings"},
      {"backbone.norm.", "backbone.layernorm."},
      {"backbone.blocks.", "backbone.encoder.layer."},
      {"ls1.gamma", "layer_scale1.lambda1"},
      {"ls2.gamma", "layer_scale2.lambda1"},
      {"attn.proj.", "attention.output.dense."},
      {"mlp.w12.", "mlp.weights_in."},
      {"mlp.w3.", "mlp.weights_out."}};
  std::vector<FileTensor> renamed;
  for (FileTensor tensor : tensors) {
    for (const auto& [from, to] : kNames)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::strlen(from), to);
    const std::size_t at = tensor.name.find("attn.qkv.");
    if (at == std::string::npos) {
      renamed.push_back(tensor);
      continue;
    }
    const std::size_t third = tensor.bytes.size() / 3;
    tensor.shape[0] /= 3;
    int place = 0;
    for (const char* part : {"query", "key", "value"})
      renamed.push_back({cat(tensor.name.substr(0, at), "attention.attention.", part, ".",
                             tensor.name.substr(at + 9)),
                         tensor.dtype, tensor.shape,
                         tensor.bytes.substr(std::size_t(place++) * third, third)});
  }
  return renamed;
}

}  // namespace heddle::test
