// plugins/denoisers/ltxv_names.h - where the weights of LTX-Video and LTX 2 are in a checkpoint:
// the original names, which ComfyUI's files have ("patchify_proj.weight"), or those of diffusers
// ("proj_in.weight"), with whatever prefix before them. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

class LtxvNames {
 public:
  // Nothing when the file has no such model.
  static std::optional<LtxvNames> find(const Checkpoint& file);

  // A tensor by its original name, without the prefix: "adaln_single.linear.weight".
  std::string one(const std::string& original) const;
  bool has(const std::string& original) const { return file_.has(one(original)); }
  // LTX 2, which has a second stream.
  bool has_audio() const { return has("audio_patchify_proj.weight"); }
  int layers() const;

  // Every module by its name, by the original one as well as that of diffusers, without the prefix.
  // `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by its original name.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;

 private:
  LtxvNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
