// Nodes for the execution suite. Each tells of every call of execute(), so that
// the suite sees what ran; what they compute is small numbers and lists of
// them.
#pragma once

#include <algorithm>
#include <heddle/call.hpp>
#include <mutex>
#include <string>
#include <thread>

namespace suite {

using heddle::Context;
using heddle::Info;
using heddle::Input;
using heddle::Output;
using heddle::Value;

constexpr std::uint32_t kLazy = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_LAZY;

inline void tell_call(Context& ctx) { ctx.progress(1, "call"); }

inline std::string json_of(const Value& value) {
  heddle_value* text = nullptr;
  heddle::check(
      heddle::service<heddle_json_service>().write(heddle::services.host, value.raw(), &text));
  return Value::adopt(text).as<std::string>();
}

// "1,2,3"; "x" is a silent blocker, "!why" one with a message.
inline std::vector<Value> parse_items(const std::string& text) {
  std::vector<Value> items;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    if (item == "x")
      items.push_back(heddle::blocker());
    else if (item.starts_with('!'))
      items.push_back(heddle::blocker(item.substr(1)));
    else
      items.push_back(heddle::value_of(std::int64_t(std::stoll(item))));
    at = end + 1;
  }
  return items;
}

struct Number {
  static constexpr Info info{"t.Number", 1, "", "t"};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[value];
  }
};

struct Add {
  static constexpr Info info{"t.Add", 1, "", "t"};
  static constexpr Input<std::int64_t> a{"a", {.number = 0}}, b{"b", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(a, b, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[a] + ctx[b];
  }
};

// Two outputs of which either may be a blocker: of "x", "!why".
struct Pair {
  static constexpr Info info{"t.Pair", 1, "", "t"};
  static constexpr Input<std::string> first{"first", {.text = "1"}},
      second{"second", {.text = "2"}};
  static constexpr Output<Value> a{"a"}, b{"b"};
  static constexpr auto ports = heddle::ports(first, second, a, b);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[a] = parse_items(ctx[first]).front();
    ctx[b] = parse_items(ctx[second]).front();
  }
};

// Passes its input on, or blocks all of its outputs.
struct Gate {
  static constexpr Info info{"t.Gate", 1, "", "t"};
  static constexpr Input<Value> value{"value"};
  static constexpr Input<bool> open{"open", {.number = 1}};
  static constexpr Input<std::string> why{"why", {.text = ""}};
  static constexpr Output<Value> out{"out"}, again{"again"};
  static constexpr auto ports = heddle::ports(value, open, why, out, again);
  static void execute(Context& ctx) {
    tell_call(ctx);
    if (!ctx[open]) return ctx.block(ctx[why]);
    ctx[out] = ctx[value];
    ctx[again] = ctx[value];
  }
};

struct List {
  static constexpr Info info{"t.List", 1, "", "t"};
  static constexpr Input<std::string> items{"items"};
  static constexpr Output<Value> out{"out", HEDDLE_PORT_LIST};
  static constexpr auto ports = heddle::ports(items, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    const std::string text = ctx[items];
    if (text == "blocked") return ctx[out].block("no list");
    ctx[out] = heddle::list_of(parse_items(text));
  }
};

// Wants the whole list.
struct Join {
  static constexpr Info info{"t.Join", 1, "", "t"};
  static constexpr Input<Value> values{"values", HEDDLE_PORT_LIST};
  static constexpr Input<Value> other{"other", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(values, other, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = heddle::value_of(json_of(ctx[values]));
  }
};

struct Show {
  static constexpr Info info{"t.Show", 1, "", "t", "", HEDDLE_NODE_SINK};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_PASS};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    heddle::shows(ctx, "{\"text\":[" + json_of(ctx[value]) + "]}");
    ctx[out] = ctx[value];
  }
};

struct Switch {
  static constexpr Info info{"t.Switch", 1, "", "t"};
  static constexpr Input<bool> which{"which"};
  static constexpr Input<Value> no{"no", kLazy}, yes{"yes", kLazy};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(which, no, yes, out);
  static void need(Context& ctx) { ctx.want(ctx[which] ? yes : no); }
  static void execute(Context& ctx) {
    tell_call(ctx);
    const Input<Value>& chosen = ctx[which] ? yes : no;
    ctx[out] = ctx.has(chosen) ? ctx[chosen] : heddle::value_of(std::int64_t{-1});
  }
};

// The first input that is not 0; those behind it are not asked for.
struct FirstOf {
  static constexpr Info info{"t.FirstOf", 1, "", "t"};
  static constexpr Input<std::int64_t> a{"a", kLazy}, b{"b", kLazy}, c{"c", kLazy};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(a, b, c, out);
  static void need(Context& ctx) {
    for (const auto* input : {&a, &b, &c}) {
      ctx.want(*input);
      if (!ctx.has(*input) || ctx[*input] != 0) return;
    }
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    for (const auto* input : {&a, &b, &c})
      if (ctx.has(*input) && ctx[*input] != 0) {
        ctx[out] = ctx[*input];
        return;
      }
    ctx[out] = 0;
  }
};

// Asks for an input that it has not.
struct Misled {
  static constexpr Info info{"t.Misled", 1, "", "t"};
  static constexpr Input<Value> a{"a", kLazy};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(a, out);
  static void need(Context& ctx) {
    heddle::check(heddle::service<heddle_io_service>().want(ctx.raw(), "z"));
  }
  static void execute(Context&) {}
};

// Its fingerprint is `state`: 0 is like nothing, not even itself; -1 fails. A
// link counts as absent.
struct Watch {
  static constexpr Info info{"t.Watch", 1, "", "t"};
  static constexpr Input<std::int64_t> state{"state", {.number = 1}}, value{"value", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(state, value, out);
  static std::uint64_t fingerprint(Context& ctx) {
    ctx.progress(0, "fingerprint");
    const std::int64_t now = ctx.has(state) ? ctx[state] : 7;
    if (now < 0) throw heddle::Error(HEDDLE_IO, "it cannot be read");
    return now == 0 ? HEDDLE_FINGERPRINT_NEVER : std::uint64_t(now);
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[value];
  }
};

struct WhoAmI {
  static constexpr Info info{"t.WhoAmI", 1, "", "t"};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::string> id{"id", HEDDLE_PORT_HIDDEN, "", "UNIQUE_ID"};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(value, id, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[id];
  }
};

struct Hidden {
  static constexpr Info info{"t.Hidden", 1, "", "t"};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN, "", "PROMPT"};
  static constexpr Input<std::string> png{"png", HEDDLE_PORT_HIDDEN, "", "EXTRA_PNGINFO"};
  static constexpr Output<std::string> out{"out"}, extra{"extra"};
  static constexpr auto ports = heddle::ports(prompt, png, out, extra);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[prompt];
    ctx[extra] = ctx.has(png) ? ctx[png] : std::string("none");
  }
};

struct Truth {
  static constexpr Info info{"t.Truth", 1, "", "t"};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<bool> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[value] != 0;
  }
};

struct Fail {
  static constexpr Info info{"t.Fail", 1, "", "t"};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "it was meant to fail");
  }
};

// They end before their library goes.
class Threads {
 public:
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <class F>
  void start(F work) {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(std::move(work));
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};
inline Threads threads;

// Goes on after execute().
struct Later {
  static constexpr Info info{"t.Later", 1, "", "t"};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) {
    tell_call(ctx);
    threads.start([call = heddle::Deferred(ctx)]() mutable {
      call.finish([](Context& later) { later[out] = later[value]; });
    });
  }
};

}  // namespace suite
