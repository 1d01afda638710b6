#include "vae_value.h"

#include <heddle/diffusion/values.h>

#include "model_roles.h"

namespace heddle::loaders {

namespace {

// The models of a side's stages, where it goes through videos by chunks.
void add_chunks(Context& ctx, const Value& model, const char* key, Record& vae) {
  const Value configs = model_settings(model).field("chunk_configs");
  if (!configs) return;
  Record chunks;
  for (const char* chunk : {"first", "next"}) {
    const Value stages = configs.field(chunk);
    std::vector<Value> models;
    for (std::uint32_t i = 0; i < stages.count(); ++i)
      models.push_back(rebuilt_model(ctx, model, stages.item(i)));
    chunks.set(chunk, list_of(models));
  }
  vae.set(key, chunks.value());
}

// The models of a side's stages for pieces of videos.
void add_pieces(Context& ctx, const Value& model, const char* key, Record& vae) {
  const Value configs = model_settings(model).field("piece_configs");
  if (!configs) return;
  std::vector<Value> stages;
  for (std::uint32_t i = 0; i < configs.count(); ++i) {
    Record kinds;
    const Value told = configs.item(i);
    for (std::uint32_t k = 0; k < told.count(); ++k)
      kinds.set(told.key(k), rebuilt_model(ctx, model, told.item(k)));
    stages.push_back(kinds.value());
  }
  vae.set(key, list_of(stages));
}

Value joined(Context& ctx, const Value& decoder, const Value& encoder) {
  const Value settings = model_settings(decoder);
  Record vae;
  vae.set("decoder", decoder);
  if (encoder) vae.set("encoder", encoder);
  add_chunks(ctx, decoder, "decoder_chunks", vae);
  if (encoder) add_chunks(ctx, encoder, "encoder_chunks", vae);
  add_pieces(ctx, decoder, "decoder_pieces", vae);
  if (encoder) add_pieces(ctx, encoder, "encoder_pieces", vae);
  if (settings.has("frame_downscale"))
    vae.set("frame_downscale", settings.field("frame_downscale"));
  vae.set("scale", value_of(settings.get<double>("scaling_factor", HEDDLE_FLUX_LATENT_SCALE)))
      .set("shift", value_of(settings.get<double>("shift_factor", HEDDLE_FLUX_LATENT_SHIFT)))
      .set("channels", value_of(settings.get<std::int64_t>("latent_channels", 0)))
      .set("downscale", value_of(settings.get<std::int64_t>("downscale", 8)))
      .set("pixel_channels", value_of(settings.get<std::int64_t>("pixel_channels", 3)));
  for (const char* key :
       {"latent_means", "latent_deviations", "clips", "preview_factors", "no_temporal_tiles"})
    if (settings.has(key)) vae.set(key, settings.field(key));
  return vae.value();
}

}  // namespace

Value vae_value(Context& ctx, const Checkpoint& file, const Value& config) {
  const Value decoder = build_for(ctx, "vae.decoder", file, config);
  Value encoder;
  for (const char* prefix : {"encoder.", "taesd_encoder."})
    if (file.sub(prefix).size() > 0) encoder = build_for(ctx, "vae.encoder", file, config);
  return joined(ctx, decoder, encoder);
}

Value taesd_value(Context& ctx, const Checkpoint& decoder, const Checkpoint* encoder, double scale,
                  double shift) {
  const Value config =
      Record().set("scaling_factor", value_of(scale)).set("shift_factor", value_of(shift)).value();
  return joined(ctx, build_for(ctx, "vae.decoder", decoder, config),
                encoder == nullptr ? Value() : build_for(ctx, "vae.encoder", *encoder, config));
}

Value pixel_space() {
  constexpr std::int64_t kColours = 3;
  return Record()
      .set("pixel_space", value_of(true))
      .set("scale", value_of(1.0))
      .set("shift", value_of(0.0))
      .set("channels", value_of(kColours))
      .set("downscale", value_of(std::int64_t{1}))
      .value();
}

Value with_latents_of(const Value& model, const Value& vae) {
  Record settings(model_settings(model));
  settings.set("latent_scale", vae.field("scale")).set("latent_shift", vae.field("shift"));
  for (const char* key : {"latent_means", "latent_deviations"})
    if (vae.has(key)) settings.set(key, vae.field(key));
  if (vae.has("preview_factors")) settings.set("preview_factors", vae.field("preview_factors"));
  return with_settings(model, settings.value());
}

}  // namespace heddle::loaders
