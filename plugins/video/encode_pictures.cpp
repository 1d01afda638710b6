#include "plugins/video/encode_pictures.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <heddle/checked.hpp>
#include <heddle/parts.hpp>

#include "plugins/video/sound_frames.h"

namespace heddle::video {
namespace {

constexpr double kH264Crf = 23, kAv1Crf = 30;

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// One number of a picture; what is none becomes black.
template <class T>
std::size_t put_row(const float* from, std::int64_t pixels, std::int64_t channels,
                    std::int64_t kept, std::uint8_t* to) {
  constexpr float kMost = std::numeric_limits<T>::max();
  std::size_t nan_count = 0;
  for (std::int64_t x = 0; x < pixels; ++x)
    for (std::int64_t c = 0; c < kept; ++c) {
      const float value = from[x * channels + c];
      nan_count += std::isnan(value) ? 1 : 0;
      const float scaled = std::isnan(value) ? 0.0f : std::clamp(value * kMost, 0.0f, kMost);
      const auto whole = static_cast<T>(scaled);
      std::memcpy(to + (x * kept + c) * sizeof whole, &whole, sizeof whole);
    }
  return nan_count;
}

AVRational to_av(const Rate& rate) {
  return {checked_cast<int>(rate.numerator, "frame rate"),
          checked_cast<int>(rate.denominator, "frame rate")};
}

void check_even(const std::string& codec, std::int64_t width, std::int64_t height) {
  if (width % 2 == 0 && height % 2 == 0) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              codec + " has pictures of even sizes, these are " + std::to_string(width) + " x " +
                  std::to_string(height) +
                  ". Scale or crop them to even sizes, or save AV1 or VP9 in WebM.");
}

}  // namespace

std::string av1_encoder(std::int64_t width, std::int64_t height) {
  const bool fits = width % 2 == 0 && height % 2 == 0 && width >= 64 && height >= 64;
  return fits && avcodec_find_encoder_by_name("libsvtav1") != nullptr ? "libsvtav1" : "libaom-av1";
}

Colours colours_of(const std::string& color_space, const std::string& encoder) {
  Colours colours;
  if (color_space == "HDR")
    colours = {AVCOL_SPC_BT2020_NCL, AVCOL_PRI_BT2020, AVCOL_TRC_ARIB_STD_B67};
  if (color_space == "HDR PQ")
    colours = {AVCOL_SPC_BT2020_NCL, AVCOL_PRI_BT2020, AVCOL_TRC_SMPTE2084};
  // Where H.264 has it; other decoders do not ask.
  if (encoder == "libx264") colours.location = AVCHROMA_LOC_LEFT;
  return colours;
}

const char* container_name(const std::string& container) {
  return container == "mkv" ? "matroska" : container == "webm" ? "webm" : "mp4";
}

VideoCoding video_coding(const VideoFormat& format, std::int64_t width, std::int64_t height,
                         std::int64_t bit_depth) {
  const bool is_av1 =
      format.codec == "av1" || (format.codec == "auto" && format.container == "webm");
  VideoCoding coding;
  coding.width = checked_cast<int>(width, "width");
  coding.height = checked_cast<int>(height, "height");
  coding.format = bit_depth >= 10 ? AV_PIX_FMT_YUV420P10 : AV_PIX_FMT_YUV420P;
  const std::string crf = short_number(format.crf.value_or(is_av1 ? kAv1Crf : kH264Crf));
  if (!is_av1) {
    check_even("H.264", width, height);
    coding.encoder = "libx264";
    coding.options = {{"crf", crf}};
    if (!format.preset.empty()) coding.options.emplace_back("preset", format.preset);
  } else if ((coding.encoder = av1_encoder(width, height)) == "libaom-av1") {
    coding.options = {{"crf", crf}, {"cpu-used", "6"}};
  } else if (format.crf == 0.0) {
    coding.options = {{"svtav1-params", "lossless=1"}};
  } else {
    coding.options = {{"crf", crf}};
  }
  return coding;
}

SoundCoding sound_coding(const VideoFormat& format, const Sound& sound) {
  const bool is_webm = format.container == "webm";
  return {is_webm ? "libopus" : "aac", is_webm ? 48000 : static_cast<int>(sound.sample_rate),
          checked_cast<int>(sound.channels(), "channels"), 0, -1};
}

