// plugins/encoders/t5_names.h - what files call the tensors of a T5 encoder: transformers' names
// ("encoder.block.0.layer.0.SelfAttention.q.weight") with whatever prefix before them, those that
// llama.cpp gives gguf files ("enc.blk.0.attn_q.weight"), or those of UMT5 in Wan's own file
// ("blocks.0.attn.q.weight"). Functions of names only.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::encoders {

class T5Names {
 public:
  // Nothing when the file has no T5 encoder.
  static std::optional<T5Names> find(const Checkpoint& file);

  std::string tokens() const;
  std::string final_norm() const;
  // A tensor of a layer: "q", "k", "v", "o", "bias", "norm1", "norm2", "gate", "up", "down"; "only"
  // is the first matrix of an MLP without a gate.
  std::string in_layer(int index, std::string_view part) const;
  int layers() const;
  // Whether each layer has a bias of its own, as in UMT5; T5's first layer has the only one.
  bool is_umt5() const;
  // Whether its tokens are bytes, told as ComfyUI tells it: byT5 small is the only one so narrow.
  bool is_byt5() const;

  // Every module by its dotted name in transformers, with its tensor.
  void each_module(
      const std::function<void(const std::string& module, const std::string& tensor)>& found) const;

 private:
  enum class Layout { transformers, llama, wan };
  T5Names(const Checkpoint& file, Layout layout, std::string prefix)
      : file_(file), layout_(layout), prefix_(std::move(prefix)) {}

  std::string layer_prefix() const;

  Checkpoint file_;
  Layout layout_;
  std::string prefix_;
};

}  // namespace heddle::encoders
