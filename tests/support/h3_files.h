// Files of MiniMax H3's tiny autoencoders (plugins/goldens/make_h3_vae_goldens.py and
// make_h3_sound_goldens.py) whose weights follow from their names in diffusers.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seeded_weights.h"
#include "tests/support/tensor_file.h"

namespace heddle::test {

// By the publishers' names: queries, keys and values of each head one after another in one tensor,
// of an MLP the gate first.
inline std::vector<FileTensor> h3_original(const std::vector<FileTensor>& diffusers) {
  constexpr std::int64_t kHead = 64;
  const auto find = [&](const std::string& name) -> const FileTensor& {
    for (const FileTensor& tensor : diffusers)
      if (tensor.name == name) return tensor;
    throw std::out_of_range(name);
  };
  const auto replaced = [](std::string name, const std::string& from, const std::string& to) {
    if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
    return name;
  };
  std::vector<FileTensor> made;
  for (FileTensor tensor : diffusers) {
    const auto has = [&](const char* part) { return tensor.name.find(part) != std::string::npos; };
    if (has(".attn.to_k.") || has(".attn.to_v.")) continue;
    if (has(".attn.to_q.")) {
      const std::size_t head = tensor.bytes.size() / std::size_t(tensor.shape[0] / kHead);
      std::string bytes;
      for (std::size_t at = 0; at < tensor.bytes.size(); at += head)
        for (const char* part : {"to_q", "to_k", "to_v"})
          bytes += find(replaced(tensor.name, "to_q", part)).bytes.substr(at, head);
      tensor.bytes = bytes;
      tensor.shape[0] *= 3;
      tensor.name = replaced(tensor.name, "to_q", "to_qkv");
    } else if (has(".ff.net.0.proj.")) {
      const std::size_t half = tensor.bytes.size() / 2;
      tensor.bytes = tensor.bytes.substr(half) + tensor.bytes.substr(0, half);
    }
    for (const auto& [from, to] :
         {std::pair("encoder.down_blocks.", "encoder.down."), std::pair(".resnets.", ".block."),
          std::pair(".conv_shortcut.", ".nin_shortcut."),
          std::pair(".downsamplers.0.", ".downsample."),
          std::pair("decoder.proj_in.", "decoder.x_embedder."),
          std::pair(".attn.to_out.0.", ".attn.to_out."), std::pair(".ff.net.0.proj.", ".ff.w1."),
          std::pair(".ff.net.2.", ".ff.w2.")})
      tensor.name = replaced(tensor.name, from, to);
    made.push_back(tensor);
  }
  return made;
}

inline std::vector<FileTensor> h3_video_tensors(bool by_diffusers) {
  const std::vector<FileTensor> tensors = seeded_model("vae", false, "h3_vae");
  return by_diffusers ? tensors : h3_original(tensors);
}

inline std::filesystem::path h3_sound_golden() {
  return tests_folder() / "plugins/goldens/h3_sound/expected.safetensors";
}

inline std::vector<FileTensor> h3_sound_tensors() {
  const TensorFile expected(h3_sound_golden());
  std::vector<FileTensor> tensors = seeded_model("vae", false, "h3_sound");
  for (FileTensor& tensor : tensors) {
    const std::string name = tensor.name;
    const std::vector<std::int64_t> shape = tensor.shape;
    const bool is_gain = name.ends_with("weight_g");
    if (name.ends_with(".filter")) {
      tensor.bytes = bytes_of_floats(expected.floats("filter"));
    } else if (name.ends_with("zero_k_bias")) {
      tensor.bytes.assign(tensor.bytes.size(), char(0));
    } else if (is_gain && name.find("convs2") != std::string::npos) {
      tensor = seeded_tensor(name, {shape[0]});
      tensor.shape = shape;
    } else if (is_gain || (name.ends_with("alpha") && shape.size() == 3)) {
      tensor = seeded_tensor(name, shape, name + ".norm.weight");
    }
  }
  return tensors;
}

}  // namespace heddle::test
