#include "engine/facade/told_outputs.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"

namespace heddle {

namespace {

using engine::Value;

constexpr const char* kSwitch = "HEDDLE_CHECK_INFER";

// Of numbers, texts and switches; the others are too large to compare, or have no text.
std::optional<std::string> scalar_text(const heddle_value& value) {
  return std::visit(
      [](const auto& content) -> std::optional<std::string> {
        using Content = std::remove_cvref_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, bool>)
          return std::string(content ? "true" : "false");
        else if constexpr (std::is_arithmetic_v<Content>)
          return engine::cat(content);
        else if constexpr (std::is_same_v<Content, std::string>)
          return engine::quote(engine::clip(content, 200));
        else
          return std::nullopt;
      },
      value.content);
}

bool is_same(const heddle_tensor_info& a, const heddle_tensor_info& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

// How the difference is told; nothing where there is none.
std::optional<std::string> tensor_difference(const heddle_tensor_info& told, const Value& made) {
  const auto* tensor = made ? std::get_if<engine::Tensor>(&made->content) : nullptr;
  if (tensor != nullptr && is_same(told, (*tensor)->info)) return std::nullopt;
  return engine::cat("infer() told ", engine::describe(told), ", execute() made ",
                     tensor != nullptr ? engine::describe((*tensor)->info)
                     : made            ? engine::clip(engine::describe(*made), 200)
                                       : "nothing there");
}

std::optional<std::string> scalar_difference(const heddle_value& told, const Value& made) {
  const std::optional<std::string> before = scalar_text(told);
  if (!before) return std::nullopt;
  const std::optional<std::string> after = made ? scalar_text(*made) : std::nullopt;
  if (before == after) return std::nullopt;
  return engine::cat("infer() told ", *before, ", execute() made ",
                     after  ? *after
                     : made ? engine::clip(engine::describe(*made), 200)
                            : "nothing there");
}

}  // namespace

bool checks_infer() {
  const char* const value = std::getenv(kSwitch);
  return value != nullptr && std::string_view(value) == "1";
}

void ToldOutputs::check() const {
  const auto differences = differences_.lock();
  if (differences->empty()) return;
  throw engine::Error(engine::Code::internal,
                      engine::cat(engine::join(*differences, "\n"),
                                  "\nPlans go by what infer() tells. Mend it, or tell less."));
}

void ToldOutputs::done(engine::NodeIndex n, std::span<const Value> outputs) {
  if (n >= inferred_.nodes.size() || n >= graph_.nodes.size()) return;
  const std::vector<engine::ValueSpec>& told = inferred_.nodes[n].outputs;
  for (std::size_t o = 0; o < std::min(told.size(), outputs.size()); ++o) {
    if (!outputs[o] || engine::find_blocker(*outputs[o]) != nullptr) continue;
    const auto add = [&](std::string_view path, const std::optional<std::string>& difference) {
      if (!difference) return;
      const char* const name = graph_.nodes[n].type->output(std::uint32_t(o)).name;
      differences_.lock()->push_back(engine::cat(graph_.name_of(n), ", output ",
                                                 engine::quote(name), path.empty() ? "" : " at ",
                                                 path, ": ", *difference));
    };
    for (const auto& [path, info] : told[o].tensors)
      add(path, tensor_difference(info, engine::part_of(outputs[o], path)));
    if (told[o].value) add("", scalar_difference(*told[o].value, outputs[o]));
    for (const auto& [path, part] : told[o].parts)
      add(path, scalar_difference(*part, engine::part_of(outputs[o], path)));
  }
}

}  // namespace heddle
