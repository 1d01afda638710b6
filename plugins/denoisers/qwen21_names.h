// plugins/denoisers/qwen21_names.h - where Qwen-Image 2.1's weights are in a checkpoint: by the
// names of diffusers, which are the publisher's, with whatever prefix before them; both matrices
// that raise an MLP may be one ("gate_up"), as ComfyUI has them. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

class Qwen21Names {
 public:
  // Nothing when the file has no such model.
  static std::optional<Qwen21Names> find(const Checkpoint& file);

  const std::string& prefix() const { return prefix_; }
  int layers() const;
  std::int64_t mlp_width() const;

  // Every module by its name without the prefix. `kind` is "weight".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;

 private:
  Qwen21Names(const Checkpoint& file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
