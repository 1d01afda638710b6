// plugins/denoisers/wan_names.h - where the weights of Wan are in a checkpoint: the original names,
// which ComfyUI's files have ("blocks.0.self_attn.q.weight"), or those of diffusers
// ("blocks.0.attn1.to_q.weight"), with whatever prefix before them. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

class WanNames {
 public:
  // Nothing when the file has no such model.
  static std::optional<WanNames> find(const Checkpoint& file);

  // A tensor by its original name, without the prefix: "head.head.weight", "blocks.0.modulation".
  std::string one(const std::string& original) const;
  bool has(const std::string& original) const { return file_.has(one(original)); }
  int layers() const;
  int vace_layers() const;  // 0: the model is no VACE

  // Every module by its name, by the original one as well as that of diffusers, without the prefix.
  // `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by its original name.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;

 private:
  WanNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
