#include "style_patch_node.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/patched_model.h"

namespace heddle::samplers {
namespace {

// States of a CLIP_VISION_OUTPUT that the projector reads, in its order.
constexpr const char* kStyleStates[] = {"hidden_20", "hidden_11", "hidden_2"};

[[noreturn]] void refuse_style(const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT, why);
}

// The states behind a layer: (1, tokens, width). Throws where the patch or the model is another.
Shape state_shape(const Value& patch, const Value& model) {
  blocks::check_model_patch(patch, model);
  const Value settings = model_settings(patch);
  const auto tokens = settings.get<std::int64_t>("seen_tokens", 0);
  if (tokens < 1)
    refuse_style("model_patch: '" + model_family(patch) +
                 "' sees no style. Load USO's projector (uso-flux1-projector-v1).");
  return {1, tokens, settings.get<std::int64_t>("seen_width", 0)};
}

void check_states(const Shape& given, const Shape& wanted) {
  if (given == wanted) return;
  std::string sizes;
  for (const std::int64_t size : given)
    sizes += (sizes.empty() ? "" : " x ") + std::to_string(size);
  refuse_style("clip_vision_output: its states are " + sizes +
               ", the patch reads those of one "
               "picture, " +
               std::to_string(wanted[1]) + " tokens of " + std::to_string(wanted[2]) +
               " numbers. Link CLIPVisionEncode of one picture with sigclip_vision_patch14_384.");
}

Shape style_shape(const Shape& state) {
  return {std::int64_t(std::size(kStyleStates)), state[1], state[2]};
}

}  // namespace

void USOStyleReference::execute(Context& ctx) {
  const Value drawn = ctx[model], projector = Value(ctx[patch]).field("model"), what = ctx[seen];
  const Shape state = state_shape(projector, drawn);
  // In host memory: the run may be on another device.
  const Tensor states = ctx.make_host(style_shape(state), HEDDLE_F32);
  const std::int64_t count = state[1] * state[2];
  float* to = states.data<float>();
  for (const char* field : kStyleStates) {
    const Value one = what.field(field);
    if (!one.is(HEDDLE_KIND_TENSOR))
      refuse_style(
          "clip_vision_output: it has no states of the layers that the patch reads, 20, 11 and 2 "
          "from the end. Link CLIPVisionEncode with sigclip_vision_patch14_384.");
    const Tensor tensor = one.as<Tensor>();
    check_states(tensor.shape(), state);
    read_to<float>(ctx, tensor, std::span<float>(to, std::size_t(count)));
    to += count;
  }
  ctx[out] = blocks::with_patch_joined(drawn, projector, 1,
                                       std::move(Record().set("heard", value_of(states))));
}

void USOStyleReference::infer(Infer& question) {
  const Value drawn = question.part(model, ""), projector = question.part(patch, "model");
  if (!drawn.is(HEDDLE_KIND_MODEL) || !projector.is(HEDDLE_KIND_MODEL)) return;
  const Shape state = state_shape(projector, drawn);
  for (const char* field : kStyleStates)
    if (const auto shape = question.shape(seen, field)) check_states(*shape, state);
  const Value told = blocks::told_info(tensor_info(HEDDLE_F32, style_shape(state)));
  question.known(
      out, "",
      blocks::with_patch_joined(drawn, projector, 1, std::move(Record().set("heard", told))));
}

}  // namespace heddle::samplers
