// plugins/core/checkpoint_config.h - what ComfyUI still reads of the config (.yaml) that a
// checkpoint of Stable Diffusion was published with: everything else follows from the tensors.
//
// model:
//   params:
//     parameterization: v                    velocities; other values change nothing
//     cond_stage_config:
//       params: {layer_idx: -2}              the layer of CLIP that is read
//
// Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace heddle::loaders {

struct CheckpointConfig {
  bool predicts_velocity = false;
  std::optional<std::int64_t> stop_at_layer;  // -1: the last one
};
// Throws io where it cannot be read, invalid_argument (with the file, the line and the value)
// where it is no config of a checkpoint, unsupported where heddle was built without yaml-cpp.
CheckpointConfig read_checkpoint_config(const std::filesystem::path& path);

}  // namespace heddle::loaders
