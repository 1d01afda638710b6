// ComfyUI's loops. The engine gives a start what stands between it and its end
// (engine/graph/loops.h); the start asks for a copy of that for each iteration, one behind the
// other, and the end gives what they have made.
#pragma once

#include <heddle/abi/front_end.h>

#include "value_types.h"

namespace heddle::loaders {

// A choice that brings inputs of its own: they come undeclared, "mode.child".
struct LoopMode : Value {
  LoopMode(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};

}  // namespace heddle::loaders

namespace heddle {

template <>
struct Wire<loaders::LoopMode> : Wire<Value> {
  static constexpr const char* type = "COMFY_DYNAMICCOMBO_V3";
};

}  // namespace heddle

namespace heddle::loaders {

inline constexpr std::uint32_t kLoopNode =
    HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT | HEDDLE_NODE_PASS_EXTRA;
// Of those that no workflow names: loops ask for them.
inline constexpr std::uint32_t kInExpansion = HEDDLE_NODE_DEV_ONLY;

struct StartLoop {
  static constexpr Widget kMode{.extra = R"({"options": [
      {"key": "simple", "inputs": {"required": {"num_iterations": ["INT", {"default": 4, "min": 0}]}}},
      {"key": "For", "inputs": {"required": {
          "start_iteration_index": ["INT", {"default": 0}],
          "max_iteration": ["INT", {"default": 4, "max": 18446744073709551615}],
          "step": ["INT", {"default": 1, "min": 1}]}}},
      {"key": "List", "inputs": {"required": {"list": ["COMFY_MATCHTYPE_V3",
          {"template": {"template_id": "list_item", "allowed_types": "*"}}]}}}]})"};
  static constexpr Widget kCarried{
      .extra = R"({"template": {"template_id": "carried_value", "allowed_types": "*"}})",
      .flags = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS | HEDDLE_PORT_LIST};

  static constexpr Info info{
      "StartLoop",         1,  "Start Loop",
      "utilities/looping", "", kLoopNode | HEDDLE_NODE_EXPANDS | HEDDLE_NODE_LOOP_START};
  static constexpr Input<LoopMode> mode{"mode", kMode};
  static constexpr Input<bool> cache_iterations{"cache_iterations",
                                                Widget{.extra = R"({"advanced": true})"}};
  static constexpr Input<std::int64_t> parent_iteration{"parent_iteration", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Matching> initial{"initial_iteration_value", kCarried};
  static constexpr Input<Value> dynprompt{"dynprompt", HEDDLE_PORT_HIDDEN, "", "DYNPROMPT"};
  static constexpr Input<Value> execution_list{"execution_list", HEDDLE_PORT_HIDDEN, "",
                                               "EXECUTION_LIST"};
  static constexpr Input<std::string> unique_id{"unique_id", HEDDLE_PORT_HIDDEN, "", "UNIQUE_ID"};
  static constexpr Output<std::int64_t> index{"iteration_index"};
  static constexpr Output<bool> is_first{"is_first"}, is_last{"is_last"};
  static constexpr Output<Matching> item{"list_item"}, current{"current_iteration_value"};
  static constexpr auto ports =
      heddle::ports(mode, cache_iterations, parent_iteration, initial, dynprompt, execution_list,
                    unique_id, index, is_first, is_last, item, current);
  static std::uint64_t fingerprint(Context& ctx) {
    return ctx[cache_iterations] ? 0 : HEDDLE_FINGERPRINT_NEVER;
  }
  static void execute(Context& ctx);
};

struct EndLoop {
  static constexpr Widget kValue{
      .extra = R"({"template": {"template_id": "output_value", "allowed_types": "*"}})",
      .flags = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS | HEDDLE_PORT_LIST};
  static constexpr Widget kTerminations{
      .extra = R"({"template": {"input": {"required": {"termination": ["*", {}]}},
                   "prefix": "termination", "min": 0, "max": 50}})",
      .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"EndLoop",           1,  "End Loop",
                             "utilities/looping", "", kLoopNode | HEDDLE_NODE_LOOP_END};
  static constexpr Input<bool> accumulate{"accumulate", Widget{}};
  static constexpr Input<Matching> value{"output_value", kValue};
  static constexpr Input<Matching> next{"next_iteration_value", StartLoop::kCarried};
  static constexpr Input<Growing> terminations{"terminations", kTerminations};
  static constexpr Input<Value> execution_list{"execution_list", HEDDLE_PORT_HIDDEN, "",
                                               "EXECUTION_LIST"};
  static constexpr Input<std::string> unique_id{"unique_id", HEDDLE_PORT_HIDDEN, "", "UNIQUE_ID"};
  static constexpr Output<Matching> outputs{"outputs", HEDDLE_PORT_LIST};
  static constexpr auto ports =
      heddle::ports(accumulate, value, next, terminations, execution_list, unique_id, outputs);
  static void execute(Context& ctx);
};

