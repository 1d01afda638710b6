// plugins/denoisers/qwen_names.h - where Qwen-Image's weights are in a checkpoint. Everybody who
// writes one uses the names of diffusers ("transformer_blocks.0.attn.to_q.weight"), in a whole
// checkpoint behind a prefix. The family asks by the names of dual_stream.h. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::denoisers {

class QwenNames {
 public:
  // The prefix of the Qwen-Image weights in this file; nothing when there are none.
  static std::optional<QwenNames> find(const Checkpoint& file);

  // Those of a Fun ControlNet (qwen_fun_control.h), of its blocks alone: its tensors begin with
  // `prefix` in the file. Nothing where it is none.
  static std::optional<QwenNames> find_fun_control(const Checkpoint& file,
                                                   const std::string& prefix);

  // A tensor of a module outside the blocks, or in one of them: ("img_in", "weight"), ("txt_norm",
  // "weight"); ("img_attn.qkv", "bias") is three tensors, one after another.
  std::vector<Part> top(std::string_view module, const char* kind) const;
  std::vector<Part> in_block(int index, std::string_view module, const char* kind) const;

  // What is before the index of a block: "transformer_blocks.".
  std::string block_prefix() const { return prefix_ + blocks_; }

  // Every module by its name in diffusers, without the prefix. `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;

  // Single files of Qwen-Image Edit 2511 say by this that pictures which the model is shown have
  // the timestep 0.
  bool has_timestep_zero() const { return file_.has(prefix_ + "__index_timestep_zero__"); }
  // What Qwen-Image-Layered has besides these: the name of a table (2, hidden) that says what kind
  // of picture the model is shown. Empty in other models.
  std::string kinds_of_pictures() const {
    const std::string name = prefix_ + "time_text_embed.addition_t_embedding.weight";
    return file_.has(name) ? name : std::string();
  }
  bool is_layered() const { return !kinds_of_pictures().empty(); }

 private:
  QwenNames(const Checkpoint& file, std::string prefix, const char* blocks)
      : file_(file), prefix_(std::move(prefix)), blocks_(blocks) {}

  Checkpoint file_;
  std::string prefix_, blocks_;
};

}  // namespace heddle::denoisers
