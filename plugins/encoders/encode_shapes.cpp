// encode_prompt() by shapes.
#include "encode.h"

namespace heddle::encoders {
namespace {

struct Call {
  Value model;
  Infer::Set inputs;
};

// Elements of the windows' states are weighed three times over, when they are.
double weighing_flops(const Windows& windows, std::int64_t width) {
  return windows.weighted() ? 3.0 * double(windows.count() * windows.length() * width) : 0.0;
}

}  // namespace

void infer_prompt(Infer& question, const Value& clip, const Prompt& prompt,
                  const Output<Value>& conditioning) {
  try {
    std::vector<Call> calls;
    std::vector<std::pair<const char*, Shape>> tensors;
    double flops = 0;
    bool widths_known = true;
    for (const EncoderUse& use : encoders_of(clip)) {
      const Value model = use.encoder.model();
      const Windows windows = use.encoder.windows(prompt.of(use.encoder.name()), nullptr);
      const bool has_eos = model_takes(model, "eos");
      for (const RowBatch& batch : batches_of(windows, !use.cross_attn)) {
        Infer::Set inputs;
        inputs.constants.push_back({"ids", HEDDLE_I32, {batch.rows(), windows.length()}});
        if (has_eos) inputs.constants.push_back({"eos", HEDDLE_I32, {batch.rows()}});
        calls.push_back({model, std::move(inputs)});
      }
      const std::int64_t width = model_settings(model).get<std::int64_t>("width", 0);
      if (width == 0) widths_known = false;
      if (use.pooled_output) tensors.emplace_back("0.pooled_output", Shape{1, width});
      if (!use.cross_attn) continue;
      tensors.emplace_back("0.cross_attn", Shape{1, windows.count() * windows.length(), width});
      flops += weighing_flops(windows, width);
    }
    for (const Call& call : calls) question.call(call.model, {call.inputs});
    if (flops > 0) question.cost(flops, 4 * flops);
    if (!widths_known) return;
    for (const auto& [path, shape] : tensors) question.out(conditioning, path, HEDDLE_F32, shape);
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

}  // namespace heddle::encoders
