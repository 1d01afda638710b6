#include "plugins/video/read_video.h"

#include <algorithm>
#include <cstring>

#include "plugins/blocks/input_file.h"
#include "plugins/video/read_sound.h"

namespace heddle::video {
namespace {

constexpr std::int64_t kForever = INT64_MAX;

// The window in a stream's units of time.
struct PtsWindow {
  std::int64_t start = 0, end = kForever;
};
std::int64_t to_pts(double seconds, const AVStream& stream) {
  const double pts = seconds * stream.time_base.den / stream.time_base.num;
  constexpr double kMost = 4e18;
  return pts >= kMost ? kForever : pts <= 0 ? 0 : static_cast<std::int64_t>(pts);
}
PtsWindow pts_window(const Window& window, const AVStream& stream) {
  return {to_pts(window.start, stream),
          window.duration > 0 ? to_pts(window.start + window.duration, stream) : kForever};
}

std::int64_t pts_of(const AVFrame& frame) {
  if (frame.pts != AV_NOPTS_VALUE) return frame.pts;
  return frame.best_effort_timestamp != AV_NOPTS_VALUE ? frame.best_effort_timestamp : 0;
}

void check_picture_size(const MediaFile& file, std::int64_t width, std::int64_t height,
                        std::int64_t count) {
  const std::uint64_t most = file.limits().most_pixels;
  const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (width <= 0 || height <= 0) refuse_media(file.name(), "its pictures have " + size + ".");
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  if (pixels > most)
    refuse_media(file.name(),
                 "its pictures of " + size + " are more than the " + std::to_string(most) +
                     " that are read. Give a smaller video, or set HEDDLE_MOST_PIXELS to more.");
  if (static_cast<std::uint64_t>(count) > blocks::kMostWhole * most / pixels)
    refuse_media(file.name(), std::to_string(count) + " pictures of " + size +
                                  " are more than the " +
                                  std::to_string(blocks::kMostWhole * most) +
                                  " pixels that are read of one file. Cut it (Video Slice), or set "
                                  "HEDDLE_MOST_PIXELS to more.");
}

void keep_only(const MediaFile& file, const AVStream* one, const AVStream* other) {
  for (unsigned i = 0; i < file.raw()->nb_streams; ++i) {
    AVStream* const stream = file.raw()->streams[i];
    if (stream != one && stream != other) stream->discard = AVDISCARD_ALL;
  }
}

// Pictures side by side in one tensor, which grows when there are more than was thought.
class PictureStack {
 public:
  PictureStack(Context& ctx, std::int64_t expected) : ctx_(ctx), capacity_(expected) {}

  float* add(std::int64_t width, std::int64_t height) {
    if (!images_) images_ = ctx_.make_host({capacity_, height, width, 3}, HEDDLE_F32);
    const std::int64_t size = width * height * 3;
    if (count_ == capacity_) {
      const Tensor larger = ctx_.make_host({2 * capacity_, height, width, 3}, HEDDLE_F32);
      std::copy_n(images_.data<float>(), count_ * size, larger.data<float>());
      images_ = larger;
      capacity_ *= 2;
    }
    return images_.data<float>() + size * count_++;
  }
  std::int64_t count() const { return count_; }
  Tensor images() const { return images_.slice(0, 0, count_); }

 private:
  Context& ctx_;
  std::int64_t capacity_, count_ = 0;
  Tensor images_;
};

Rate rate_of(const AVStream& stream) {
  const AVRational rate = stream.avg_frame_rate;
  if (rate.num <= 0 || rate.den <= 0) return {};
  return {rate.num, rate.den};
}

double duration_of(const MediaFile& file, const AVStream& stream) {
  if (file.raw()->duration != AV_NOPTS_VALUE && file.raw()->duration > 0)
    return static_cast<double>(file.raw()->duration) / AV_TIME_BASE;
  if (stream.nb_frames <= 0 || stream.avg_frame_rate.num <= 0) return 0;
  return static_cast<double>(stream.nb_frames) / rate_of(stream).value();
}

}  // namespace

VideoFacts facts_of(const MediaFile& file, const std::optional<Crop>& crop) {
  const AVStream& stream = file.require_pictures();
  const AVCodecParameters& parameters = *stream.codecpar;
  const bool lies = quarter_turns(stream) % 2 == 1;
  VideoFacts facts{lies ? parameters.height : parameters.width,
                   lies ? parameters.width : parameters.height,
                   rate_of(stream),
                   duration_of(file, stream),
                   8,
                   "sRGB"};
  if (const auto cut = crop ? clip(*crop, facts.width, facts.height) : std::nullopt) {
    facts.width = cut->width;
    facts.height = cut->height;
  }
  const auto* const format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(parameters.format));
  if (format != nullptr) {
    facts.bit_depth = 0;
    for (int i = 0; i < format->nb_components; ++i)
      facts.bit_depth = std::max<std::int64_t>(facts.bit_depth, format->comp[i].depth);
  }
  if (parameters.color_trc == AVCOL_TRC_ARIB_STD_B67) facts.color_space = "HDR";
  if (parameters.color_trc == AVCOL_TRC_SMPTE2084) facts.color_space = "HDR PQ";
  return facts;
}

