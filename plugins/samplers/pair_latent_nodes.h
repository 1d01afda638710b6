// Latents of moving pictures with their sound: a LATENT whose samples are a list of two tensors,
// video and audio. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct LTXVConcatAVLatent {
  static constexpr Info info{"LTXVConcatAVLatent",
                             1,
                             "Concat AV Latent",
                             "model/latent/ltxv",
                             "Pictures and their sound as one latent.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> video_latent{"video_latent", 0, "", "LATENT"};
  static constexpr Input<Value> audio_latent{"audio_latent", 0, "", "LATENT"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(video_latent, audio_latent, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LTXVSeparateAVLatent {
  static constexpr Info info{"LTXVSeparateAVLatent",
                             1,
                             "Separate AV Latent",
                             "model/latent/ltxv",
                             "The pictures and the sound of one latent.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> av_latent{"av_latent", 0, "", "LATENT"};
  static constexpr Output<Value> video{"video_latent", 0, "", "LATENT"};
  static constexpr Output<Value> audio{"audio_latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(av_latent, video, audio);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LTXVEmptyLatentAudio {
  static constexpr Info info{"LTXVEmptyLatentAudio",
                             1,
                             "LTXV Empty Latent Audio",
                             "model/latent/ltxv",
                             "A latent of zeros for the sound of so many frames.",
                             HEDDLE_NODE_HOST};
  static constexpr const char* kNumber = R"({"display": "number"})";
  static constexpr Input<std::int64_t> frames_number{
      "frames_number", Widget{.number = 97, .min = 1, .max = 1000, .step = 1, .extra = kNumber}};
  static constexpr Input<double> frame_rate{
      "frame_rate", Widget{.number = 25,
                           .min = 1,
                           .max = 1000,
                           .step = 0.01,
                           .extra = R"({"display": "number", "widgetType": "FLOAT"})",
                           .type = "FLOAT,INT"}};
  static constexpr Input<std::int64_t> batch_size{
      "batch_size", Widget{.number = 1, .min = 1, .max = 4096, .extra = kNumber}};
  static constexpr Input<Value> audio_vae{
      "audio_vae", Widget{.extra = R"({"display_name": "Audio VAE"})", .type = "VAE"},
      "Of LTXVAudioVAELoader: how many channels, bands and latent frames a second its sound has."};
  static constexpr Output<Value> out{"Latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(frames_number, frame_rate, batch_size, audio_vae, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyMiniMaxH3LatentAV {
  static constexpr Info info{
      "EmptyMiniMaxH3LatentAV",
      1,
      "Empty MiniMax H3 AV Latent",
      "model/latent/minimax",
      "A latent of zeros for MiniMax H3: pictures of 24 channels, 16 pixels a cell, and sound.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1344, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 768, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 124, .min = 5, .max = 3600, .step = 17}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
