#include "audio_loader_nodes.h"

#include <string>

#include <heddle/model.hpp>

#include "model_files.h"
#include "model_roles.h"

namespace heddle::loaders {
namespace {

// What stands under a prefix; of a file with this part alone, all of it.
Checkpoint audio_part(const Checkpoint& file, const char* prefix) {
  const Checkpoint part = file.sub(prefix);
  return part.size() > 0 ? part : file;
}

}  // namespace

Value audio_vae_value(Context& ctx, const Checkpoint& file) {
  const Checkpoint autoencoder = audio_part(file, "audio_vae.");
  const Value decoder = build_for(ctx, "audio_vae.decoder", autoencoder, Value()),
              settings = model_settings(decoder);
  Record sound, made;
  sound.set("sample_rate", settings.field("sample_rate"))
      .set("channels", settings.field("latent_channels"));
  if (settings.get<bool>("makes_sound", false))
    sound.set("hop_length", settings.field("hop"))
        .set("latent_means", settings.field("latent_means"))
        .set("latent_deviations", settings.field("latent_deviations"));
  else
    sound.set("vocoder", build_for(ctx, "vocoder", audio_part(file, "vocoder."), Value()))
        .set("hop_length", settings.field("mel_hop_length"))
        .set("mel_bins", settings.field("mel_bins"));
  made.set("decoder", decoder);
  if (autoencoder.sub("encoder.").size() > 0)
    made.set("encoder", build_for(ctx, "audio_vae.encoder", autoencoder, Value()));
  return made.set("audio", sound.value()).value();
}

bool is_audio_vae(Context& ctx, const Checkpoint& file) {
  const Value decoder =
      build_if_there(ctx, "audio_vae.decoder", audio_part(file, "audio_vae."), Value());
  if (!decoder) return false;
  return model_settings(decoder).get<bool>("makes_sound", false) ||
         bool(build_if_there(ctx, "vocoder", audio_part(file, "vocoder."), Value()));
}

void LTXVAudioVAELoader::execute(Context& ctx) {
  ctx[vae] = audio_vae_value(
      ctx, Checkpoint::open(find_file(ctx, ckpt_name.widget.source, ctx[ckpt_name]).string()));
}
std::uint64_t LTXVAudioVAELoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, ckpt_name);
}

void AudioEncoderLoader::execute(Context& ctx) {
  const Checkpoint file = Checkpoint::open(
      find_file(ctx, audio_encoder_name.widget.source, ctx[audio_encoder_name]).string());
  ctx[audio_encoder] =
      Record().set("model", build_for(ctx, "audio_encoder", file, Value())).value();
}
std::uint64_t AudioEncoderLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, audio_encoder_name);
}

void LatentUpscaleModelLoader::execute(Context& ctx) {
  const Checkpoint file =
      Checkpoint::open(find_file(ctx, model_name.widget.source, ctx[model_name]).string());
  ctx[model] = Record().set("model", build_for(ctx, "latent_upscaler", file, Value())).value();
}
std::uint64_t LatentUpscaleModelLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, model_name);
}

}  // namespace heddle::loaders
