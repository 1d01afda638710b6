#include "engine/graph/parallel_names.h"

#include <algorithm>
#include <vector>

#include "engine/base/text.h"
#include "engine/graph/workflow_keys.h"

namespace heddle::engine {

namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t plus = 0; plus != std::string_view::npos;) {
    plus = name.find('+');
    parts.push_back(name.substr(0, plus));
    name.remove_prefix(plus == std::string_view::npos ? name.size() : plus + 1);
  }
  std::ranges::sort(parts);
  return parts;
}

bool is_single(std::string_view mode) { return mode.find('+') == std::string_view::npos; }

}  // namespace

std::optional<std::string> canonical_parallel(std::string_view name) {
  const std::vector<std::string_view> parts = parts_of(name);
  for (const std::string_view mode : kParallelModes)
    if (parts_of(mode) == parts) return std::string(mode);
  return {};
}

std::string parallel_advice(std::string_view name) {
  std::vector<std::string_view> single;
  std::ranges::copy_if(kParallelModes, std::back_inserter(single), is_single);
  return cat(did_you_mean(name, kParallelModes), " There are: ", join(single, ", "),
             "; cfg and data combine with each other and with one of layers, sequence and tensor: "
             "cfg+sequence");
}

}  // namespace heddle::engine
