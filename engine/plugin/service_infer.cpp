// heddle.infer/0, heddle.cost/0 and heddle.least_cost/0.
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/program/infer.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

const ValueSpec* spec_of(const heddle_infer* q, std::uint32_t input) {
  return linked_spec(q->node, input, q->known);
}

// infer() has refused the others already.
bool is_refused_if_wanted(const heddle_infer& q, std::uint32_t input, const ValueSpec& spec) {
  if ((q.node.type->input(input).flags & HEDDLE_PORT_LAZY) == 0) return false;
  const Value known = part_of(spec, "");
  return known && q.node.type->check(input).fault_of(*known, q.catalog);
}

// Whether undeclared inputs ("images.image_1") are parts of this declared one, which has no value
// of its own.
bool is_grown(const heddle_infer& q, std::uint32_t input) {
  return input < q.node.inputs.size() && !std::holds_alternative<Value>(q.node.inputs[input]) &&
         !std::holds_alternative<Source>(q.node.inputs[input]) && !q.node.extra.empty();
}

std::string grown_prefix(const heddle_infer& q, std::uint32_t input) {
  return std::string(q.node.type->input(input).name) + ".";
}

// The names of those parts, in the workflow's order; empty where there are none.
Value grown_names(const heddle_infer& q, std::uint32_t input) {
  const std::string prefix = grown_prefix(q, input);
  List names;
  for (const auto& [name, binding] : q.node.extra)
    if (name.starts_with(prefix)) names.items.push_back(make_value(name.substr(prefix.size())));
  return names.items.empty() ? Value() : make_value(std::move(names));
}

// The part that a path begins with, and the rest of the path; nullptr: there is none.
struct GrownPart {
  const Binding* binding = nullptr;
  std::string_view rest;

  const ValueSpec* spec(const heddle_infer& q) const {
    const auto* link = binding == nullptr ? nullptr : std::get_if<Source>(binding);
    const bool is_there = link != nullptr && link->node < q.known.size() &&
                          link->port < q.known[link->node].outputs.size();
    return is_there ? &q.known[link->node].outputs[link->port] : nullptr;
  }
};
GrownPart grown_part(const heddle_infer& q, std::uint32_t input, std::string_view path) {
  const std::string prefix = grown_prefix(q, input);
  const std::size_t dot = std::min(path.find('.'), path.size());
  const std::string wanted = prefix + std::string(path.substr(0, dot));
  for (const auto& [name, binding] : q.node.extra)
    if (name == wanted) return {&binding, path.substr(std::min(dot + 1, path.size()))};
  return {};
}

// Whether a path leads to one of them, also beside a name that the declared input has for a value
// ("mode.mask").
bool is_grown(const heddle_infer& q, std::uint32_t input, std::string_view path) {
  if (is_grown(q, input)) return true;
  return input < q.node.inputs.size() && std::holds_alternative<Value>(q.node.inputs[input]) &&
         !path.empty() && grown_part(q, input, path).binding != nullptr;
}

const heddle_value* grown_value(heddle_infer* q, std::uint32_t input, std::string_view path) {
  if (path.empty()) {
    const Value names = grown_names(*q, input);
    if (names) q->lent.push_back(names);
    return names.get();
  }
  const GrownPart part = grown_part(*q, input, path);
  if (part.binding == nullptr) return nullptr;
  if (const auto* literal = std::get_if<Value>(part.binding))
    return part_of(*literal, part.rest).get();
  const ValueSpec* spec = part.spec(*q);
  return spec == nullptr ? nullptr : part_of(*spec, part.rest).get();
}

const heddle_value* part(heddle_infer* q, std::uint32_t input, const char* path) {
  if (input >= q->node.inputs.size()) return nullptr;
  if (is_grown(*q, input, path)) return grown_value(q, input, path);
  // The literal or the spec keeps the part alive.
  if (const auto* literal = std::get_if<Value>(&q->node.inputs[input]))
    return part_of(*literal, path).get();
  const ValueSpec* spec = spec_of(q, input);
  if (spec == nullptr || is_refused_if_wanted(*q, input, *spec)) return nullptr;
  return part_of(*spec, path).get();
}