// What the start of a loop gives, in one iteration. Links beyond its inputs put it behind the
// iteration before.
struct LoopIteration {
  static constexpr Info info{"LoopIteration", 1, "LoopIteration", "", "", kLoopNode | kInExpansion};
  static constexpr Input<std::int64_t> iteration_index{"iteration_index",
                                                       Widget{.extra = kNoDefault}};
  static constexpr Input<bool> is_first{"is_first", Widget{.extra = kNoDefault}},
      is_last{"is_last", Widget{.extra = kNoDefault}},
      reuse_cache{"reuse_cache", Widget{.extra = kNoDefault}};
  static constexpr Input<Value> list_item{"list_item", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS};
  static constexpr Input<Value> current{"current_iteration_value",
                                        HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS | HEDDLE_PORT_LIST};
  static constexpr Output<std::int64_t> index_out{"INT"};
  static constexpr Output<bool> first_out{"BOOLEAN"}, last_out{"BOOLEAN"};
  static constexpr Output<Value> item_out{"*"}, current_out{"*", HEDDLE_PORT_LIST};
  static constexpr auto ports =
      heddle::ports(iteration_index, is_first, is_last, reuse_cache, list_item, current, index_out,
                    first_out, last_out, item_out, current_out);
  static std::uint64_t fingerprint(Context& ctx) {
    return ctx[reuse_cache] ? 0 : HEDDLE_FINGERPRINT_NEVER;
  }
  static void execute(Context& ctx);
};

// The id of one of a loop's two ends. It comes as a list, as all that these nodes read.
constexpr Widget kEndOfLoop{
    .kind = HEDDLE_WIDGET_TEXT, .extra = kNoDefault, .flags = HEDDLE_PORT_LIST, .type = "STRING"};

// Shows how far a loop is.
struct LoopProgress {
  static constexpr Info info{
      "LoopProgress", 1, "LoopProgress", "", "", kLoopNode | kInExpansion | HEDDLE_NODE_SINK};
  static constexpr Input<Value> start_id{"start_id", kEndOfLoop};
  static constexpr Input<std::int64_t> position{"position", Widget{.extra = kNoDefault}},
      total{"total", Widget{.extra = kNoDefault}};
  static constexpr Output<std::int64_t> out{"INT"};
  static constexpr auto ports = heddle::ports(start_id, position, total, out);
  static void execute(Context& ctx);
};

// Stands for the end of a loop, to those who look on: it runs behind all that the loop makes.
struct LoopResult {
  static constexpr Info info{"LoopResult", 1,  "LoopResult",
                             "",           "", kLoopNode | kInExpansion | HEDDLE_NODE_SINK};
  static constexpr Input<Value> close_id{"close_id", kEndOfLoop};
  static constexpr auto ports = heddle::ports(close_id);
  static void execute(Context&) {}
};

// What all iterations have made, or the last one: its undeclared inputs, "value.0" and so on.
struct LoopOutputs {
  static constexpr Info info{"heddle.LoopOutputs",    1, "Loop Outputs", "", "",
                             kLoopNode | kInExpansion};
  static constexpr Input<bool> accumulate{"accumulate", Widget{}};
  static constexpr Input<Value> none{"none",
                                     HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS | HEDDLE_PORT_LIST};
  static constexpr Output<Value> out{"out", HEDDLE_PORT_LIST};
  static constexpr auto ports = heddle::ports(accumulate, none, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
