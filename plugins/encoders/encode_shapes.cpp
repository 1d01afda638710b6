// encode_prompt() by shapes.
#include "clip_hooks.h"
#include "detection_texts.h"
#include "encode.h"
#include "joined_texts.h"
#include "picture_inputs.h"
#include "projected_states.h"

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
  std::vector<std::pair<std::string, Value>> known;
  double flops = 0;
  bool widths_known = true;
};

// The calls and the tensors of the entry whose paths begin with `at`.
void tell_entry(Told& told, const std::vector<EncoderUse>& uses, const Prompt& prompt,
                const std::string& at) {
  JoinedTexts joined(uses);
  for (const auto& [use, windows] : ask(uses, prompt, nullptr)) {
    const Value model = use.encoder.model();
    const bool has_eos = model_takes(model, "eos"), takes_unpadded = model_takes(model, "unpadded");
    for (const Infer::Named& picture : vision_shapes(use.encoder, prompt, windows))
      told.calls.push_back({use.encoder.vision(), {{picture}, {}}});
    if (use.cross_attn && windows.empty_apart())
      told.calls.push_back(
          {model, {{{"ids", HEDDLE_I32, {1, std::int64_t(windows.empty.ids.size())}}}, {}}});
    for (const RowBatch& batch : batches_of(windows, !use.cross_attn)) {
      Infer::Set inputs;
      inputs.constants.push_back({"ids", HEDDLE_I32, {batch.rows(), windows.length()}});
      if (takes_unpadded) inputs.constants.push_back({"unpadded", HEDDLE_I32, {windows.unpadded}});
      if (has_vectors(windows)) {
        const std::int64_t width_of_tokens = windows.embeddings->reader().width;
        inputs.constants.push_back(
            {"vectors", HEDDLE_F32, {batch.rows(), windows.length(), width_of_tokens}});
        inputs.constants.push_back({"is_word", HEDDLE_F32, {batch.rows(), windows.length(), 1}});
      }
      if (has_eos) inputs.constants.push_back({"eos", HEDDLE_I32, {batch.rows()}});
      for (const Infer::Named& input : picture_shapes(use.encoder, windows))
        inputs.constants.push_back(input);
      for (const Infer::Named& input : state_shapes(use.encoder, windows))
        inputs.constants.push_back(input);
      told.calls.push_back({model, std::move(inputs)});
    }
    const Value projection = use.encoder.projection();
    if (projection)
      told.calls.push_back({projection, projection_shapes(projection, windows.kept())});
    const std::int64_t width =
        model_settings(projection ? projection : model).get<std::int64_t>("width", 0);
    if (width == 0) told.widths_known = false;
    const Shape hidden{1, windows.count() * windows.told(), width}, pooled{1, width};
    if (use.is_joined()) {
      joined.add(use.encoder.name(), {hidden, pooled});
    } else {
      if (use.pooled_output) told.tensors.emplace_back(at + "pooled_output", pooled);
      if (use.cross_attn) told.tensors.emplace_back(at + use.states_as, hidden);
      if (const Value spans = spans_of(windows)) told.known.emplace_back(at + "image_spans", spans);
      if (const Value slots = slots_of(windows)) told.known.emplace_back(at + "image_slots", slots);
    }
    if (use.cross_attn) told.flops += weighing_flops(windows, width);
  }
  if (!are_joined(uses)) return;
  const auto [hidden, pooled] = joined.shapes();
  told.tensors.emplace_back(at + "pooled_output", pooled);
  told.tensors.emplace_back(at + "cross_attn", hidden);
}

// The same of what names things.
void tell_things(Told& told, const std::vector<EncoderUse>& uses, const Prompt& prompt,
                 const std::string& at) {
  std::size_t things = 0;
  for (const NamedThing& thing : named_things(prompt.text)) {
    const Prompt own{.text = thing.text, .by_encoder = {}};
    Told each;
    tell_entry(each, uses, own, "");
    const std::string number = std::to_string(things);
    for (Call& call : each.calls) told.calls.push_back(std::move(call));
    for (auto& [path, shape] : each.tensors) {
      if (path == "cross_attn") {
        shape[1] = 0;
        for (const auto& [begin, end] : token_rows(uses.front().encoder, own, nullptr))
          shape[1] += end - begin;
        told.tensors.emplace_back(at + "sam3_prompts." + number + ".cross_attn", shape);
      }
      if (things == 0) told.tensors.emplace_back(at + path, shape);
    }
    told.widths_known = told.widths_known && each.widths_known;
    told.known.emplace_back(at + "sam3_prompts." + number + ".max_detections",
                            value_of(thing.most));
    ++things;
  }
}

// What the text encoders of a CLIP value make for one entry.
void tell_hooked(Told& told, const Value& clip, const Prompt& prompt, const std::string& at) {
  if (finds_things(clip))
    tell_things(told, encoders_of(clip), prompt, at);
  else
    tell_entry(told, encoders_of(clip), prompt, at);
}

// What is to see pictures and cannot is said before anything is loaded.
void require_vision(const Value& clip, const Prompt& prompt) {
  if (prompt.pictures.empty()) return;
  const Value list = clip.field("encoders");
  for (std::uint32_t i = 0; i < list.count(); ++i) TextEncoder(list.item(i)).vision();
}

void tell_calls(Infer& question, const Told& told) {
  for (const Call& call : told.calls) question.call(call.model, {call.inputs});
  if (told.flops > 0) question.cost(told.flops, 4 * told.flops);
}

// The calls of all entries, and a tensor at a path of the first.
std::optional<Shape> infer_first(Infer& question, const Value& clip, const Prompt& prompt,
                                 std::string_view wanted) {
  try {
    Told told;
    const std::vector<HookedClip> clips = hooked_clips(clip);
    for (std::size_t i = 0; i < clips.size(); ++i)
      tell_hooked(told, clips[i].clip, prompt, std::to_string(i) + ".");
    tell_calls(question, told);
    for (const auto& [path, shape] : told.tensors)
      if (path == wanted && told.widths_known) return shape;
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
  return std::nullopt;
}

}  // namespace

std::optional<Shape> infer_pooled(Infer& question, const Value& clip, const Prompt& prompt) {
  return infer_first(question, clip, prompt, "0.pooled_output");
}

std::optional<Shape> infer_states(Infer& question, const Value& clip, const Prompt& prompt) {
  return infer_first(question, clip, prompt, "0.cross_attn");
}

std::size_t infer_prompt(Infer& question, const Value& clip, const Prompt& prompt,
                         const Output<Value>& conditioning) {
  require_vision(clip, prompt);
  try {
    Told told;
    const std::vector<HookedClip> clips = hooked_clips(clip);
    for (std::size_t i = 0; i < clips.size(); ++i)
      tell_hooked(told, clips[i].clip, prompt, std::to_string(i) + ".");
    tell_calls(question, told);
    if (!told.widths_known) return 0;
    for (const auto& [path, shape] : told.tensors)
      question.out(conditioning, path, HEDDLE_F32, shape);
    for (const auto& [path, value] : told.known) question.known(conditioning, path, value);
    for (std::size_t i = 0; i < clips.size(); ++i)
      for (const auto& [key, value] : fields_of(clip, clips[i]))
        question.known(conditioning, std::to_string(i) + "." + key, value);
    return clips.size();
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
  return 0;
}

}  // namespace heddle::encoders
