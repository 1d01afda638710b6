#include "plugins/blocks/clip_stop.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle::blocks {
namespace {

// A language model's states after so many layers, without the final norm; 0: after all, under it.
Value language_stopped_at(Context& ctx, const Value& encoder, std::int64_t layers) {
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("hidden_layers", layers == 0 ? list_of({}) : list_of({value_of(layers)}));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, encoder.field("model"), changed.value()))
      .value();
}

// As ComfyUI counts them: of OpenCLIP's H as published. Files of diffusers end before its last
// layer, which Stable Diffusion 2.x does not read.
std::int64_t stop_in_file(const Value& encoder, std::int64_t stop) {
  constexpr std::int64_t kLayersOfH = 24;
  const auto layers = model_settings(encoder.field("model")).get<std::int64_t>("layers", 0);
  if (encoder.get<std::string>("name", "") != "clip_h" || layers >= kLayersOfH) return stop;
  return std::min<std::int64_t>(-1, stop + kLayersOfH - layers);
}

// Stable Diffusion 1.x and 2.x read a layer's states under the final norm. What joins several
// encoders takes them without.
Value clip_stopped_at(Context& ctx, const Value& encoder, std::int64_t stop) {
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("normed_layer", value_of(stop_in_file(encoder, stop)));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, encoder.field("model"), changed.value()))
      .value();
}

// A T5 whose last layer is the asked for one, under the norm behind it: what follows is left out.
// Other encoders say themselves which of their outputs is meant.
Value stopped_at(Context& ctx, const Value& encoder, const std::string& type, std::int64_t stop) {
  const auto family = encoder.get<std::string>("family", "");
  if (family == "clip" && type == "stable_diffusion") return clip_stopped_at(ctx, encoder, stop);
  const bool is_language = family == "language_model";
  if (family != "t5" && !is_language) return encoder;
  const Value model = encoder.field("model");
  const std::int64_t layers =
      encoder.get<std::int64_t>("layers", model_settings(model).get<std::int64_t>("layers", 0));
  // As ComfyUI: a number beyond the encoder's layers means the last.
  const std::int64_t wanted = -stop > layers ? layers : layers + 1 + stop;
  if (is_language) return language_stopped_at(ctx, encoder, -stop > layers ? 0 : wanted);
  if (wanted == model_settings(model).get<std::int64_t>("layers", 0)) return encoder;
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("num_layers", value_of(wanted));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, model, changed.value()))
      .set("layers", value_of(layers))
      .value();
}

}  // namespace

Value stopped_clip(Context& ctx, const Value& clip, std::int64_t stop) {
  const Value list = clip.field("encoders");
  const auto type = clip.get<std::string>("type", "");
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    encoders.push_back(stopped_at(ctx, list.item(i), type, stop));
  return Record(clip)
      .set("encoders", list_of(encoders))
      .set("stop_at_layer", value_of(stop))
      .value();
}

}  // namespace heddle::blocks
