// Of the plugin arithmetic.cpp: a node that calls a model in steps, between which it can be
// stopped.
#pragma once

#include <heddle/ops.hpp>
#include <heddle/resume.hpp>
#include <heddle/session.hpp>

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;

// A ramp and a loop over it in one, with one set, which can say beforehand what it will call.
struct PlannedLoop {
  static constexpr heddle::Info info{"test.planned_loop", 1, "Planned loop", "test"};
  static constexpr Input<heddle::Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<double> start{"start", {.number = 0}};
  static constexpr Input<std::int64_t> width{"width", {.number = 4}};
  static constexpr Input<std::int64_t> steps{"steps", {.number = 2, .min = 1, .max = 1000000}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(model, start, width, steps, out);
  void execute(Context& ctx) {
    std::vector<float> values(ctx[width] * 1u), schedule(ctx[steps] * 1u);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(ctx[start]) + float(i);
    for (std::size_t i = 0; i < schedule.size(); ++i) schedule[i] = 1.0f + float(i);
    const auto record = [&](const char* name, heddle::Shape shape, const float* data) {
      return heddle::Record()
          .set(name, heddle::value_of(ctx.upload(shape, HEDDLE_F32, data)))
          .value();
    };
    const float bias = 0.5f;
    heddle::Session session(ctx, ctx[model], {record("bias", {1, 1, 1}, &bias)},
                            record("t", {ctx[steps], 1, 1}, schedule.data()),
                            std::uint32_t(schedule.size()));
    heddle::Value x = record("x", {1, 1, ctx[width]}, values.data());
    std::uint32_t i = 0;
    if (const heddle::Value saved = heddle::saved_state(ctx)) {
      i = std::uint32_t(saved.get<std::int64_t>("step", 0));
      x = record("x", {1, 1, ctx[width]}, saved.field("x").as<Tensor>().data<float>());
    }
    for (; i < schedule.size(); ++i) {
      heddle::at_boundary(ctx, [&] {
        return heddle::Record(x).set("step", heddle::value_of(std::int64_t(i))).value();
      });
      x = heddle::Record().set("x", session.step(i, {x})[0].field("y")).value();
      ctx.progress(double(i + 1) / double(schedule.size()), "step");
    }
    ctx[out] = x.get<Tensor>("x", {});
  }
  static void infer(heddle::Infer& question) {
    const auto given = question[model];
    const auto size = question[width], count = question[steps];
    if (!given || !size || !count) return;
    question.out(out, "", HEDDLE_F32, {1, 1, *size});
    question.call(*given,
                  {{.constants = {{"bias", HEDDLE_F32, {1, 1, 1}}},
                    .steps = {{"x", HEDDLE_F32, {1, 1, *size}}}}},
                  {{"t", HEDDLE_F32, {*count, 1, 1}}}, std::uint32_t(*count));
  }
};
