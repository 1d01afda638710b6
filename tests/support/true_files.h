// Names, shapes and types of published files (plugins/goldens/true_files.json), as tensors of a
// file without its numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tests/support/safetensors_writer.h"

namespace heddle::test {

// Names of what no model takes: of autoencoders of videos that code pictures, and scales, which go
// with their matrices.
inline constexpr const char *kBetweenFrames = R"(.*\.time_conv\.(weight|bias))",
                            *kFp8 = R"(scaled_fp8|.*\.scale_weight)";
// Of WanDancer: its looks at a music have one key each, and nobody uses ref_conv.
inline constexpr const char* kDance =
    R"(scaled_fp8|.*scale_weight|ref_conv.*|music_injector.*[qk]\..*)";

// Names of what no model takes of SeedVR2: its texts, which a node reads by a model of their own,
// and the waves of tables, which follow from sizes.
inline constexpr const char* kBesideSeedvr = R"((positive|negative)_conditioning|.*\.rope\.freqs)";

// Names of what no model takes of RT-DETR 4: heads of all layers but the last, and what follows
// from the architecture.
inline constexpr const char* kBesideRtdetr =
    R"(.*\.(num_batches_tracked|num_points_scale|valid_mask|up)|decoder\.decoder\.reg_scale|)"
    R"(decoder\.(decoder\.lqe_layers|dec_score_head)\.[0-4]\..*)";

// Names of what no model takes of Gemma 4 E2B: limits are read as one is built, layers from 15 on
// have the keys and values of others, and sound is not heard.
inline constexpr const char* kBesideGemma4 =
    R"(tokenizer_json|.*\.(in|out)put_(min|max)|audio_(model|projector)\..*|)"
    R"(model\.layers\.(1[5-9]|[23]\d)\.self_attn\.(k_proj|v_proj|k_norm)\..*)";

// Of {name: [type, shape]}, where "{0-27}" in a name stands for each of these numbers.
inline std::vector<FileTensor> true_tensors(const heddle::engine::Json& tensors) {
  std::vector<FileTensor> all;
  for (const auto& member : tensors.members()) {
    const std::vector<heddle::engine::Json>& told = member.value.as_array();
    std::vector<std::int64_t> shape;
    for (const heddle::engine::Json& size : told.at(1).as_array()) shape.push_back(size.as_int64());
    const std::size_t open = member.key.find('{'), close = member.key.find('}');
    if (open == std::string::npos) {
      all.push_back({member.key, told.at(0).as_string(), shape});
      continue;
    }
    const std::string range = member.key.substr(open + 1, close - open - 1);
    const int first = std::stoi(range), last = std::stoi(range.substr(range.find('-') + 1));
    for (int i = first; i <= last; ++i)
      all.push_back({member.key.substr(0, open) + std::to_string(i) + member.key.substr(close + 1),
                     told.at(0).as_string(), shape});
  }
  return all;
}

// Of unet_files.json and part_files.json: each "{0-27}" in a name stands for all of these numbers.
inline std::vector<std::string> numbered_names(const std::string& name) {
  const std::size_t open = name.find('{'), close = name.find('}');
  if (open == std::string::npos) return {name};
  const std::string range = name.substr(open + 1, close - open - 1);
  const int first = std::stoi(range), last = std::stoi(range.substr(range.find('-') + 1));
  std::vector<std::string> all;
  for (int i = first; i <= last; ++i)
    for (std::string& one :
         numbered_names(name.substr(0, open) + std::to_string(i) + name.substr(close + 1)))
      all.push_back(std::move(one));
  return all;
}

// Of {name: shape}, named so, with a prefix in front: adds tensors of this type, in the place of
// those of the same name that there are.
inline void add_part(std::vector<FileTensor>& tensors, const std::string& prefix,
                     const heddle::engine::Json& part, const std::string& dtype) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  for (const auto& row : part.members())
    for (const std::string& name : numbered_names(row.key)) {
      FileTensor made{prefix + name, name.ends_with("position_ids") ? "I64" : dtype, {}, {}};
      for (const heddle::engine::Json& size : row.value.as_array())
        made.shape.push_back(size.as_int64());
      const auto [place, is_new] = places.emplace(made.name, tensors.size());
      if (is_new)
        tensors.push_back(std::move(made));
      else
        tensors[place->second] = std::move(made);
    }
}

}  // namespace heddle::test
