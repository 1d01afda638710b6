// What the command line has to know of a workflow to apply options to it: which node a name means,
// what the workflow itself says of it, and how a class declares an input. It reads the texts that
// the facade gives (Workflow::text, Engine::object_info). Immutable; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json_value.h"
#include "engine/cli/sweep.h"

namespace heddle::cli {

class FlowView {
 public:
  explicit FlowView(std::string_view workflow_text);

  struct Node {
    std::string id, title, class_type;
    core::Json json;
    bool gives_input(std::string_view input) const;
    bool gives(std::string_view key) const { return json.find(key) != nullptr; }
  };
  // By id, by title, or by a class used once; nullptr when none or several are meant.
  const Node* find(std::string_view name) const;

 private:
  std::vector<Node> nodes_;
};

// "Noise.seed" -> {"Noise", "seed"}; the input is what stands behind the last point. Throws
// core::Error(invalid_argument) when one of them is missing.
struct InputName {
  std::string node, input;
};
InputName split_input_name(std::string_view name);

// How object_info (of one class) declares the input; nothing when it does not.
std::optional<InputKind> declared_kind(const core::Json& object_info, std::string_view input);

}  // namespace heddle::cli
