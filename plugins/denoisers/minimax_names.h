// plugins/denoisers/minimax_names.h - where MiniMax H3's weights are in a checkpoint: the names of
// ComfyUI's single files ("blocks.0.attn.qkv_proj.weight", queries, keys and values one after
// another, "mlp.fc1" with the gate first), or those of diffusers ("transformer_blocks.0.attn.to_q",
// ..., "ff.net.0.proj" with the gate last), with whatever prefix before them. Immutable, any
// thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::denoisers {

// The rows of times that files with less weights have, in the place of a network.
inline constexpr const char* kMinimaxTable = "adaln_t_table";

class MinimaxNames {
 public:
  // Nothing when the file has no such model.
  static std::optional<MinimaxNames> find(const Checkpoint& file);
  // Of a model patch behind `prefix` (minimax_patch.h).
  static MinimaxNames of_patch(const Checkpoint& file, const std::string& prefix);

  // The tensor of a name of single files, or its parts: "blocks.0.attn.qkv_proj.weight".
  std::vector<Part> parts(const std::string& original) const;
  // The same where it is one tensor and no more; of queries, keys and values the queries.
  std::string one(const std::string& original) const;
  bool has(const std::string& original) const { return file_.has(one(original)); }
  // How many there are of "blocks", "token_refiner.blocks".
  int count(const std::string& list) const;

  // Every module by its name of single files as well as that of diffusers, without the prefix.
  // `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by its name of single files.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;

 private:
  MinimaxNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
