// plugins/encoders/clip_names.h - where the weights of a CLIP text encoder are in a checkpoint: the
// names of transformers ("text_model.encoder.layers.0.self_attn.q_proj.weight") or those of
// OpenCLIP
// ("transformer.resblocks.0.attn.in_proj_weight", whose queries, keys and values are rows of one),
// each with whatever prefix a file puts before them. Immutable, any thread.
#pragma once

#include <heddle/diffusion/module_names.h>
#include <heddle/model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace heddle::encoders {

class ClipNames {
 public:
  // Nothing when the file holds no such encoder.
  static std::optional<ClipNames> find(const Checkpoint& file);
  // Of a vision tower, whose layers are named alike.
  static std::optional<ClipNames> find_tower(const Checkpoint& file);

  std::string tokens() const;
  std::string positions() const;
  int depth() const;
  // Inside a layer, by the names of transformers: (0, "self_attn.q_proj", "weight").
  std::vector<Part> in_layer(int index, const std::string& module, const char* kind) const;
  // Queries, then keys, then values.
  std::vector<Part> qkv(int index, const char* kind) const;
  std::string final_norm(const char* kind) const;
  // A tensor of the tower outside its layers, by both names.
  std::string in_tower(const char* transformers, const char* open) const {
    return prefix_ + (is_open_ ? open : transformers);
  }
  // Of what the tower sees, where it is there, to the width of pooled texts.
  std::string tower_projection() const;
  // Of the pooled vector. Is it there? OpenCLIP's is turned: its rows are those of the vector.
  std::string projection() const;
  bool has_projection() const { return file_.has(projection()); }
  bool is_turned() const { return is_open_; }

 private:
  ClipNames(const Checkpoint& file, bool is_open, std::string prefix)
      : file_(file), is_open_(is_open), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool is_open_;
  std::string prefix_;
};

// The modules of the family "clip" by the names of transformers.
extern const heddle_module_names_desc kClipModuleNames;

}  // namespace heddle::encoders
