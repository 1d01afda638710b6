// plugins/denoisers/module_table.h - a model's modules by two names: the one that the code here
// asks by, which is that of FLUX's original files ("img_attn.qkv"), and those of its parts in
// diffusers ("attn.to_q", "attn.to_k", "attn.to_v"). Pure; any thread.
#pragma once

#include <heddle/model.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::denoisers {

struct Module {
  std::string_view original;
  const char* parts[3];
  const char* fused =
      nullptr;  // one tensor that diffusers' fuse_qkv_projections() writes in their place
};

// Throws internal at a name that the table does not have.
const Module& look_up(std::span<const Module> table, std::string_view original);

// The tensors of a module whose names in the file begin with `at`; kind: "weight" or "bias".
std::vector<Part> diffusers_parts(const Checkpoint& file, const std::string& at,
                                  const Module& module, const char* kind);

// The second half of a tensor of 2 `half` rows, then the first.
std::vector<Part> halves_swapped(const std::string& tensor, std::int64_t half);

}  // namespace heddle::denoisers
