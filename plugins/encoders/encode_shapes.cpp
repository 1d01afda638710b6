// encode_prompt() by shapes.
#include "clip_hooks.h"
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

struct Told {
  std::vector<Call> calls;
  std::vector<std::pair<std::string, Shape>> tensors;  // by their paths
  double flops = 0;
  bool widths_known = true;
};

// The calls and the tensors of the entry whose paths begin with `at`.
void tell_entry(Told& told, const std::vector<EncoderUse>& uses, const Prompt& prompt,
                const std::string& at) {
  for (const EncoderUse& use : uses) {
    const Value model = use.encoder.model();
    const Windows windows = use.encoder.windows(prompt.of(use.encoder.name()), nullptr);
    const bool has_eos = model_takes(model, "eos"), takes_unpadded = model_takes(model, "unpadded");
    for (const RowBatch& batch : batches_of(windows, !use.cross_attn)) {
      Infer::Set inputs;
      inputs.constants.push_back({"ids", HEDDLE_I32, {batch.rows(), windows.length()}});
      if (takes_unpadded) inputs.constants.push_back({"unpadded", HEDDLE_I32, {windows.unpadded}});
      if (has_eos) inputs.constants.push_back({"eos", HEDDLE_I32, {batch.rows()}});
      told.calls.push_back({model, std::move(inputs)});
    }
    const std::int64_t width = model_settings(model).get<std::int64_t>("width", 0);
    if (width == 0) told.widths_known = false;
    if (use.pooled_output) told.tensors.emplace_back(at + "pooled_output", Shape{1, width});
    if (!use.cross_attn) continue;
    told.tensors.emplace_back(at + "cross_attn", Shape{1, windows.count() * windows.kept(), width});
    told.flops += weighing_flops(windows, width);
  }
}

}  // namespace

void infer_prompt(Infer& question, const Value& clip, const Prompt& prompt,
                  const Output<Value>& conditioning) {
  try {
    Told told;
    const std::vector<HookedClip> clips = hooked_clips(clip);
    for (std::size_t i = 0; i < clips.size(); ++i)
      tell_entry(told, encoders_of(clips[i].clip), prompt, std::to_string(i) + ".");
    for (const Call& call : told.calls) question.call(call.model, {call.inputs});
    if (told.flops > 0) question.cost(told.flops, 4 * told.flops);
    if (!told.widths_known) return;
    for (const auto& [path, shape] : told.tensors)
      question.out(conditioning, path, HEDDLE_F32, shape);
    for (std::size_t i = 0; i < clips.size(); ++i)
      for (const auto& [key, value] : fields_of(clip, clips[i]))
        question.known(conditioning, std::to_string(i) + "." + key, value);
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

}  // namespace heddle::encoders
