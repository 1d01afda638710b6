// plugins/denoisers/zimage_names.h - where Z-Image's weights are in a checkpoint: the original
// names, which ComfyUI's files have ("layers.0.attention.qkv.weight"), or those of diffusers
// ("layers.0.attention.to_q.weight"), with whatever prefix before them. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::denoisers {

class ZImageNames {
 public:
  // Nothing when the file has no such model. Lumina 2 has the same original names but a few.
  static std::optional<ZImageNames> find(const Checkpoint& file);
  // The tensors of a model patch (zimage_patch.h), whose names begin so.
  static ZImageNames of_patch(const Checkpoint& file, const std::string& prefix);
  bool is_lumina() const;

  // A tensor by its original name, without the prefix: "x_embedder.weight", "layers.0.ffn_norm1.
  // weight"; "layers.0.attention.qkv.weight" may be three, one after another.
  std::vector<Part> parts(const std::string& original) const;
  std::string one(const std::string& original) const { return parts(original).front().tensor; }
  // How many there are of "layers", "noise_refiner", "context_refiner".
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
  ZImageNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  std::vector<std::int64_t> ends_of_thirds(const std::string& tensor) const;

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
