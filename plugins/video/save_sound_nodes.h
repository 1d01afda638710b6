// Nodes that save AUDIO as files with the workflow in their tags: one file for each sound of a
// batch, named and counted as pictures are. The sound is handed on.
#pragma once

#include "plugins/video/video_nodes.h"

namespace heddle::video {

inline constexpr const char* kMp3Qualities[] = {"V0", "128k", "320k", nullptr};
inline constexpr const char* kOpusQualities[] = {"64k", "96k", "128k", "192k", "320k", nullptr};
inline constexpr Widget kSoundPrefix{.text = "audio/ComfyUI", .extra = R"({"multiline": false})"};
inline constexpr std::uint32_t kHiddenText = HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL;
inline constexpr std::uint32_t kSoundSaver = HEDDLE_NODE_SINK | HEDDLE_NODE_HOST;

struct SaveAudio {
  static constexpr Info info{"SaveAudio",
                             1,
                             "Save Audio (FLAC) (DEPRECATED)",
                             "audio",
                             "Saves sound as FLAC files in the output folder.",
                             kSoundSaver | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kSoundPrefix};
  static constexpr Input<std::string> prompt{"prompt", kHiddenText, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kHiddenText, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, filename_prefix, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct SaveAudioMP3 {
  static constexpr Info info{"SaveAudioMP3",
                             1,
                             "Save Audio (MP3) (DEPRECATED)",
                             "audio",
                             "Saves sound as MP3 files in the output folder.",
                             kSoundSaver | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kSoundPrefix};
  static constexpr Input<Choice> quality{"quality", {.text = "V0", .choices = kMp3Qualities}};
  static constexpr Input<std::string> prompt{"prompt", kHiddenText, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kHiddenText, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports =
      heddle::ports(audio, filename_prefix, quality, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct SaveAudioOpus {
  static constexpr Info info{"SaveAudioOpus",
                             1,
                             "Save Audio (Opus) (DEPRECATED)",
                             "audio",
                             "Saves sound as Opus files in the output folder.",
                             kSoundSaver | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kSoundPrefix};
  static constexpr Input<Choice> quality{"quality", {.text = "128k", .choices = kOpusQualities}};
  static constexpr Input<std::string> prompt{"prompt", kHiddenText, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kHiddenText, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports =
      heddle::ports(audio, filename_prefix, quality, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct SaveAudioAdvanced {
  static constexpr const char* kFormats =
      R"({"options": [{"key": "flac", "inputs": {"required": {}}},
      {"key": "mp3", "inputs": {"required": {"quality": ["COMBO", {"default": "V0",
        "multiselect": false, "options": ["V0", "128k", "320k"]}]}}},
      {"key": "opus", "inputs": {"required": {"quality": ["COMBO", {"default": "128k",
        "multiselect": false, "options": ["64k", "96k", "128k", "192k", "320k"]}]}}}]})";

  static constexpr Info info{"SaveAudioAdvanced",
                             1,
                             "Save Audio (Advanced)",
                             "audio",
                             "Saves sound as files in the output folder.",
                             kSoundSaver | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kSoundPrefix};
  static constexpr Input<DynamicChoice> format{"format", Widget{.extra = kFormats}};
  static constexpr Input<std::string> prompt{"prompt", kHiddenText, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kHiddenText, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports =
      heddle::ports(audio, filename_prefix, format, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct PreviewAudio {
  static constexpr Info info{"PreviewAudio",
                             1,
                             "Preview Audio",
                             "audio",
                             "Saves sound as FLAC files in the folder of previews.",
                             kSoundSaver};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> prompt{"prompt", kHiddenText, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kHiddenText, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::video
