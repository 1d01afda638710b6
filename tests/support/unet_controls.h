// Small ControlNets of UNets (plugins/goldens/unet_control), by the names of diffusers and by the
// original ones, and what they are given there.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/unet_models.h"

namespace heddle::test {

inline std::vector<FileTensor> unet_control(const std::string& name) {
  return seeded_model(name, false, "unet_control");
}

// Numbers from -2 to 2 that follow from the name.
inline FileTensor given_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  const std::int64_t count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  FileTensor tensor = seeded_tensor(name, {count, 1});
  tensor.shape = shape;
  return tensor;
}

// By the original names; `layers` as of original_unet_name().
inline void name_control_as_original(std::vector<FileTensor>& tensors, int layers,
                                     const std::string& prefix = "") {
  const std::string embedding = "controlnet_cond_embedding.", downs = "controlnet_down_blocks.";
  for (FileTensor& tensor : tensors) {
    const std::string name = tensor.name;
    const std::string kind = name.substr(name.rfind('.') + 1);
    if (name.starts_with("controlnet_mid_block.")) {
      tensor.name = "middle_block_out.0." + kind;
    } else if (name.starts_with(downs)) {
      tensor.name =
          "zero_convs." + std::to_string(std::stoi(name.substr(downs.size()))) + ".0." + kind;
    } else if (name.starts_with(embedding)) {
      const std::string module = name.substr(embedding.size());
      const int index = module.starts_with("conv_in")    ? 0
                        : module.starts_with("conv_out") ? 7
                                                         : 1 + std::stoi(module.substr(7));
      tensor.name = "input_hint_block." + std::to_string(2 * index) + "." + kind;
    } else {
      tensor.name = original_unet_name(name, layers);
    }
    tensor.name = prefix + tensor.name;
  }
}

// The publisher's names of a T2I-Adapter that has those of diffusers. Full ones count their blocks
// through, of which a level has two.
inline void name_adapter_as_published(std::vector<FileTensor>& tensors, bool is_light) {
  const std::string body = "adapter.body.", resnets = ".resnets.";
  for (FileTensor& tensor : tensors) {
    std::string name = tensor.name.substr(std::string("adapter.").size());
    if (tensor.name.starts_with(body)) {
      const std::string behind = tensor.name.substr(body.size());
      const int level = std::stoi(behind);
      std::string tail = behind.substr(behind.find('.'));
      int block = is_light ? level : 2 * level;
      if (tail.starts_with(resnets)) {
        const std::string inside = tail.substr(resnets.size());
        const int index = std::stoi(inside);
        const std::string module = inside.substr(inside.find('.'));
        tail = is_light ? ".body." + std::to_string(index) + module : module;
        if (!is_light) block += index;
      }
      name = "body." + std::to_string(block) + tail;
    }
    tensor.name = name;
  }
}

}  // namespace heddle::test
