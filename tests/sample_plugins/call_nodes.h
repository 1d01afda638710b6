// Nodes of arithmetic.cpp about the call itself: that go on after it, know where it runs, and tell
// of it before.
#pragma once

#include <heddle/call.hpp>
#include <heddle/ops.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Ends on a thread of its own: with its output, with a failure, or by letting go of the call; or
// fails at once, where that thread still has the call ("now").
struct Later {
  static constexpr heddle::Info info{"test.later", 1, "Later", "test"};
  static constexpr heddle::Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr heddle::Input<std::string> how{"how", {.text = "well"}};
  static constexpr heddle::Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(value, how, out);
  std::jthread worker;
  void execute(heddle::Context& ctx) {
    worker = std::jthread([call = heddle::Deferred(ctx), way = std::string(ctx[how])]() mutable {
      if (way == "drop") return;
      if (way == "fail") return call.fail(HEDDLE_UNSUPPORTED, "it was asked to fail later");
      call.finish([&](heddle::Context& later) {
        if (way == "throw") throw std::runtime_error("it was asked to throw later");
        later[out] = 2 * later[value];
      });
    });
    if (ctx[how] == "now") throw std::runtime_error("it was asked to throw at once");
  }
};

// Where it runs, and what it is given besides.
struct Where {
  static constexpr heddle::Info info{"test.where", 1, "Where", "test", "", HEDDLE_NODE_ANY_INPUT};
  static constexpr heddle::Output<std::string> device{"device"};
  static constexpr heddle::Output<bool> has_stream{"has_stream"};
  static constexpr heddle::Output<std::string> extra{"extra"};
  static constexpr auto ports = heddle::ports(device, has_stream, extra);
  static void execute(heddle::Context& ctx) {
    std::string given;
    for (const heddle::ExtraInput& input : heddle::extra_inputs(ctx))
      given += input.name + "=" + std::to_string(input.value.as<std::int64_t>()) + " ";
    ctx[device] = heddle::device_of(ctx);
    ctx[has_stream] = heddle::native_stream(ctx) != nullptr;
    ctx[extra] = given;
  }
};

// Makes so many elements and counts them; tells before the run what it was asked to tell.
struct Told {
  static constexpr heddle::Info info{"test.told", 1, "Told", "test"};
  static constexpr heddle::Input<std::int64_t> made{"made", {.number = 4, .min = 1, .max = 1000}};
  static constexpr heddle::Input<std::int64_t> told{"told", {.number = 4, .min = 0, .max = 1000}};
  static constexpr heddle::Output<heddle::Tensor> out{"out"};
  static constexpr heddle::Output<std::int64_t> count{"count"};
  static constexpr auto ports = heddle::ports(made, told, out, count);
  void execute(heddle::Context& ctx) {
    const std::vector<float> zeros(static_cast<std::size_t>(ctx[made]));
    ctx[out] = ctx.upload({ctx[made]}, HEDDLE_F32, zeros.data());
    ctx[count] = ctx[made];
  }
  static void infer(heddle::Infer& question) {
    const std::optional<std::int64_t> elements = question[told];
    if (!elements || *elements == 0) return;
    if (*elements > 100)
      throw heddle::Error(HEDDLE_INVALID_ARGUMENT,
                          std::to_string(*elements) + " elements are over 100");
    question.out(out, "", HEDDLE_F32, {*elements});
    question.known(count, "", heddle::value_of(*elements));
  }
};
