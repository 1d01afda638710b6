// Nodes that make and change AUDIO: {waveform (batch, channels, samples) f32, sample_rate}. None,
// which a video without sound gives, is handed on where ComfyUI does so.
#pragma once

#include "plugins/video/video_nodes.h"

namespace heddle::video {

inline constexpr double kTwo64 = 18446744073709551616.0;

struct LoadAudio {
  static constexpr Info info{
      "LoadAudio",     1, "Load Audio", "audio", "The first track of sound of a file.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::string> audio{
      "audio",
      {.source = "input", .kind = HEDDLE_WIDGET_FILE, .extra = R"({"audio_upload": true})"}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, out);
  static constexpr auto judged = heddle::judged(audio);
  static Refusal validate(Validation& question);
  static void execute(Context& ctx);
  static std::uint64_t fingerprint(Context& ctx);
};

// What the browser records it puts into the input folder; here is the name of that file.
struct RecordAudio {
  static constexpr Info info{
      "RecordAudio",   1, "Record Audio", "audio", "Sound that a front end has recorded.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio{"audio", Widget{.extra = "{}", .type = "AUDIO_RECORD"}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, out);
  static void execute(Context& ctx);
  static std::uint64_t fingerprint(Context& ctx);
};

struct EmptyAudio {
  static constexpr Info info{"EmptyAudio", 1, "Empty Audio", "audio", "Silence.", HEDDLE_NODE_HOST};
  static constexpr Input<double> duration{
      "duration",
      {.number = 60, .max = kTwo64, .step = 0.01, .extra = R"({"max": 18446744073709551615})"}};
  static constexpr Input<std::int64_t> sample_rate{
      "sample_rate", {.number = 44100, .min = 1, .max = 192000, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::int64_t> channels{
      "channels", {.number = 2, .min = 1, .max = 2, .extra = R"({"advanced": true})"}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(duration, sample_rate, channels, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct TrimAudioDuration {
  static constexpr Info info{"TrimAudioDuration",          1,
                             "Trim Audio Duration",        "audio",
                             "A part of a sound in time.", HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_PASS, "", "AUDIO"};
  static constexpr Input<double> start_index{"start_index",
                                             {.min = -kTwo64, .max = kTwo64, .step = 0.01},
                                             "In seconds, below 0 counted from the end."};
  static constexpr Input<double> duration{
      "duration", {.number = 60, .max = kMostSeconds, .step = 0.01, .extra = kNoMost}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, start_index, duration, out);
  static void execute(Context& ctx);
};

struct SplitAudioChannels {
  static constexpr Info info{"SplitAudioChannels",
                             1,
                             "Split Audio Channels",
                             "audio",
                             "The two channels of a stereo sound.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_PASS, "", "AUDIO"};
  static constexpr Output<Value> left{"left", 0, "", "AUDIO"};
  static constexpr Output<Value> right{"right", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, left, right);
  static void execute(Context& ctx);
};

struct JoinAudioChannels {
  static constexpr Info info{"JoinAudioChannels",
                             1,
                             "Join Audio Channels",
                             "audio",
                             "Two channels as a stereo sound, as long as the shorter one.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio_left{"audio_left", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<Value> audio_right{"audio_right", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Output<Value> out{"audio", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio_left, audio_right, out);
  static void execute(Context& ctx);
};

struct AudioConcat {
  static constexpr const char* kDirections[] = {"after", "before", nullptr};

  static constexpr Info info{"AudioConcat",
                             1,
                             "Audio Concat",
                             "audio",
                             "One sound after another, at the higher of their rates.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio1{"audio1", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<Value> audio2{"audio2", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> direction{"direction",
                                                {.text = "after", .choices = kDirections}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio1, audio2, direction, out);
  static void execute(Context& ctx);
};

struct AudioMerge {
  static constexpr const char* kMethods[] = {"add", "mean", "subtract", "multiply", nullptr};

  static constexpr Info info{
      "AudioMerge",    1, "Audio Merge", "audio", "Two sounds at once, as long as the first.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio1{"audio1", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<Value> audio2{"audio2", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::string> merge_method{"merge_method", {.choices = kMethods}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio1, audio2, merge_method, out);
  static void execute(Context& ctx);
};

struct AudioAdjustVolume {
  static constexpr Info info{"AudioAdjustVolume",
                             1,
                             "Audio Adjust Volume",
                             "audio",
                             "A sound louder or quieter by decibels.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<std::int64_t> volume{
      "volume", {.number = 1, .min = -100, .max = 100, .extra = R"({"default": 1.0})"}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, volume, out);
  static void execute(Context& ctx);
};

struct AudioEqualizer3Band {
  static constexpr Widget kGain{.min = -24, .max = 24, .step = 0.1};

  static constexpr Info info{"AudioEqualizer3Band",
                             1,
                             "Audio Equalizer (3-Band)",
                             "audio",
                             "A low shelf, a peak and a high shelf, one after another.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_HOST, "", "AUDIO"};
  static constexpr Input<double> low_gain{"low_gain_dB", kGain};
  static constexpr Input<std::int64_t> low_freq{"low_freq", {.number = 100, .min = 20, .max = 500}};
  static constexpr Input<double> mid_gain{"mid_gain_dB", kGain};
  static constexpr Input<std::int64_t> mid_freq{"mid_freq",
                                                {.number = 1000, .min = 200, .max = 4000}};
  static constexpr Input<double> mid_q{"mid_q",
                                       {.number = 0.707, .min = 0.1, .max = 10, .step = 0.1}};
  static constexpr Input<double> high_gain{"high_gain_dB", kGain};
  static constexpr Input<std::int64_t> high_freq{"high_freq",
                                                 {.number = 5000, .min = 1000, .max = 15000}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(audio, low_gain, low_freq, mid_gain, mid_freq, mid_q,
                                              high_gain, high_freq, out);
  static void execute(Context& ctx);
};

struct EmptyLatentAudio {
  static constexpr Info info{"EmptyLatentAudio",
                             1,
                             "Empty Latent Audio",
                             "latent/audio",
                             "A latent of silence: (batch, 64, length).",
                             HEDDLE_NODE_HOST};
  static constexpr Input<double> seconds{"seconds",
                                         {.number = 47.6, .min = 1, .max = 1000, .step = 0.1}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  {.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(seconds, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::video
