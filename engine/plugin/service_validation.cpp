// heddle.validation/0.
#include "engine/graph/validation.h"
#include "engine/plugin/host.h"

namespace heddle::engine {

namespace {

const Binding* judged_input(const heddle_validation* q, std::uint32_t input) {
  const bool is_judged = input < q->node.inputs.size() && q->node.type->check(input).is_judged();
  return is_judged ? &q->node.inputs[input] : nullptr;
}

const heddle_value* literal(heddle_validation* q, std::uint32_t input) {
  const Binding* binding = judged_input(q, input);
  const Value* value = binding == nullptr ? nullptr : std::get_if<Value>(binding);
  return value == nullptr ? nullptr : value->get();
}

const char* received(heddle_validation* q, std::uint32_t input) {
  const Binding* binding = judged_input(q, input);
  const Source* source = binding == nullptr ? nullptr : std::get_if<Source>(binding);
  return source == nullptr ? nullptr : q->types[source->node]->output(source->port).type;
}

std::int32_t has_file(heddle_validation* q, std::uint32_t input, const char* folder) {
  const heddle_value* value = literal(q, input);
  const std::string* name = value == nullptr ? nullptr : std::get_if<std::string>(&value->content);
  if (name == nullptr) return 0;
  return q->literals.has_file(folder, *name) ? 1 : 0;
}

}  // namespace

const heddle_validation_service* validation_service() {
  static const heddle_validation_service table{&literal, &received, &has_file};
  return &table;
}

}  // namespace heddle::engine
