#include "engine/files/pytorch_dict.h"

#include <algorithm>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// Under which a file keeps the model's dict, in the order in which they are looked for.
constexpr std::string_view kModelDicts[] = {
    "model_state_dict", "state_dict", "params_ema", "params-ema", "params", "model", "net"};

std::optional<std::uint32_t> dict_under(const Pickle& pickle, std::uint32_t dict,
                                        std::string_view key) {
  std::optional<std::uint32_t> found;
  const auto& items = pickle[dict].items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (pickle[items[i]].text == key && pickle[items[i + 1]].kind == PickleKind::dict)
      found = items[i + 1];
  return found;
}

}  // namespace

std::uint32_t pytorch_model_dict(const Pickle& pickle, std::string_view file_name) {
  std::uint32_t dict = pickle.root;
  if (pickle[dict].kind != PickleKind::dict)
    throw Error(Code::unsupported,
                cat(file_name, ": the file holds ", pickle_kind_name(pickle[dict].kind),
                    ", not a dict of tensors. Convert the file to safetensors."));
  for (const std::string_view key : kModelDicts) {
    if (const auto inner = dict_under(pickle, dict, key)) {
      dict = *inner;
      break;
    }
  }
  const auto& items = pickle[dict].items;
  const bool has_one = items.size() == 2 && pickle[items[1]].kind == PickleKind::dict;
  return has_one ? items[1] : dict;
}

Metadata pytorch_facts(const Pickle& pickle, std::uint32_t dict) {
  constexpr std::size_t kMost = 64, kLongest = 1000;
  Metadata facts;
  const auto& items = pickle[dict].items;
  for (std::size_t i = 0; i + 1 < items.size() && facts.size() < kMost; i += 2) {
    const PickleValue &key = pickle[items[i]], &value = pickle[items[i + 1]];
    const bool is_text = value.kind == PickleKind::text;
    if (key.kind != PickleKind::text || (!is_text && value.kind != PickleKind::boolean)) continue;
    if (key.text.size() > kLongest || value.text.size() > kLongest) continue;
    const std::string_view fact = is_text ? value.text : value.number != 0 ? "true" : "false";
    const auto known = std::ranges::find(
        facts, key.text, [](const auto& one) { return std::string_view(one.first); });
    if (known == facts.end())
      facts.emplace_back(key.text, fact);
    else
      known->second = fact;
  }
  return facts;
}

}  // namespace heddle::engine
