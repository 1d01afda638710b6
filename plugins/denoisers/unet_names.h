// plugins/denoisers/unet_names.h - where the weights of Stable Diffusion's UNets are in a
// checkpoint, and which stages they make up, also those of Stable Video Diffusion. Two layouts are
// read: the original one
// ("input_blocks.1.0.in_layers.0.weight", single files, with or without a prefix) and that of
// diffusers ("down_blocks.0.resnets.0.norm1.weight"). The family asks by the original names.
// Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::denoisers {

struct Module;

// A part of a stage, in the order in which data passes them.
struct UnetPart {
  enum class Kind { resnet, transformer, down, up } kind;
  std::string original;  // "input_blocks.4.1"
  std::string diffusers;
  int depth = 0;  // blocks of a transformer
};
// What stands at one number of "input_blocks", "output_blocks", or in the middle.
using UnetStage = std::vector<UnetPart>;

// Models of videos have the same names, and blocks between frames beside: in a part modules whose
// original names begin with "time_" ("time_stack.in_layers.0").
bool is_of_videos(const Checkpoint& file);

class UnetNames {
 public:
  // Layout, prefix and stages of this file; nothing when it holds no such model.
  static std::optional<UnetNames> find(const Checkpoint& file);
  // The same of a ControlNet, which has no way up: "zero_convs.0.0.weight" in its place, or of
  // diffusers' names "controlnet_cond_embedding.conv_in.weight".
  static std::optional<UnetNames> find_control(const Checkpoint& file);

  // Behind the first convolution, which is the first of them, too, and has no parts.
  const std::vector<UnetStage>& inputs() const { return inputs_; }
  const UnetStage& middle() const { return middle_; }
  const std::vector<UnetStage>& outputs() const { return outputs_; }

  // Tensors of a module outside the stages, and of one in a part: by the original names
  // ("time_embed.0", "weight"), ("in_layers.0", "weight").
  std::string top(std::string_view module, const char* kind) const;
  std::string in_part(const UnetPart& part, std::string_view module, const char* kind) const;
  bool has(std::string_view module) const { return file_.has(top(module, "weight")); }
  const std::string& prefix() const { return prefix_; }
  // From now on tensors that the file has under this prefix by the original names come before.
  void prefer(std::string prefix) { preferred_ = std::move(prefix); }
  bool is_diffusers() const { return is_diffusers_; }
  // Whether residual blocks mix frames by a learned share, as Stable Video Diffusion's do.
  bool mixes_frames() const { return mixes_frames_; }

  // Every module by each of its names, whichever layout the file has; `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor that the original file would have.
  using VisitTensor =
      std::function<void(const std::string& tensor, const std::vector<Part>& parts)>;
  void each_original(const VisitTensor& visit) const;

 private:
  UnetNames(const Checkpoint& file, bool is_diffusers, std::string prefix);
  void read_original();
  void read_diffusers();
  UnetStage stage(const std::string& original, const std::string& block, int index) const;
  UnetStage middle_stage() const;
  std::string resnet_name(std::string module) const;  // in diffusers
  int depth_of(const UnetPart& part) const;
  bool is_there(const UnetStage& stage) const;
  bool has_module(const std::string& original, const std::string& diffusers,
                  const char* tail) const;
  std::string diffusers_top(const Module& module) const;
  std::string stored(const std::string& original, const std::string& diffusers) const;
  std::string chosen(const std::string& original, const std::string& diffusers,
                     const char* kind) const;
  // Calls visit(original, diffusers, tensor) for all modules, without ".weight" and ".bias".
  template <class Each>
  void each(Each&& visit) const;

  Checkpoint file_;
  bool is_diffusers_, mixes_frames_ = false;
  std::string prefix_, preferred_;
  std::vector<UnetStage> inputs_, outputs_;
  UnetStage middle_;
};

}  // namespace heddle::denoisers
