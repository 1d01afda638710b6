// Loaders of models of sound, and of those that make latents larger, under ComfyUI's names. They
// read headers and configurations only. On the host; stateless.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "loader_nodes.h"

namespace heddle::loaders {

// An audio autoencoder (ltxv_audio_nodes.h of the plugin vae) of a file that has one; throws where
// it has none, or only a part of it.
Value audio_vae_value(Context& ctx, const Checkpoint& file);
// Whether a file has all parts of one.
bool is_audio_vae(Context& ctx, const Checkpoint& file);

struct LTXVAudioVAELoader {
  static constexpr Info info{
      "LTXVAudioVAELoader",
      1,
      "Load LTXV Audio VAE",
      "model/loaders",
      "The audio autoencoder of a checkpoint: of LTX 2, with its vocoder, or of "
      "MiniMax H3.",
      kLoader};
  static constexpr Input<std::string> ckpt_name{"ckpt_name",
                                                Widget{.source = "checkpoints", .type = "COMBO"}};
  static constexpr Output<Value> vae{"Audio VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(ckpt_name, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct AudioEncoderLoader {
  static constexpr Info info{"AudioEncoderLoader",
                             1,
                             "",
                             "loaders",
                             "An encoder of sound: wav2vec 2.0 or Whisper.",
                             kLoader};
  static constexpr Input<std::string> audio_encoder_name{
      "audio_encoder_name", Widget{.source = "audio_encoders", .type = "COMBO"}};
  static constexpr Output<Value> audio_encoder{"AUDIO_ENCODER", 0, "", "AUDIO_ENCODER"};
  static constexpr auto ports = heddle::ports(audio_encoder_name, audio_encoder);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LatentUpscaleModelLoader {
  static constexpr Info info{
      "LatentUpscaleModelLoader",
      1,
      "Load Latent Upscale Model",
      "model/loaders",
      "A model that makes latents larger: of LTX-Video, LTX 2 and HunyuanVideo 1.5.",
      kLoader};
  static constexpr Input<std::string> model_name{
      "model_name", Widget{.source = "latent_upscale_models", .type = "COMBO"}};
  static constexpr Output<Value> model{"LATENT_UPSCALE_MODEL", 0, "", "LATENT_UPSCALE_MODEL"};
  static constexpr auto ports = heddle::ports(model_name, model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
