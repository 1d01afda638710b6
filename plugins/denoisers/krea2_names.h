// plugins/denoisers/krea2_names.h - where Krea 2's weights are in a checkpoint: the original names,
// which ComfyUI's files have ("blocks.0.attn.wq.weight"), or those of diffusers
// ("transformer_blocks.0.attn.to_q.weight"), with whatever prefix before them. Immutable, any
// thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

class Krea2Names {
 public:
  // Nothing when the file has no such model.
  static std::optional<Krea2Names> find(const Checkpoint& file);

  // A tensor by its original name, without the prefix: "first.weight", "blocks.0.mod.lin".
  std::string one(const std::string& original) const;
  // How many there are of "blocks", "txtfusion.layerwise_blocks", "txtfusion.refiner_blocks".
  int count(const std::string& list) const;

  // Every module by its name, by the original one as well as that of diffusers, without the prefix.
  // `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by its original name.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;
  // How the original files shape it where that is not as its rows are here: a layer's modulation is
  // a row there, (6 width), and six of them in diffusers' files. Else empty.
  std::vector<std::int64_t> original_shape(const std::string& original,
                                           const std::vector<Part>& parts) const;

 private:
  Krea2Names(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
