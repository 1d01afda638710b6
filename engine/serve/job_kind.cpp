#include "engine/serve/job_kind.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kModelEndings[] = {".safetensors", ".sft", ".gguf", ".ckpt",
                                              ".pt",          ".pth", ".bin"};
constexpr std::size_t kLongestModel = 500;  // of the names together; beyond, their hash stands

bool names_a_model(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return std::ranges::any_of(kModelEndings,
                             [&](std::string_view ending) { return text.ends_with(ending); });
}

// What another value of changes the picture, and not the work.
bool is_a_seed(std::string_view input) { return input == "seed" || input == "noise_seed"; }

std::string class_of(const Json& node) {
  const Json* type = node.find("class_type");
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

}  // namespace

JobKind kind_of_prompt(const Json& prompt, const InputType& type_of) {
  Hasher hasher;
  std::set<std::string> models;
  for (const Json::Member& node : prompt.members()) {
    const std::string type = class_of(node.value);
    hasher.add(node.key).add(type);
    const Json* inputs = node.value.find("inputs");
    if (inputs == nullptr || !inputs->is_object()) continue;
    for (const Json::Member& input : inputs->members()) {
      const Json& value = input.value;
      hasher.add(input.key);
      if (is_a_seed(input.key) && value.is_number()) continue;
      if (value.is_string()) {
        const std::string text = value.as_string();
        if (names_a_model(text))
          models.insert(text);
        else if (type_of(type, input.key) == "STRING")
          continue;
      }
      hasher.add(write_json(value));
    }
  }
  std::string model = join(std::vector<std::string>(models.begin(), models.end()), "\n");
  if (model.size() > kLongestModel) model = hex(Hasher().add(model).finish());
  return {hex(hasher.finish()), std::move(model)};
}

void note_kind(NewJob& job, const heddle::Engine& engine) {
  JobKind found = kind_of_prompt(parse_json(job.prompt, "prompt"),
                                 [&](std::string_view type, std::string_view input) {
                                   return engine.input_type(type, input);
                                 });
  job.kind = std::move(found.kind);
  job.model = std::move(found.model);
}

}  // namespace heddle::engine
