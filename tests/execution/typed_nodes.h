// Nodes for the execution suite whose ports have types of many kinds.
#pragma once

#include <heddle/abi/front_end.h>

#include "nodes.h"

namespace suite {

// An output of each kind of type.
struct Typed {
  static constexpr Info info{"t.Typed", 1, "", "t"};
  static constexpr Output<std::string> text{"text"};
  static constexpr Output<std::string> choice{"choice", 0, "", "COMBO"};
  static constexpr Output<Value> either{"either", 0, "", "INT,STRING"};
  static constexpr Output<Value> any{"any"};
  static constexpr Output<std::int64_t> whole{"whole"};
  static constexpr auto ports = heddle::ports(text, choice, either, any, whole);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[text] = std::string("one");
    ctx[choice] = std::string("two");
    ctx[either] = heddle::value_of(std::string("three"));
    ctx[any] = heddle::value_of(std::int64_t{4});
    ctx[whole] = 5;
  }
};

// Takes what is given or linked, and tells of it.
struct Wants {
  static constexpr const char* kChoices[] = {"one", "two", nullptr};
  static constexpr Info info{"t.Wants", 1, "", "t"};
  static constexpr Input<std::int64_t> whole{"whole", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> real{"real", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::string> text{"text", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> flag{"flag", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::string> pick{"pick",
                                           {.choices = kChoices, .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Input<Value> either{"either", HEDDLE_PORT_OPTIONAL, "", "FLOAT,STRING"};
  static constexpr Input<Value> any{"any", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(whole, real, text, flag, pick, either, any, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    heddle::Record given;
    const auto add = [&]<class T>(const Input<T>& input) {
      if (!ctx.has(input)) return;
      if constexpr (std::same_as<T, Value>)
        given.set(input.port.name, ctx[input]);
      else
        given.set(input.port.name, heddle::value_of(ctx[input]));
    };
    (add(whole), add(real), add(text), add(flag), add(pick), add(either), add(any));
    ctx[out] = json_of(given.value());
  }
};

// Of all that is linked to it, under whatever names.
struct Sum {
  static constexpr Info info{"t.Sum", 1, "", "t", "", HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<std::int64_t> input0{"input0", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(input0, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    std::int64_t sum = ctx[input0];
    for (const heddle::ExtraInput& input : heddle::extra_inputs(ctx))
      sum += input.value.as<std::int64_t>();
    ctx[out] = sum;
  }
};

// Has inputs of each dynamic kind, and tells what it gets of them.
struct Grows {
  static constexpr heddle::Widget kRows{
      .extra = R"({"template": {"required": {"x": ["FLOAT", {"min": 0, "max": 2}]},
                   "optional": {"y": ["INT", {"default": 1}]}}, "min": 1, "max": 3})",
      .type = "COMFY_DYNAMICGROUP_V3"};
  static constexpr heddle::Widget kSockets{
      .extra = R"({"template": {"input": {"required": {"item": ["FLOAT,INT", {}]}},
                   "prefix": "item", "min": 1, "max": 3}})",
      .type = "COMFY_AUTOGROW_V3"};
  static constexpr heddle::Widget kModes{
      .extra = R"({"options": [{"key": "plain", "inputs": {"required": {}}},
        {"key": "sized", "inputs": {"required": {"width": ["INT", {"min": 1, "max": 64}],
          "fit": ["COMBO", {"options": ["crop", "pad"]}],
          "from": ["STRING", {}],
          "more": ["COMFY_DYNAMICCOMBO_V3", {"options": [{"key": "deep", "inputs": {"required": {
            "level": ["INT", {}]}}}]}]}}}]})",
      .type = "COMFY_DYNAMICCOMBO_V3"};
  static constexpr Info info{"t.Grows", 1, "", "t", "", HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> rows{"rows", kRows};
  static constexpr Input<Value> items{"items", kSockets};
  static constexpr Input<Value> mode{"mode", kModes};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(rows, items, mode, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    std::string names;
    for (const heddle::ExtraInput& input : heddle::extra_inputs(ctx))
      names += (names.empty() ? "" : " ") + input.name;
    ctx[out] = names;
  }
};

// Has an input that others come with, and tells which there are.
struct Slotted {
  static constexpr heddle::Widget kSlot{
      .extra = R"({"slotType": "STRING", "forceInput": true, "inputs": {
        "required": {"times": ["INT", {"min": 1, "max": 9}], "other": ["INT", {}]},
        "optional": {"fit": ["COMBO", {"options": ["crop", "pad"]}]}}})",
      .flags = HEDDLE_PORT_OPTIONAL,
      .type = "COMFY_DYNAMICSLOT_V3"};
  static constexpr Info info{"t.Slotted", 1, "", "t", "", HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> text{"text", kSlot};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(text, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    std::string names = ctx.has(text) ? "text" : "nothing";
    for (const heddle::ExtraInput& input : heddle::extra_inputs(ctx)) names += " " + input.name;
    ctx[out] = names;
  }
};

// 0 to count - 1.
struct Count {
  static constexpr Info info{"t.Count", 1, "", "t"};
  static constexpr Input<std::int64_t> count{"count", {.number = 0}};
  static constexpr Output<Value> out{"out", HEDDLE_PORT_LIST};
  static constexpr auto ports = heddle::ports(count, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    std::vector<Value> items;
    for (std::int64_t i = 0; i < ctx[count]; ++i) items.push_back(heddle::value_of(i));
    ctx[out] = heddle::list_of(items);
  }
};

// Shows what passes through it, and is no sink.
struct Peek {
  static constexpr Info info{"t.Peek", 1, "", "t", "", HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_PASS};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    heddle::shows(ctx, "{\"text\":[" + json_of(ctx[value]) + "]}");
    ctx[out] = ctx[value];
  }
};

}  // namespace suite
