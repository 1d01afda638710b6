// plugins/denoisers/flux3_names.h - where FLUX 3's weights are in a checkpoint: the original names
// ("single_blocks.0.q_proj.weight"), or those of diffusers
// ("single_transformer_blocks.0.attn.to_q.weight"), with whatever prefix before them. Immutable,
// any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

class Flux3Names {
 public:
  // Nothing when the file has no such model.
  static std::optional<Flux3Names> find(const Checkpoint& file);

  // A tensor by its original name, without the prefix: "txt_in.weight".
  std::string one(const std::string& original) const;
  // The same, of so many rows, in the original order, which is another one for the last modulation
  // in diffusers.
  std::vector<Part> parts(const std::string& original, std::int64_t rows) const;
  // How many there are of "single_blocks", "txt_mode_blocks", "content_mode_blocks.image" and
  // "content_mode_blocks.image_cond".
  int count(const std::string& list) const;

  // Every module by its name, by the original one as well as that of diffusers, without the prefix.
  // `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by its original name.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;

 private:
  Flux3Names(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
