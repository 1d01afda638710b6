// Nodes for the execution suite that ask for other nodes.
#pragma once

#include <heddle/expansion.hpp>
#include <optional>

#include "nodes.h"

namespace suite {

// A graph given as JSON: {"nodes": {name: {"class": ..., "display": ..., "in":
// {input: ...}}}, "out": [...]}. An input or an output is a literal, ["@",
// name, output] for a node of the graph,
// ["#", id, output] for one of the workflow, ["$"] for what `value` is.
struct Expand {
  static constexpr Info info{"t.Expand", 1, "", "t", "", HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::string> graph{"graph"};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Value> after{"after", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Value> linked{"linked", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_LINK};
  static constexpr Output<Value> out{"out"}, again{"again"};
  static constexpr auto ports = heddle::ports(graph, value, after, linked, out, again);

  static bool is_word(const Value& list, const char* word) {
    return list.is(HEDDLE_KIND_LIST) && list.count() > 0 && list.item(0).is(HEDDLE_KIND_STR) &&
           list.item(0).text() == word;
  }
  // The link that a JSON value means, or nothing.
  static std::optional<heddle::Expansion::Link> link(Context& ctx, const Value& json,
                                                     const std::string& prefix) {
    if (is_word(json, "linked")) return heddle::link_of(ctx[linked]);
    if (!is_word(json, "@") && !is_word(json, "#")) return {};
    const std::string name = json.item(1).as<std::string>();
    return heddle::Expansion::Link{
        is_word(json, "@") ? prefix + name : name,
        json.count() > 2 ? std::uint32_t(json.item(2).as<std::int64_t>()) : 0};
  }
  static Value literal(Context& ctx, const Value& json) {
    return is_word(json, "$") ? ctx[value] : json;
  }
  // A name that begins with '!' is the whole id.
  static heddle::Expansion::Node add(Context& ctx, heddle::Expansion& expansion,
                                     const std::string& name, const Value& one) {
    const auto type = one.field("class").as<std::string>();
    if (!name.starts_with('!'))
      return expansion.node(type, name, one.get<std::string>("display", ""));
    std::uint32_t number = 0;
    heddle::check(heddle::service<heddle_expansion_service>().add_node(
        ctx.raw(), name.c_str() + 1, type.c_str(), nullptr, &number));
    return {ctx.raw(), number, name.substr(1)};
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    const std::string text = ctx[graph];
    heddle_value* raw = nullptr;
    heddle::check(heddle::service<heddle_json_service>().parse(
        heddle::services.host, {text.data(), text.size()}, "graph", &raw));
    const Value json = Value::adopt(raw);
    heddle::Expansion expansion(ctx);
    const Value nodes = json.field("nodes");
    for (std::uint32_t i = 0; i < nodes.count(); ++i) {
      const Value one = nodes.item(i);
      auto node = add(ctx, expansion, nodes.key(i), one);
      const Value inputs = one.field("in");
      for (std::uint32_t k = 0; k < inputs.count(); ++k)
        if (const auto from = link(ctx, inputs.item(k), expansion.prefix()))
          node.link(inputs.key(k), *from);
        else
          node.set(inputs.key(k), literal(ctx, inputs.item(k)));
    }
    const Value outputs = json.field("out");
    for (std::uint32_t o = 0; o < 2; ++o) {
      const Output<Value>& to = o == 0 ? out : again;
      const Value from = o < outputs.count() ? outputs.item(o) : Value();
      if (const auto found = from ? link(ctx, from, expansion.prefix()) : std::nullopt)
        expansion.give(to, *found);
      else
        ctx[to] = from ? literal(ctx, from) : heddle::value_of(std::int64_t{0});
    }
  }
};

// Counts down by asking for itself: a loop that is unrolled by recursion. -1:
// without end.
struct CountDown {
  static constexpr Info info{"t.CountDown", 1, "", "t", "", HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::int64_t> left{"left", {.number = 3}}, sum{"sum", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(left, sum, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    const std::int64_t now = ctx[left];
    if (now == 0) {
      ctx[out] = ctx[sum];
      return;
    }
    heddle::Expansion graph(ctx);
    const auto next = graph.node("t.Add", "add").set("a", ctx[sum]).set("b", now);
    const auto rest = graph.node("t.CountDown", "rest")
                          .set("left", now < 0 ? now : now - 1)
                          .link("sum", next.out());
    graph.give(out, rest.out());
  }
};

// Odd numbers are given as they are, of even ones a node makes ten times as
// much.
struct Mixed {
  static constexpr Info info{"t.Mixed", 1, "", "t", "", HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    if (ctx[value] % 2 != 0) {
      ctx[out] = ctx[value];
      return;
    }
    heddle::Expansion graph(ctx);
    graph.give(out, graph.node("t.Add").set("a", 9 * ctx[value]).set("b", ctx[value]).out());
  }
};

// What the run knows of a node.
struct LookUp {
  static constexpr Info info{"t.LookUp", 1, "", "t"};
  static constexpr Input<std::string> id{"id"};
  static constexpr Input<Value> after{"after", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Value> dynprompt{"dynprompt", HEDDLE_PORT_HIDDEN, "", "DYNPROMPT"};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(id, after, dynprompt, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    const Value found = heddle::find_node(ctx, ctx[id]);
    ctx[out] = found ? json_of(found) : std::string("none");
  }
};

// Asks for nodes without having said that it may.
struct Rogue {
  static constexpr Info info{"t.Rogue", 1, "", "t"};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  static void execute(Context& ctx) { heddle::Expansion graph(ctx); }
};

}  // namespace suite
