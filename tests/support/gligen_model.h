// A small GLIGEN for the UNet "sd1" of the goldens.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/text.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/unet_controls.h"

namespace heddle::test {

inline void add_gligen_fuser(std::vector<FileTensor>& tensors, const std::string& name,
                             const std::string& seed, std::int64_t width) {
  const auto add = [&](const char* tensor, const std::vector<std::int64_t>& shape) {
    FileTensor one = shape.empty() ? given_tensor(seed + tensor, shape)
                                   : seeded_tensor(name + tensor, shape, seed + tensor);
    one.name = name + tensor;
    tensors.push_back(std::move(one));
  };
  add("linear.weight", {width, 64}), add("linear.bias", {width});
  for (const char* matrix : {"attn.to_q.weight", "attn.to_k.weight", "attn.to_v.weight"})
    add(matrix, {width, width});
  add("attn.to_out.0.weight", {width, width}), add("attn.to_out.0.bias", {width});
  add("ff.net.0.proj.weight", {8 * width, width}), add("ff.net.0.proj.bias", {8 * width});
  add("ff.net.2.weight", {width, 4 * width}), add("ff.net.2.bias", {width});
  for (const char* norm : {"norm1", "norm2"})
    add(engine::cat(norm, ".weight").c_str(), {width}),
        add(engine::cat(norm, ".bias").c_str(), {width});
  add("alpha_attn", {}), add("alpha_dense", {});
}
// In the published file's names, or in those of diffusers.
inline std::vector<FileTensor> gligen_model(bool is_diffusers, std::int64_t phrase_width = 64) {
  std::vector<FileTensor> tensors;
  const std::tuple<const char*, const char*, std::int64_t> places[] = {
      {"down_blocks.0.attentions.0", "input_blocks.1.1", 32},
      {"down_blocks.0.attentions.1", "input_blocks.2.1", 32},
      {"mid_block.attentions.0", "middle_block.1", 64},
      {"up_blocks.1.attentions.0", "output_blocks.3.1", 32},
      {"up_blocks.1.attentions.1", "output_blocks.4.1", 32},
      {"up_blocks.1.attentions.2", "output_blocks.5.1", 32}};
  constexpr const char* kFuser = ".transformer_blocks.0.fuser.";
  for (const auto& [diffusers, original, width] : places)
    add_gligen_fuser(tensors, engine::cat(is_diffusers ? diffusers : original, kFuser),
                     engine::cat(diffusers, kFuser), width);
  const auto add = [&](const char* name, const std::vector<std::int64_t>& shape) {
    tensors.push_back(seeded_tensor(engine::cat("position_net.", name), shape));
  };
  add("null_positive_feature", {phrase_width}), add("null_position_feature", {64});
  add("linears.0.weight", {512, phrase_width + 64}), add("linears.0.bias", {512});
  add("linears.2.weight", {512, 512}), add("linears.2.bias", {512});
  add("linears.4.weight", {64, 512}), add("linears.4.bias", {64});
  return tensors;
}

}  // namespace heddle::test
