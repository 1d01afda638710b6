#include "plugins/video/save_sound_nodes.h"

#include <algorithm>
#include <charconv>

#include "plugins/blocks/saved_files.h"
#include "plugins/video/encode_pictures.h"
#include "plugins/video/extra_inputs.h"
#include "plugins/video/sound_frames.h"
#include "plugins/video/sound_math.h"

namespace heddle::video {
namespace {

struct SoundFormat {
  std::string name = "flac";  // "mp3", "opus"; the ending of files as well
  std::string quality;        // "V0", or thousands of bits in a second: "128k"
};

struct SavePlace {
  const char* kind;  // "output", "temp"
  std::string prefix;
};

// Opus knows few rates: the next one above is taken.
std::int64_t opus_rate(std::int64_t rate) {
  for (const std::int64_t known : {8000, 12000, 16000, 24000})
    if (rate <= known) return known;
  return 48000;
}

SoundCoding coding_of(const SoundFormat& format, const Sound& sound) {
  SoundCoding coding;
  coding.sample_rate = static_cast<int>(sound.sample_rate);
  coding.channels = static_cast<int>(std::min<std::int64_t>(sound.channels(), 1 << 10));
  coding.encoder = format.name == "mp3" ? "libmp3lame" : format.name == "opus" ? "libopus" : "flac";
  if (format.name == "mp3") coding.channels = std::min(coding.channels, 2);
  if (format.quality == "V0") {
    coding.quality = 0;
  } else if (!format.quality.empty()) {
    std::int64_t thousands = 0;
    std::from_chars(format.quality.data(), format.quality.data() + format.quality.size(),
                    thousands);
    coding.bit_rate = 1000 * thousands;
  }
  return coding;
}

std::string encoded(Context& ctx, const Sound& sound, const SoundFormat& format, const Tags& tags) {
  MediaWriter writer(format.name, tags);
  StreamWriter stream(writer, coding_of(format, sound));
  writer.begin();
  const SoundRows rows(ctx, sound, sound.samples());
  SoundFeeder feeder(stream, rows.rows(), static_cast<int>(sound.sample_rate));
  feeder.finish();
  return writer.finish();
}

void save_sound(Context& ctx, const Sound& given, const SoundFormat& format, const SavePlace& place,
                const blocks::WorkflowText& workflow) {
  if (given.samples() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "audio: the sound has no samples. Make one that has.");
  const Sound sound =
      format.name == "opus" ? resampled(ctx, given, opus_rate(given.sample_rate)) : given;
  blocks::SavedFiles files(ctx, place.kind, place.prefix, {}, workflow.prompt);
  const Tags tags = workflow_tags(workflow);
  for (std::int64_t i = 0; i < sound.batch(); ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const Sound one{sound.waveform.slice(0, i, i + 1), sound.sample_rate};
    files.write(encoded(ctx, one, format, tags), ("." + format.name).c_str(),
                static_cast<std::size_t>(i), {.list = "audio"});
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(sound.batch()));
  }
}

template <class Node>
void save_as(Context& ctx, const SoundFormat& format) {
  const Value given = ctx[Node::audio];
  save_sound(ctx, sound_of(given, "audio"), format, {"output", ctx[Node::filename_prefix]},
             blocks::workflow_text<Node>(ctx));
  ctx[Node::out] = given;
}

SoundFormat chosen_sound_format(Context& ctx) {
  const Value given = ctx[SaveAudioAdvanced::format];
  const std::string name = given.is(HEDDLE_KIND_STR) ? given.as<std::string>() : "";
  const Value quality = extra_input(ctx, "format.quality");
  const std::string chosen = quality.is(HEDDLE_KIND_STR) ? quality.as<std::string>()
                             : name == "mp3"             ? "V0"
                                                         : "128k";
  if (name == "flac") return {name, ""};
  const char* const* const known = name == "mp3"    ? kMp3Qualities
                                   : name == "opus" ? kOpusQualities
                                                    : nullptr;
  if (known == nullptr)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "format: '" + name + "' is none that is written. Choose flac, mp3 or opus.");
  for (const char* const* each = known; *each != nullptr; ++each)
    if (chosen == *each) return {name, chosen};
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "format.quality: " + name + " has no quality '" + chosen + "'.");
}

}  // namespace

void SaveAudio::execute(Context& ctx) { save_as<SaveAudio>(ctx, {}); }
void SaveAudioMP3::execute(Context& ctx) { save_as<SaveAudioMP3>(ctx, {"mp3", ctx[quality]}); }
void SaveAudioOpus::execute(Context& ctx) { save_as<SaveAudioOpus>(ctx, {"opus", ctx[quality]}); }
void SaveAudioAdvanced::execute(Context& ctx) {
  save_as<SaveAudioAdvanced>(ctx, chosen_sound_format(ctx));
}

void PreviewAudio::execute(Context& ctx) {
  const Value given = ctx[audio];
  save_sound(ctx, sound_of(given, "audio"), {}, {"temp", blocks::preview_prefix()},
             blocks::workflow_text<PreviewAudio>(ctx));
  ctx[out] = given;
}

}  // namespace heddle::video
