// Weights that follow from a tensor's name alone, as tests/plugins/goldens/seeded_weights.py makes
// them, bit by bit: so tests write models whose weights no golden has to hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"

namespace heddle::test {
namespace seeded {

std::uint32_t hash_of(const std::string& name);

// Number `index` of those that start at a hash: from -1 to 1, of 24 bits.
float number_at(std::uint32_t start, std::uint32_t index);

// offset + factor * each of the first `count` numbers, as the bytes of a tensor in F32.
std::string number_bytes(std::uint32_t start, std::size_t count, float factor, float offset);

inline bool is_norm(const std::string& name) {
  return name.ends_with("gamma") || name.ends_with("running_var") ||
         (name.find("norm") != std::string::npos && name.ends_with("weight"));
}

}  // namespace seeded

// An F32 tensor of this name: around 1 for weights of norms, around 0 for others. Its numbers are
// those of the tensor `seed` where that is given.
inline FileTensor seeded_tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                                const std::string& seed = "") {
  const std::string& from = seed.empty() ? name : seed;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  float factor = 1.0f, offset = 0.0f;
  if (seeded::is_norm(from)) {
    factor = 0.25f, offset = 1.0f;
  } else if (shape.size() == 1 || from.ends_with("_token")) {
    factor = 0.25f;
  } else if (from.find("embed_tokens") == std::string::npos) {
    factor = 2.0f;
    for (std::int64_t room = 1; room < count / (shape.empty() ? 1 : shape[0]); room *= 4)
      factor *= 0.5f;
  }
  return {name, "F32", shape,
          seeded::number_bytes(seeded::hash_of(from), std::size_t(count), factor, offset)};
}

// The names that one with "{first-last}" in it stands for; of any other name itself.
inline std::vector<std::string> expanded_names(const std::string& name) {
  const std::size_t open = name.find('{'), dash = name.find('-', open),
                    close = name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {name};
  std::vector<std::string> names;
  const int last = std::stoi(name.substr(dash + 1));
  for (int i = std::stoi(name.substr(open + 1)); i <= last; ++i)
    names.push_back(name.substr(0, open) + std::to_string(i) + name.substr(close + 1));
  return names;
}

// The tensors of a model of plugins/goldens/FOLDER/shapes.json: {name: shape}, or {name: [shape,
// other name]}, which `by_other_name` then names them by.
inline std::vector<FileTensor> seeded_model(const std::string& model, bool by_other_name = false,
                                            const std::string& folder = "workflows") {
  const heddle::engine::Json all = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens" / folder / "shapes.json"), "shapes.json");
  std::vector<FileTensor> tensors;
  for (const auto& member : all.at(model).members()) {
    const std::vector<heddle::engine::Json>& told = member.value.as_array();
    const bool has_other = !told.empty() && told.at(0).is_array();
    std::vector<std::int64_t> shape;
    for (const heddle::engine::Json& size : has_other ? told.at(0).as_array() : told)
      shape.push_back(size.as_int64());
    const std::string name = has_other && by_other_name ? told.at(1).as_string() : member.key;
    if (has_other)
      tensors.push_back(seeded_tensor(name, shape, member.key));
    else
      for (const std::string& one : expanded_names(name))
        tensors.push_back(seeded_tensor(one, shape));
  }
  return tensors;
}

}  // namespace heddle::test
