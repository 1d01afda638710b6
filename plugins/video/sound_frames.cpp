#include "plugins/video/sound_frames.h"

#include <algorithm>
#include <heddle/plugin.hpp>

namespace heddle::video {
namespace {

constexpr int kFrame = 1024;             // samples, where an encoder takes any number
constexpr std::size_t kPiece = 1 << 14;  // samples that are converted at a time

[[noreturn]] void refuse_sound(int code) {
  if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the sound cannot be converted for its encoder: " + error_text(code) + ".");
}

}  // namespace

SoundFeeder::SoundFeeder(StreamWriter& stream, std::vector<std::span<const float>> rows, int rate)
    : stream_(stream), rows_(std::move(rows)) {
  const AVCodecContext& codec = stream.codec();
  AVChannelLayout from{}, to{};
  if (av_channel_layout_copy(&to, &codec.ch_layout) < 0) throw std::bad_alloc();
  av_channel_layout_default(&from, static_cast<int>(rows_.size()));
  SwrContext* made = nullptr;
  int code = swr_alloc_set_opts2(&made, &to, codec.sample_fmt, codec.sample_rate, &from,
                                 AV_SAMPLE_FMT_FLTP, rate, 0, nullptr);
  resampler_.reset(made);
  av_channel_layout_uninit(&from);
  av_channel_layout_uninit(&to);
  if (code >= 0) code = swr_init(made);
  if (code < 0) refuse_sound(code);
}

// Puts the next piece into the resampler; after the last one, what it holds back.
void SoundFeeder::convert() {
  const std::size_t count = std::min(kPiece, rows_[0].size() - taken_);
  if (count == 0) {
    if (swr_convert(resampler_.get(), nullptr, 0, nullptr, 0) < 0) refuse_sound(AVERROR(EINVAL));
    is_drained_ = true;
    return;
  }
  std::vector<const std::uint8_t*> planes;
  for (const std::span<const float> row : rows_)
    planes.push_back(reinterpret_cast<const std::uint8_t*>(row.data() + taken_));
  const int code =
      swr_convert(resampler_.get(), nullptr, 0, planes.data(), static_cast<int>(count));
  if (code < 0) refuse_sound(code);
  taken_ += count;
}

// The next frame, full unless it is the last one; false when there is nothing left.
bool SoundFeeder::write_frame() {
  const AVCodecContext& codec = stream_.codec();
  const int wanted = codec.frame_size > 0 ? codec.frame_size : kFrame;
  const Held<AVFrame> frame = held(av_frame_alloc());
  frame->nb_samples = wanted;
  frame->format = codec.sample_fmt;
  frame->sample_rate = codec.sample_rate;
  if (av_channel_layout_copy(&frame->ch_layout, &codec.ch_layout) < 0 ||
      av_frame_get_buffer(frame.get(), 0) < 0)
    throw std::bad_alloc();
  const bool is_planar = av_sample_fmt_is_planar(codec.sample_fmt) != 0;
  const int planes = is_planar ? codec.ch_layout.nb_channels : 1;
  const int bytes =
      av_get_bytes_per_sample(codec.sample_fmt) * (is_planar ? 1 : codec.ch_layout.nb_channels);
  int filled = 0;
  while (filled < wanted) {
    std::vector<std::uint8_t*> to;
    for (int i = 0; i < planes; ++i)
      to.push_back(frame->extended_data[i] + std::ptrdiff_t{filled} * bytes);
    const int got = swr_convert(resampler_.get(), to.data(), wanted - filled, nullptr, 0);
    if (got < 0) refuse_sound(got);
    filled += got;
    if (got == 0 && is_drained_) break;
    if (filled < wanted && !is_drained_) convert();
  }
  if (filled == 0) return false;
  frame->nb_samples = filled;
  frame->pts = written_;
  written_ += filled;
  stream_.write(frame.get());
  return true;
}

void SoundFeeder::write_until(double seconds) {
  while (static_cast<double>(written_) < seconds * stream_.codec().sample_rate)
    if (!write_frame()) return;
}

void SoundFeeder::finish() {
  while (write_frame()) {
  }
  stream_.write(nullptr);
}

}  // namespace heddle::video