const heddle_value* value(heddle_infer* q, std::uint32_t input) { return part(q, input, ""); }

std::int32_t in(heddle_infer* q, std::uint32_t input, const char* path, heddle_tensor_info* out) {
  const GrownPart grown = is_grown(*q, input, path) ? grown_part(*q, input, path) : GrownPart();
  const ValueSpec* spec = grown.binding == nullptr ? spec_of(q, input) : grown.spec(*q);
  if (spec != nullptr) {
    const auto found =
        spec->tensors.find(grown.binding == nullptr ? std::string_view(path) : grown.rest);
    if (found != spec->tensors.end()) {
      *out = found->second;
      return 1;
    }
  }
  const heddle_value* known = part(q, input, path);
  const auto* tensor = known == nullptr ? nullptr : std::get_if<Tensor>(&known->content);
  if (tensor == nullptr) return 0;
  *out = (*tensor)->info;
  return 1;
}

CallSpec::Infos infos_of(std::uint32_t count, const heddle_named_info* const* list) {
  CallSpec::Infos infos;
  for (std::uint32_t i = 0; i < count; ++i)
    infos[list[i]->name] = checked_info(list[i]->info, list[i]->name);
  return infos;
}

CallSpec call_of(const heddle_infer_call& asked) {
  if (asked.model == nullptr || kind_of(*asked.model) != HEDDLE_KIND_MODEL)
    throw Error(Code::invalid_argument, "infer() tells of a call, but not of which model");
  CallSpec call;
  call.model = Value::share(asked.model);
  call.step_count = asked.step_count;
  call.schedule = infos_of(asked.schedule_count, asked.schedule);
  for (std::uint32_t s = 0; s < asked.set_count; ++s)
    call.sets.push_back({infos_of(asked.sets[s]->constant_count, asked.sets[s]->constants),
                         infos_of(asked.sets[s]->step_count, asked.sets[s]->steps)});
  return call;
}

}  // namespace

const heddle_infer_service* infer_service() {
  static const heddle_infer_service table{
      &value,
      &part,
      &in,
      [](heddle_infer* q, std::uint32_t output, const char* path, const heddle_tensor_info* info) {
        return to_status([&] {
          if (output >= q->answer.outputs.size())
            throw Error(Code::invalid_argument, cat("there is no output ", output));
          q->answer.outputs[output].tensors[path] = checked_info(*info, "inferred tensor");
        });
      },
      [](heddle_infer* q, std::uint32_t output, const char* path, const heddle_value* value) {
        return to_status([&] {
          if (output >= q->answer.outputs.size())
            throw Error(Code::invalid_argument, cat("there is no output ", output));
          if (value == nullptr)
            throw Error(Code::invalid_argument, cat("a part ", quote(path), " of output ", output,
                                                    " is told without a value"));
          q->answer.outputs[output].parts[path] = Value::share(value);
        });
      },
      [](heddle_infer* q, std::uint32_t output) {
        return to_status([&] {
          if (output >= q->answer.outputs.size())
            throw Error(Code::invalid_argument, cat("there is no output ", output));
          q->answer.outputs[output].is_shared = true;
        });
      }};
  return &table;
}

const heddle_cost_service* cost_service() {
  static const heddle_cost_service table{
      [](heddle_infer* q, double flops, double bytes, std::uint64_t scratch) {
        q->answer.flops += flops;
        q->answer.bytes += bytes;
        q->answer.scratch_bytes = scratch;
      },
      [](heddle_infer* q, std::uint64_t bytes) { q->answer.host_scratch_bytes = bytes; },
      [](heddle_infer* q, const heddle_infer_call* asked) {
        return to_status([&] { q->answer.calls.push_back(call_of(*asked)); });
      },
      [](heddle_infer* q, const heddle_infer_call* asked) {
        return to_status([&] { q->answer.least_calls.push_back(call_of(*asked)); });
      }};
  return &table;
}

const heddle_least_cost_service* least_cost_service() {
  static const heddle_least_cost_service table{
      [](heddle_infer* q, std::uint64_t bytes) { q->answer.least_scratch_bytes = bytes; }};
  return &table;
}

}  // namespace heddle::engine