std::unique_ptr<MediaFile> open_video(const FileVideo& video) {
  const MediaLimits limits{blocks::most_pixels()};
  if (!video.path.empty())
    return std::make_unique<MediaFile>(file_source(video.path), video.path, limits);
  return std::make_unique<MediaFile>(memory_source(blocks::bytes_of(video.bytes)),
                                     "the encoded video", limits);
}

Window window_of(const FileVideo& video, const MediaFile& file) {
  double start = video.start_time;
  if (start < 0) start = std::max(0.0, duration_of(file, file.require_pictures()) + start);
  return {start, video.duration};
}

std::size_t decode_video(MediaFile& file, const Window& window, const VideoSink& sink) {
  AVStream& pictures = file.require_pictures();
  AVStream* const sound = sink.sound ? file.last_sound() : nullptr;
  check_picture_size(file, pictures.codecpar->width, pictures.codecpar->height, 1);
  keep_only(file, &pictures, sound);
  const PtsWindow pts = pts_window(window, pictures);
  if (pts.start != 0) file.seek(pictures, pts.start);
  Decoder picture_decoder(file, pictures);
  std::optional<Decoder> sound_decoder;
  if (sound != nullptr) sound_decoder.emplace(file, *sound);
  const auto take_picture = [&](AVFrame& frame) {
    if (pts_of(frame) < pts.start) return true;
    return pts_of(frame) < pts.end && sink.picture(frame);
  };
  bool more_pictures = true, more_sound = sound != nullptr;
  const Held<AVPacket> packet = held(av_packet_alloc());
  while ((more_pictures || more_sound) && file.next(*packet)) {
    sink.between();
    if (packet->stream_index == pictures.index && more_pictures)
      more_pictures = picture_decoder.decode(packet.get(), take_picture);
    else if (sound != nullptr && packet->stream_index == sound->index && more_sound)
      more_sound = sound_decoder->decode(packet.get(), sink.sound);
  }
  if (more_pictures) picture_decoder.decode(nullptr, take_picture);
  if (more_sound) sound_decoder->decode(nullptr, sink.sound);
  return picture_decoder.damaged() + (sound_decoder ? sound_decoder->damaged() : 0);
}

void require_readable(const MediaFile& file, PixelReader& pixels, const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  if (sws_isSupportedInput(format) == 0) {
    const char* const known = av_get_pix_fmt_name(format);
    refuse_media(file.name(), std::string("its pictures have the format ") +
                                  (known == nullptr ? "?" : known) +
                                  ", which is not read. Convert the file.");
  }
  if (!pixels.accepts(frame))
    refuse_media(file.name(), "its pictures change their size midway. Convert the file.");
}

std::int64_t count_pictures(MediaFile& file, const Window& window) {
  const AVStream& pictures = file.require_pictures();
  keep_only(file, &pictures, nullptr);
  const PtsWindow pts = pts_window(window, pictures);
  std::int64_t count = 0;
  const Held<AVPacket> packet = held(av_packet_alloc());
  while (file.next(*packet)) {
    if (packet->stream_index != pictures.index || packet->size == 0) continue;
    const std::int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    const bool is_shown = (packet->flags & AV_PKT_FLAG_DISCARD) == 0;
    if (is_shown && (time == AV_NOPTS_VALUE || (time >= pts.start && time < pts.end))) ++count;
  }
  return count;
}

Pictures read_pictures(Context& ctx, const FileVideo& video) {
  std::unique_ptr<MediaFile> file = open_video(video);
  const VideoFacts facts = facts_of(*file, video.crop);
  const Window window = window_of(video, *file);
  const std::int64_t expected = count_pictures(*file, window);
  file = open_video(video);
  const std::string name = file->name();
  AVStream& stream = file->require_pictures();
  HostMemory memory(ctx);
  PixelReader pixels(quarter_turns(stream), video.crop, PixelReader::Depth::f32);
  PictureStack stack(ctx, std::max<std::int64_t>(1, expected));
  std::optional<SoundReader> sound;
  if (const AVStream* const track = file->last_sound())
    sound.emplace(*file, *track, window.start, window.duration, memory);
  VideoSink sink;
  sink.picture = [&](AVFrame& frame) {
    check_picture_size(*file, frame.width, frame.height, std::max(expected, stack.count() + 1));
    require_readable(*file, pixels, frame);
    pixels.read(frame, stack.add(pixels.width(), pixels.height()));
    ctx.progress(std::min(1.0, static_cast<double>(stack.count()) /
                                   static_cast<double>(std::max<std::int64_t>(1, expected))));
    return true;
  };
  sink.sound = [&](AVFrame& frame) { return sound->take(frame); };
  sink.between = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  const std::size_t damaged = decode_video(*file, window, sink);
  if (stack.count() == 0)
    refuse_media(name, damaged > 0 || expected == 0
                           ? "no picture of this video can be decoded: it is damaged, ends early, "
                             "or has none in that time."
                           : "no picture of this video lies in that time.");
  if (damaged > 0)
    ctx.warn(name + ": " + std::to_string(damaged) + " damaged packets are left out.");
  Pictures pictures{stack.images(), std::nullopt, facts.rate, facts.bit_depth, facts.color_space};
  if (sound) pictures.sound = sound->sound(ctx);
  return pictures;
}

}  // namespace heddle::video
