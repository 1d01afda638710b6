// Nodes that judge what a workflow gives them before anything runs.
#pragma once

#include "nodes.h"

namespace suite {

using heddle::Refusal;
using heddle::Validation;

// Judges `a`, whose range would be 0 to 10, and not `b`, which has the same. 13 is refused with a
// text, 14 without one.
struct Judge {
  static constexpr Info info{"t.Judge", 1, "", "t"};
  static constexpr Input<std::int64_t> a{"a", {.number = 0, .min = 0, .max = 10}};
  static constexpr Input<std::int64_t> b{"b", {.number = 0, .min = 0, .max = 10}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(a, b, out);
  static constexpr auto judged = heddle::judged(a);
  static Refusal validate(Validation& question) {
    const auto given = question[a];
    if (question[b]) return "b is none of my business";  // never: it is not named
    if (given == 13) return cat_of("13 is refused, linked: ", question.received(a));
    if (given == 14) return "";
    return {};
  }
  static std::string cat_of(std::string text, std::string_view more) { return text.append(more); }
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[a] + ctx[b];
  }
};

// Judges all of its inputs: together they have to be even.
struct JudgeAll {
  static constexpr const char* kNames[] = {"one", "two", nullptr};
  static constexpr Info info{"t.JudgeAll", 1, "", "t"};
  static constexpr Input<std::int64_t> a{"a", {.number = 0, .min = 0, .max = 10}};
  static constexpr Input<std::int64_t> b{"b", {.number = 0, .min = 0, .max = 10}};
  static constexpr Input<std::string> name{"name", {.choices = kNames}};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(a, b, name, out);
  static Refusal validate(Validation& question) {
    const std::int64_t sum = question[a].value_or(0) + question[b].value_or(0);
    if (sum % 2 != 0) return "the sum is odd: " + std::to_string(sum);
    return {};
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[name] + std::to_string(ctx[a] + ctx[b]);
  }
};

// Looks at the types of links itself: any but a text will do.
struct JudgeTypes {
  static constexpr Info info{"t.JudgeTypes", 1, "", "t"};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_OPTIONAL, "", "MODEL"};
  static constexpr Output<Value> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  static constexpr auto judged = heddle::judged(value);
  static constexpr bool judges_types = true;
  static Refusal validate(Validation& question) {
    if (question.received(value) == "STRING") return "no texts";
    return {};
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[value];
  }
};

// Reads a name of a file that is in the input folder.
struct JudgeFile {
  static constexpr Info info{"t.JudgeFile", 1, "", "t"};
  static constexpr Input<std::string> file{"file", {.source = "input"}};
  static constexpr Output<std::string> out{"out"};
  static constexpr auto ports = heddle::ports(file, out);
  static constexpr auto judged = heddle::judged(file);
  static Refusal validate(Validation& question) {
    if (question[file] && !question.has_file(file, "input"))
      return "Invalid file: " + *question[file];
    return {};
  }
  static void execute(Context& ctx) {
    tell_call(ctx);
    ctx[out] = ctx[file];
  }
};

// Fails in its validator.
struct JudgeFails {
  static constexpr Info info{"t.JudgeFails", 1, "", "t"};
  static constexpr Input<std::int64_t> a{"a", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(a, out);
  static Refusal validate(Validation&) { throw heddle::Error(HEDDLE_IO, "cannot judge"); }
  static void execute(Context& ctx) { ctx[out] = ctx[a]; }
};

}  // namespace suite
