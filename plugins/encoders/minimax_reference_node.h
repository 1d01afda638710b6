// MiniMaxH3ReferenceToVideo: a prompt for MiniMax H3 that speaks of pictures, videos and sounds as
// <Picture 1>, <Video 1>, <Audio 1> ..., which the model is shown before the video that it draws,
// one after another on the same clock; and an empty latent of the video and its sound. Stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::encoders {

struct MiniMaxH3ReferenceToVideo {
  static constexpr Widget kText{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
  static constexpr const char* kSizes[] = {"match", "max", nullptr};
  static constexpr Widget kImages{
      .extra = R"({"template": {"input": {"required": {"ref_image": ["IMAGE", {}]}},
                   "prefix": "ref_image_", "min": 0, "max": 9}})",
      .flags = HEDDLE_PORT_OPTIONAL};
  static constexpr Widget kVideos{
      .extra = R"({"template": {"input": {"required": {"ref_video": ["IMAGE", {}]}},
                   "prefix": "ref_video_", "min": 0, "max": 3}})",
      .flags = HEDDLE_PORT_OPTIONAL};
  static constexpr Widget kVideoSounds{
      .extra = R"({"template": {"input": {"required": {"ref_video_audio": ["AUDIO", {}]}},
                   "prefix": "ref_video_audio_", "min": 0, "max": 3}})",
      .flags = HEDDLE_PORT_OPTIONAL};
  static constexpr Widget kSounds{
      .extra = R"({"template": {"input": {"required": {"ref_audio": ["AUDIO", {}]}},
                   "prefix": "ref_audio_", "min": 0, "max": 3}})",
      .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"MiniMaxH3ReferenceToVideo",
                             1,
                             "MiniMax H3 Reference to Video",
                             "model/conditioning/minimax",
                             "A prompt that speaks of pictures, videos and sounds as <Picture 1>, "
                             "<Video 1>, <Audio 1> ..., and an empty latent of the video with its "
                             "sound.",
                             HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> clip{"clip", 0, "Qwen3-VL 32B, type minimax.", "CLIP"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "Of videos.", "VAE"};
  static constexpr Input<Value> audio_vae{"audio_vae", HEDDLE_PORT_PASS, "Of sounds.", "VAE"};
  static constexpr Input<std::string> prompt{"prompt", kText};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1344, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 768, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 124, .min = 5, .max = 3600, .step = 17}};
  static constexpr Input<blocks::Choice> ref_image_size{
      "ref_image_size", Widget{.text = "match", .choices = kSizes},
      "Larger pictures are scaled down: to the area of the video, or to a shorter side of 2048 "
      "pixels, which takes longer."};
  static constexpr Input<blocks::Growing> ref_images{"ref_images", kImages};
  static constexpr Input<blocks::Growing> ref_videos{
      "ref_videos", kVideos, "Of 24 pictures a second, at least 5, no longer than the video."};
  static constexpr Input<blocks::Growing> ref_video_audios{
      "ref_video_audios", kVideoSounds, "Each of the video with the same number."};
  static constexpr Input<blocks::Growing> ref_audios{"ref_audios", kSounds};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(clip, vae, audio_vae, prompt, width, height, length, ref_image_size, ref_images,
                    ref_videos, ref_video_audios, ref_audios, positive, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::encoders
