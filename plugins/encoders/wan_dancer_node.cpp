#include "wan_dancer_node.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include <heddle/host_memory.hpp>

#include "music_beats.h"
#include "music_chroma.h"
#include "music_spectrum.h"
#include "plugins/blocks/sound_resample.h"

namespace heddle::encoders {
namespace {

using Measuring = WanDancerEncodeAudio;

constexpr std::int64_t kMomentsOfSecond = 30, kMeasuredRate = kMomentsOfSecond * kMusicHop,
                       kMeasured = 1 + kCepstrum + kNotes + 2;
constexpr double kQuietest = 80;  // decibels below the loudest
// Shorter sounds have no tempo of their own.
constexpr std::int64_t kLeastPoints = 10 * kMusicHop, kLeastRate = 2;

// Frames a second of a video as long as so many moments; none: it would have twice as many frames
// as there are moments, or more.
std::optional<double> frame_rate(std::int64_t moments, std::int64_t frames) {
  const auto each = std::int64_t(double(moments) / double(frames) + 0.5);
  if (each < 1) return {};
  return double(kMomentsOfSecond) / double(each);
}

// As the publishers' texts end.
std::string words_of(double rate) {
  if (std::int64_t(rate + 0.5) == kMomentsOfSecond) return ", 帧率是30fps。";
  char number[32];
  std::snprintf(number, sizeof number, "%.4f", rate);
  return std::string(" 帧率是") + number;
}

std::int64_t moments_of(std::int64_t points, std::int64_t rate) {
  return music_frames(blocks::resampled_count(points, rate, kMeasuredRate));
}

// The mean of the first item's channels.
std::pmr::vector<float> one_channel(Context& ctx, const Tensor& waveform, HostMemory& memory) {
  const std::int64_t channels = waveform.size(1), points = waveform.size(2);
  const HostFloats given(ctx, waveform.slice(0, 0, 1));
  std::pmr::vector<float> mean(std::size_t(points), &memory);
  for (std::int64_t i = 0; i < points; ++i) {
    double sum = 0;
    for (std::int64_t channel = 0; channel < channels; ++channel)
      sum += given.data()[channel * points + i];
    mean[std::size_t(i)] = float(sum / double(channels));
  }
  return mean;
}

// (1, T, kMeasured) of a sound of kMeasuredRate points a second. start: its likely tempo.
Tensor measured(const MusicWork& work, std::span<const float> sound, double start) {
  const std::int64_t moments = music_frames(std::int64_t(sound.size()));
  MusicNumbers levels = loudness(work, sound, std::int64_t(kMusicRate));
  const double least = std::ranges::max(levels) - kQuietest;
  for (double& level : levels) level = std::max(level, least);
  const MusicNumbers envelope = rises(work, levels), timbre = cepstrum(work, levels),
                     notes = chroma_of(work, sound), onsets = onsets_of(work, envelope),
                     beats = beats_of(work, envelope, tempo_of(work, envelope, kMusicRate, start));
  const Tensor made = work.ctx.make_host({1, moments, kMeasured}, HEDDLE_F32);
  float* to = made.data<float>();
  const auto put = [&](const MusicNumbers& numbers, std::int64_t moment, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k)
      *to++ = float(numbers[std::size_t(moment * count + k)]);
  };
  for (std::int64_t moment = 0; moment < moments; ++moment) {
    put(envelope, moment, 1);
    put(timbre, moment, kCepstrum);
    put(notes, moment, kNotes);
    put(onsets, moment, 1);
    put(beats, moment, 1);
  }
  return made;
}

}  // namespace

void WanDancerEncodeAudio::execute(Context& ctx) {
  const Value given = ctx[audio];
  const Tensor waveform = given.get<Tensor>("waveform", {});
  const auto rate = given.get<std::int64_t>("sample_rate", 0);
  if (!waveform || waveform.rank() != 3 || waveform.count() == 0 || rate < kLeastRate)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: this is no sound of (batch, channels, points) with a sample_rate, or it "
                "has no points. Link an AUDIO, such as that of LoadAudio; parts behind the end of "
                "a music, which WanDancerPadKeyframesList gives where num_segments is too large, "
                "have none.");
  const std::int64_t moments = moments_of(waveform.size(2), rate), frames = ctx[video_frames];
  const std::optional<double> fps = frame_rate(moments, frames);
  if (!fps)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: the music has " + std::to_string(moments) +
                    " moments, 30 a second, and video_frames is " + std::to_string(frames) +
                    ": a video of 30 frames a second would be more than twice as long. Give a "
                    "longer music, or fewer video_frames.");
  HostMemory memory(ctx);
  const MusicWork work{ctx, &memory};
  double start = kUsualTempo;
  std::pmr::vector<float> sound(&memory);
  {
    const std::pmr::vector<float> mean = one_channel(ctx, waveform, memory);
    if (std::int64_t(mean.size()) >= kLeastPoints)
      start = tempo_of(work, rises(work, loudness(work, mean, rate)), double(rate), kUsualTempo);
    sound.resize(
        std::size_t(blocks::resampled_count(std::int64_t(mean.size()), rate, kMeasuredRate)));
    blocks::resample_sound(mean, rate, kMeasuredRate, sound);
  }
  ctx[heard] = Record()
                   .set("audio_feature", value_of(measured(work, sound, start)))
                   .set("fps", value_of(*fps))
                   .set("audio_inject_scale", value_of(double(ctx[audio_inject_scale])))
                   .value();
  ctx[fps_string] = words_of(*fps);
}

void WanDancerEncodeAudio::infer(Infer& question) {
  const auto shape = question.shape(audio, "waveform");
  const Value rate = question.part(audio, "sample_rate");
  const auto frames = question[video_frames];
  const auto scale = question[audio_inject_scale];
  if (scale) question.known(heard, "audio_inject_scale", value_of(double(*scale)));
  if (!shape || shape->size() != 3 || (*shape)[2] < 1 || !rate ||
      rate.as<std::int64_t>() < kLeastRate)
    return;
  const std::int64_t points = (*shape)[2], from = rate.as<std::int64_t>(),
                     moments = moments_of(points, from),
                     measured_points = blocks::resampled_count(points, from, kMeasuredRate);
  // What is held while the given sound's loudness is, or while what it becomes is measured; and the
  // butterflies of a transform for each frame, of seven octaves, too.
  constexpr std::int64_t kOfMoment =
      kMusicBands + kCepstrum + kOctaves * kNoteSteps + 2 * kNotes + 8;
  const std::int64_t given = 4 * ((*shape)[1] + 1) * points,
                     before = given + 8 * music_frames(points) * (kMusicBands + 2),
                     behind = 4 * 3 * measured_points + 8 * moments * kOfMoment;
  question.host_scratch(std::uint64_t(given + std::max(before, behind)));
  constexpr double kOfTransform = 5.0 * 2048 * 11, kTransforms = 1 + kOctaves;
  question.cost(kOfTransform * (2 * double(music_frames(points)) + kTransforms * double(moments)),
                double(given));
  question.out(heard, "audio_feature", HEDDLE_F32, {1, moments, kMeasured});
  if (!frames) return;
  if (const std::optional<double> fps = frame_rate(moments, *frames)) {
    question.known(heard, "fps", value_of(*fps));
    question.known(fps_string, "", value_of(words_of(*fps)));
  }
}

}  // namespace heddle::encoders
