#include "plugins/video/read_sound.h"

#include <algorithm>

namespace heddle::video {
namespace {

constexpr int kMostChannels = 64;

bool has_rate(const AVFrame& frame) { return frame.sample_rate > 0 && frame.sample_rate < 1 << 24; }

}  // namespace

SoundReader::SoundReader(const MediaFile& file, const AVStream& stream, double start,
                         double duration, std::pmr::memory_resource& memory)
    : file_(file),
      time_base_(stream.time_base),
      start_(start),
      duration_(duration),
      memory_(memory),
      planar_(held(av_frame_alloc())) {}

// FFmpeg's resampler only changes the format of numbers here.
void SoundReader::set_up(AVFrame& frame) {
  const int channels = frame.ch_layout.nb_channels;
  if (!has_rate(frame) || channels < 1 || channels > kMostChannels)
    refuse_media(file_.name(), "its sound has " + std::to_string(channels) + " channels at " +
                                   std::to_string(frame.sample_rate) + " Hz, which is not read.");
  rate_ = frame.sample_rate;
  SwrContext* made = nullptr;
  const int code =
      swr_alloc_set_opts2(&made, &frame.ch_layout, AV_SAMPLE_FMT_FLTP, rate_, &frame.ch_layout,
                          static_cast<AVSampleFormat>(frame.format), rate_, 0, nullptr);
  resampler_.reset(made);
  if (code < 0 || swr_init(made) < 0)
    refuse_media(file_.name(), "its sound cannot be converted: " + error_text(code) + ".");
  for (int i = 0; i < channels; ++i) channels_.emplace_back(&memory_);
}

// Samples of the frame that lie before the start.
std::int64_t SoundReader::skipped(const AVFrame& frame) const {
  if (frame.pts == AV_NOPTS_VALUE) return 0;
  const double seconds = start_ - static_cast<double>(frame.pts) * av_q2d(time_base_);
  const double samples = seconds * rate_;
  if (!(samples >= 1)) return 0;
  return samples >= frame.nb_samples ? frame.nb_samples : static_cast<std::int64_t>(samples);
}

bool SoundReader::take(AVFrame& frame) {
  const bool has_time = frame.pts != AV_NOPTS_VALUE;
  const double time = has_time ? static_cast<double>(frame.pts) * av_q2d(time_base_) : 0;
  if (duration_ > 0 && has_time && time > start_ + duration_) return false;
  // Files of few channels may not say what they are for; the resampler takes them for the usual
  // ones.
  if (frame.ch_layout.order == AV_CHANNEL_ORDER_UNSPEC)
    av_channel_layout_default(&frame.ch_layout, frame.ch_layout.nb_channels);
  if (!resampler_) set_up(frame);
  const auto count = static_cast<int>(channels_.size());
  if (frame.sample_rate != rate_ || frame.ch_layout.nb_channels != count)
    refuse_media(file_.name(),
                 "its sound changes its rate or its channels midway. Convert the file.");
  const std::int64_t skip = has_begun_ ? 0 : skipped(frame);
  if (skip >= frame.nb_samples) return true;
  has_begun_ = true;
  av_frame_unref(planar_.get());
  planar_->format = AV_SAMPLE_FMT_FLTP;
  planar_->sample_rate = rate_;
  av_channel_layout_copy(&planar_->ch_layout, &frame.ch_layout);
  if (const int code = swr_convert_frame(resampler_.get(), planar_.get(), &frame); code < 0)
    refuse_media(file_.name(), "its sound cannot be converted: " + error_text(code) + ".");
  const std::uint64_t most = blocks::kMostWhole * file_.limits().most_pixels;
  if ((channels_[0].size() + static_cast<std::uint64_t>(planar_->nb_samples)) * channels_.size() >
      most)
    refuse_media(file_.name(), "its sound has more than the " + std::to_string(most) +
                                   " samples that are read. Set HEDDLE_MOST_PIXELS to more.");
  for (int c = 0; c < count; ++c) {
    const auto* const from = reinterpret_cast<const float*>(planar_->extended_data[c]);
    auto& to = channels_[static_cast<std::size_t>(c)];
    to.insert(to.end(), from + std::min<std::int64_t>(skip, planar_->nb_samples),
              from + planar_->nb_samples);
  }
  return true;
}

std::optional<Sound> SoundReader::sound(Context& ctx) const {
  if (channels_.empty()) return std::nullopt;
  auto samples = static_cast<std::int64_t>(channels_[0].size());
  if (duration_ > 0 && duration_ * rate_ < static_cast<double>(samples))
    samples = static_cast<std::int64_t>(duration_ * rate_);
  if (samples == 0) return std::nullopt;
  const auto count = static_cast<std::int64_t>(channels_.size());
  Sound sound{ctx.make_host({1, count, samples}, HEDDLE_F32), rate_};
  for (std::int64_t c = 0; c < count; ++c)
    std::copy_n(channels_[static_cast<std::size_t>(c)].data(), samples,
                sound.waveform.data<float>() + c * samples);
  return sound;
}

Sound read_sound(Context& ctx, const std::string& path) {
  MediaFile file(file_source(path), path, {blocks::most_pixels()});
  AVStream& stream = file.require_sound();
  for (unsigned i = 0; i < file.raw()->nb_streams; ++i)
    if (file.raw()->streams[i] != &stream) file.raw()->streams[i]->discard = AVDISCARD_ALL;
  Decoder decoder(file, stream);
  HostMemory memory(ctx);
  SoundReader reader(file, stream, 0, 0, memory);
  const Held<AVPacket> packet = held(av_packet_alloc());
  const auto take = [&](AVFrame& frame) { return reader.take(frame); };
  while (file.next(*packet)) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    if (packet->stream_index == stream.index) decoder.decode(packet.get(), take);
  }
  decoder.decode(nullptr, take);
  std::optional<Sound> sound = reader.sound(ctx);
  if (!sound) refuse_media(path, "no sound could be decoded: the file is damaged or ends early.");
  if (decoder.damaged() > 0)
    ctx.warn(path + ": " + std::to_string(decoder.damaged()) +
             " damaged packets of sound are left out.");
  return *std::move(sound);
}

}  // namespace heddle::video