void to_frame(Context& ctx, const Tensor& images, std::int64_t i, AVFrame& rgb) {
  await_rows(ctx, images, i + 1);
  const HostFloats values(ctx, images.slice(0, i, i + 1));
  if (av_frame_make_writable(&rgb) < 0) throw std::bad_alloc();
  const std::int64_t width = images.size(2), channels = images.size(3);
  const std::int64_t kept = rgb.format == AV_PIX_FMT_RGBA ? 4 : 3;
  std::size_t nan_count = 0;
  for (std::int64_t y = 0; y < images.size(1); ++y) {
    const float* const from = values.data() + y * width * channels;
    std::uint8_t* const to = rgb.data[0] + y * rgb.linesize[0];
    nan_count += rgb.format == AV_PIX_FMT_RGB48
                     ? put_row<std::uint16_t>(from, width, channels, kept, to)
                     : put_row<std::uint8_t>(from, width, channels, kept, to);
  }
  if (nan_count > 0)
    ctx.warn("picture " + std::to_string(i) + ": " + std::to_string(nan_count) +
             " values are not numbers and become black.");
}

SoundRows::SoundRows(Context& ctx, const Sound& sound, std::int64_t most)
    : samples_(ctx, sound.waveform.slice(0, 0, 1)) {
  const std::int64_t kept = std::min(most, sound.samples());
  for (std::int64_t c = 0; c < sound.channels(); ++c)
    rows_.emplace_back(samples_.data() + c * sound.samples(), static_cast<std::size_t>(kept));
}

std::string encode_pictures(Context& ctx, const Pictures& pictures, const VideoFormat& format,
                            const Tags& tags) {
  const Tensor& images = pictures.images;
  const std::int64_t count = images.size(0), width = images.size(2), height = images.size(1);
  const Rate rate = rate_in_thousandths(pictures.rate);
  VideoCoding coding = video_coding(format, width, height, pictures.bit_depth);
  coding.colours = colours_of(pictures.color_space, coding.encoder);
  coding.frame_rate = to_av(rate);
  coding.time_base = av_inv_q(coding.frame_rate);
  MediaWriter writer(container_name(format.container), tags);
  StreamWriter video(writer, coding);
  std::optional<StreamWriter> track;
  if (pictures.sound) track.emplace(writer, sound_coding(format, *pictures.sound));
  writer.begin();
  std::optional<SoundRows> rows;
  std::optional<SoundFeeder> sound;
  if (pictures.sound) {
    const double most = std::ceil(static_cast<double>(pictures.sound->sample_rate) *
                                  static_cast<double>(count) / rate.value());
    rows.emplace(ctx, *pictures.sound, checked_cast<std::int64_t>(most, "samples"));
    sound.emplace(*track, rows->rows(), static_cast<int>(pictures.sound->sample_rate));
  }
  const AVPixelFormat packed = pictures.bit_depth >= 10 ? AV_PIX_FMT_RGB48 : AV_PIX_FMT_RGB24;
  const Held<AVFrame> rgb = make_frame(coding.width, coding.height, packed);
  PixelWriter pixels(coding.width, coding.height, packed, coding.format, coding.colours);
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    to_frame(ctx, images, i, *rgb);
    AVFrame& coded = pixels.write(*rgb);
    coded.pts = i;
    video.write(&coded);
    if (sound) sound->write_until(static_cast<double>(i + 1) / rate.value());
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
  video.write(nullptr);
  if (sound) sound->finish();
  return writer.finish();
}

std::string write_webm(Context& ctx, const Tensor& images, const Rate& rate,
                       const std::string& codec, double crf, const Tags& tags) {
  const std::int64_t count = images.size(0);
  const bool has_alpha = images.size(3) == 4 && codec == "vp9";
  VideoCoding coding;
  coding.width = checked_cast<int>(images.size(2), "width");
  coding.height = checked_cast<int>(images.size(1), "height");
  coding.encoder = codec == "vp9" ? "libvpx-vp9" : av1_encoder(coding.width, coding.height);
  coding.format = has_alpha        ? AV_PIX_FMT_YUVA420P
                  : codec == "vp9" ? AV_PIX_FMT_YUV420P
                                   : AV_PIX_FMT_YUV420P10;
  coding.frame_rate = to_av(rate_in_thousandths(rate));
  coding.time_base = av_inv_q(coding.frame_rate);
  coding.colours = {AVCOL_SPC_SMPTE170M, AVCOL_PRI_UNSPECIFIED, AVCOL_TRC_UNSPECIFIED};
  coding.options = {{"crf", short_number(crf)}};
  if (coding.encoder == "libsvtav1") coding.options.emplace_back("preset", "6");
  if (coding.encoder == "libaom-av1") coding.options.emplace_back("cpu-used", "6");
  MediaWriter writer("webm", tags);
  StreamWriter video(writer, coding);
  writer.begin();
  const AVPixelFormat packed = has_alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
  const Held<AVFrame> rgb = make_frame(coding.width, coding.height, packed);
  PixelWriter pixels(coding.width, coding.height, packed, coding.format, coding.colours);
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    to_frame(ctx, images, i, *rgb);
    AVFrame& coded = pixels.write(*rgb);
    coded.pts = i;
    video.write(&coded);
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
  video.write(nullptr);
  return writer.finish();
}

}  // namespace heddle::video
