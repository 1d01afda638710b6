// Calls a model of any family with tensors from a golden file, for tests of the families: a
// workflow of one node.
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "tests/support/tensor_file.h"

namespace {

using heddle::Checkpoint;
using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Record;
using heddle::Tensor;
using heddle::Value;

const heddle_json_service& json() { return heddle::service<heddle_json_service>(); }

Value parse(const std::string& text) {
  heddle_value* out = nullptr;
  if (text.empty()) return {};
  heddle::check(json().parse(heddle::services.host, {text.data(), text.size()}, "config", &out));
  return Value::adopt(out);
}

// Gives the model every input that the file has under "<prefix><input>" and steps it through all
// rows of the scheduled inputs: a record of "<output>.<step>".
Value call(Context& ctx, const Value& model, const std::string& tensors, const std::string& prefix,
           const std::string& without) {
  const heddle::test::TensorFile golden(tensors);
  const auto& models = heddle::service<heddle_model_service>();
  Record constants, schedule, steps;
  std::int64_t count = 1;
  for (std::uint32_t i = 0; i < models.input_count(model.raw()); ++i) {
    std::uint32_t flags = 0;
    const std::string name = models.input(model.raw(), i, &flags);
    const bool is_left_out = ("," + without + ",").find("," + name + ",") != std::string::npos;
    if (is_left_out || !golden.has(prefix + name)) continue;
    const auto& entry = golden.at(prefix + name);
    const Tensor tensor =
        ctx.upload(entry.shape, entry.dtype == "I32" ? HEDDLE_I32 : HEDDLE_F32, entry.bytes.data());
    const bool scheduled = (flags & HEDDLE_INPUT_PHASE_MASK) == HEDDLE_INPUT_PRECOMPUTED;
    if (scheduled) count = tensor.size(0);
    const bool constant = (flags & HEDDLE_INPUT_PHASE_MASK) == HEDDLE_INPUT_LOOP_INVARIANT;
    (scheduled  ? schedule
     : constant ? constants
                : steps)
        .set(name, heddle::value_of(Tensor(tensor)));
  }
  Record all;
  heddle::Session session(ctx, model, {constants.value()}, schedule.value(), std::uint32_t(count));
  for (std::int64_t step = 0; step < count; ++step) {
    const Value out = session.step(std::uint32_t(step), {steps.value()}).front();
    for (std::uint32_t i = 0; i < out.count(); ++i)
      all.set(out.key(i) + "." + std::to_string(step), out.item(i));
  }
  return all.value();
}

// A model out of a file; `settings` is the model's settings as JSON.
struct CallModel {
  static constexpr heddle::Info info{"test.call_model", 1, "Call a model", "test", "",
                                     HEDDLE_NODE_IMPURE};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> role{"role", {}};
  static constexpr Input<std::string> config{"config", {}};
  static constexpr Input<std::string> tensors{"tensors", {}};
  static constexpr Input<std::string> prefix{"prefix", {}};
  static constexpr Input<std::string> without{
      "without", {}, "inputs apart by commas that are not given though the file has them"};
  static constexpr Output<Value> outputs{"outputs"};
  static constexpr Output<std::string> settings{"settings"};
  static constexpr auto ports =
      heddle::ports(path, role, config, tensors, prefix, without, outputs, settings);

  void execute(Context& ctx) {
    const Checkpoint file = Checkpoint::open(ctx[path]);
    const Value model = heddle::build_model(ctx, ctx[role].c_str(), file, parse(ctx[config]));
    ctx[outputs] = call(ctx, model, ctx[tensors], ctx[prefix], ctx[without]);
    heddle_value* text = nullptr;
    heddle::check(json().write(heddle::services.host, heddle::model_settings(model).raw(), &text));
    ctx[settings] = Value::adopt(text).as<std::string>();
  }
};

// Calls a MODEL, or the encoder of a CLIP whose family is the prefix's first word ("t5.").
struct CallGiven {
  static constexpr heddle::Info info{"test.call_given", 1, "Call what is given", "test", "",
                                     HEDDLE_NODE_IMPURE};
  static constexpr Input<Value> given{"given", HEDDLE_PORT_PASS};
  static constexpr Input<std::string> tensors{"tensors", {}};
  static constexpr Input<std::string> prefix{"prefix", {}};
  static constexpr Output<Value> outputs{"outputs"};
  static constexpr auto ports = heddle::ports(given, tensors, prefix, outputs);

  void execute(Context& ctx) {
    Value model = ctx[given];
    const std::string name = ctx[prefix], family = name.substr(0, name.find('.'));
    const Value encoders = model.is(HEDDLE_KIND_RECORD) ? model.field("encoders") : Value();
    for (std::uint32_t i = 0; i < encoders.count(); ++i)
      if (encoders.item(i).get<std::string>("family", "") == family)
        model = encoders.item(i).field("model");
    ctx[outputs] = call(ctx, model, ctx[tensors], name, "");
  }
};

// Two of four columns of the numbers 0 to 11, (1, 3, 4), split and split again, so that axes of
// size 1 stand before gaps.
struct SplitView {
  static constexpr heddle::Info info{"test.split_view", 1, "Split a view", "test", ""};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(out);

  void execute(Context& ctx) {
    float numbers[12];
    for (int i = 0; i < 12; ++i) numbers[i] = float(i);
    const Tensor middle = ctx.upload({1, 3, 4}, HEDDLE_F32, numbers).slice(2, 1, 3);
    const Tensor split = middle.reshape({1, 3, 1, 2}).reshape({1, 3, 1, 1, 2});
    ctx[out] = heddle::ops::contiguous(ctx, split);
  }
};

// Ends the workflow.
struct Look {
  static constexpr heddle::Info info{"test.look", 1, "Look", "test", "", HEDDLE_NODE_SINK};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_PASS};
  static constexpr auto ports = heddle::ports(value);
  void execute(Context&) {}
};

HEDDLE_PLUGIN("org.heddle.test.model_probe", "1.0.0", CallModel, CallGiven, SplitView, Look)

}  // namespace
