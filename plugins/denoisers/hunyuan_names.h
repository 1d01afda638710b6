// plugins/denoisers/hunyuan_names.h - where the weights of HunyuanVideo 1.0 and 1.5 are in a
// checkpoint: the names of ComfyUI's files ("double_blocks.0.img_attn.qkv.weight"), those of the
// publisher ("double_blocks.0.img_attn_q.weight"), or those of diffusers
// ("transformer_blocks.0.attn.to_q.weight"), with whatever prefix before them. The family asks by
// ComfyUI's names and gets parts: one tensor, rows of one, or several to be stacked. Immutable, any
// thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module_table.h"

namespace heddle::denoisers {

class HunyuanNames {
 public:
  // Nothing when the file has no such model. HunyuanImage's, whose first layer reads pictures, is
  // none.
  static std::optional<HunyuanNames> find(const Checkpoint& file);

  // The tensors of a module by ComfyUI's name: ("img_in.proj", "weight"). kind: "weight" or "bias".
  std::vector<Part> top(std::string_view module, const char* kind) const;
  // Inside a layer of the token refiner, a block of two streams or of one. Fused modules of the
  // last are "linear1.qkv" and "linear1.mlp".
  std::vector<Part> in_refiner(int index, std::string_view module, const char* kind) const;
  std::vector<Part> in_double(int index, std::string_view module, const char* kind) const;
  std::vector<Part> in_single(int index, std::string_view module, const char* kind) const;

  bool has_top(std::string_view module, const char* kind = "weight") const {
    return is_there(top(module, kind));
  }
  int refiners() const;
  int doubles() const;
  int singles() const;
  std::string double_prefix() const;

  // Every module by each of its names, with the rows that it has by that name.
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor by ComfyUI's name.
  void each_original(const std::function<void(const std::string& tensor,
                                              const std::vector<Part>& parts)>& visit) const;

 private:
  // Modules whose names begin alike.
  struct Scope {
    std::string original, diffusers;
    std::span<const Module> table;
  };
  HunyuanNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}
  static Scope top_scope();
  static Scope refiner_scope(int index);
  static Scope double_scope(int index);
  static Scope single_scope(int index);
  std::vector<Scope> scopes() const;
  std::vector<Part> in(const Scope& scope, std::string_view module, const char* kind) const;
  std::vector<Part> original_parts(const std::string& at, const std::string& module,
                                   const char* kind) const;
  std::string in_diffusers(const Scope& scope, const char* part) const;
  bool is_there(const std::vector<Part>& parts) const;
  std::int64_t rows_of(const std::vector<Part>& parts) const;
  std::vector<Part> rows(const std::vector<Part>& parts, std::int64_t begin,
                         std::int64_t end) const;

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
