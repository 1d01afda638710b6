// plugins/vae/audio_vae_blocks.h - the block types of LTX 2's audio autoencoder. Source of the
// architecture: AutoencoderKLLTX2Audio of diffusers, by the publishers of the model. Shapes: B
// sounds, T frames of time, M bands of pitch, C channels. A filter of 3 x 3 reads a frame and the
// two before it, and a band and its neighbours; zeros are around all. Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, T, M) in the diffusion model's units -> hidden (B, T, M, C'). mean and deviation (C M):
// the autoencoder's units.
struct AudioLatentIn {
  static constexpr Info info{"audio.vae_latent_in", 1,  "Audio VAE latent input",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, mean, deviation, conv, bias, out);
  static void execute(Context& ctx);
};

// mel (B, C, T, M) -> hidden (B, T, M, C').
struct AudioMelIn {
  static constexpr Info info{"audio.vae_mel_in", 1,  "Audio VAE spectrum input",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> mel{"mel"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(mel, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, M, C) -> (B, T, M, C'). The shortcut is there where C' is not C.
struct AudioResnet {
  static constexpr Info info{"audio.vae_resnet", 1,  "Audio VAE residual block",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias1{"conv1.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias2{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, eps, conv1, bias1, conv2, bias2, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, M, C) -> (B, 2 T - 1, 2 M, C): each number four times, the first frame left out of
// what a filter makes of them.
struct AudioUpsample {
  static constexpr Info info{"audio.vae_upsample", 1,  "Audio VAE upsampling",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, M, C) -> (B, (T - 1) / 2 + 1, M / 2, C).
struct AudioDownsample {
  static constexpr Info info{"audio.vae_downsample", 1,  "Audio VAE downsampling",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, M, C) -> mel (B, C', T, M) f32.
struct AudioMelOut {
  static constexpr Info info{"audio.vae_mel_out", 1,  "Audio VAE spectrum output",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> mel{"mel"};
  static constexpr auto ports = heddle::ports(hidden, eps, conv, bias, mel);
  static void execute(Context& ctx);
};

// hidden (B, T, M, D) -> mean (B, C, T, M) f32 in the diffusion model's units. mean and deviation
// (C M) as of AudioLatentIn.
struct AudioLatentOut {
  static constexpr Info info{"audio.vae_latent_out", 1,  "Audio VAE latent output",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"mean"};
  static constexpr auto ports = heddle::ports(hidden, eps, mean, deviation, conv, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
