#include "plugins/video/frame_pixels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <heddle/plugin.hpp>
#include <utility>

namespace heddle::video {
namespace {

// Chroma is interpolated as PyAV does it, which ComfyUI reads and writes video with. It is made of
// every pixel: FFmpeg would take two at a time else, and of an odd width one that is not there.
constexpr int kFlags =
    SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_ACCURATE_RND | SWS_BITEXACT;

bool is_full_range(const AVFrame& frame) {
  const AVPixFmtDescriptor* const format =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool is_j = format != nullptr && std::strncmp(format->name, "yuvj", 4) == 0;
  return is_j || frame.color_range == AVCOL_RANGE_JPEG;
}

void set_matrix(SwsContext& scaler, AVColorSpace matrix, bool from_full, bool to_full) {
  const int* const table = sws_getCoefficients(matrix);
  constexpr int kOne = 1 << 16;
  // Between formats of RGB there is nothing to set, and it says so.
  sws_setColorspaceDetails(&scaler, table, from_full ? 1 : 0, table, to_full ? 1 : 0, 0, kOne,
                           kOne);
}

// Where pixel (x, y) of the upright picture stands in one of that size.
struct Place {
  int x, y;
};
Place before_turning(int turns, Place at, int width, int height) {
  switch (turns) {
    case 1:  // against the clock: the right column becomes the first row
      return {width - 1 - at.y, at.x};
    case 2:
      return {width - 1 - at.x, height - 1 - at.y};
    case 3:
      return {at.y, height - 1 - at.x};
    default:
      return at;
  }
}

// Where samples of chroma stand, in 256ths of a pixel; pictures that do not say it leave that to
// FFmpeg.
struct ChromaPlace {
  int x = -513, y = -513;
};
ChromaPlace chroma_place(AVChromaLocation location, AVPixelFormat format) {
  const AVPixFmtDescriptor* const facts = av_pix_fmt_desc_get(format);
  if (facts == nullptr || location == AVCHROMA_LOC_UNSPECIFIED) return {};
  const bool is_left = location == AVCHROMA_LOC_LEFT || location == AVCHROMA_LOC_TOPLEFT ||
                       location == AVCHROMA_LOC_BOTTOMLEFT;
  const bool is_top = location == AVCHROMA_LOC_TOP || location == AVCHROMA_LOC_TOPLEFT;
  const bool is_bottom = location == AVCHROMA_LOC_BOTTOM || location == AVCHROMA_LOC_BOTTOMLEFT;
  ChromaPlace place;
  if (facts->log2_chroma_w > 0) place.x = is_left ? 0 : 128;
  if (facts->log2_chroma_h > 0) place.y = is_top ? 0 : is_bottom ? 256 : 128;
  return place;
}

struct Side {
  AVPixelFormat format;
  AVChromaLocation location;
};
// NULL for formats that cannot be converted.
Held<SwsContext> make_scaler(int width, int height, const Side& from, const Side& to) {
  Held<SwsContext> scaler = held(sws_alloc_context());
  const ChromaPlace source = chroma_place(from.location, from.format),
                    result = chroma_place(to.location, to.format);
  const std::pair<const char*, int> options[] = {
      {"srcw", width},
      {"srch", height},
      {"src_format", from.format},
      {"dstw", width},
      {"dsth", height},
      {"dst_format", to.format},
      {"sws_flags", kFlags},
      {"src_h_chr_pos", source.x},
      {"src_v_chr_pos", source.y},
      {"dst_h_chr_pos", result.x},
      {"dst_v_chr_pos", result.y},
  };
  for (const auto& [name, value] : options) av_opt_set_int(scaler.get(), name, value, 0);
  if (sws_init_context(scaler.get(), nullptr, nullptr) < 0) scaler.reset();
  return scaler;
}

void scale(SwsContext& scaler, const AVFrame& from, AVFrame& to) {
  const int rows =
      sws_scale(&scaler, from.data, from.linesize, 0, from.height, to.data, to.linesize);
  if (rows != to.height)
    throw Error(HEDDLE_INTERNAL, "a picture could not be converted: " + error_text(rows));
}

}  // namespace

std::optional<Crop> clip(const Crop& crop, std::int64_t width, std::int64_t height) {
  if (crop.width <= 0 || crop.height <= 0 || width <= 0 || height <= 0) return std::nullopt;
  const std::int64_t x = std::clamp<std::int64_t>(crop.x, 0, width - 1);
  const std::int64_t y = std::clamp<std::int64_t>(crop.y, 0, height - 1);
  return Crop{x, y, std::min(crop.width, width - x), std::min(crop.height, height - y)};
}

int quarter_turns(const AVStream& stream) {
  const auto* const matrix = reinterpret_cast<const std::int32_t*>(
      av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
  if (matrix == nullptr) return 0;
  const double degrees = av_display_rotation_get(matrix);
  if (std::isnan(degrees)) return 0;
  const int turns = static_cast<int>(std::nearbyint(degrees / 90));
  return (turns % 4 + 4) % 4;
}

Held<AVFrame> make_frame(int width, int height, AVPixelFormat format) {
  Held<AVFrame> frame = held(av_frame_alloc());
  frame->width = width;
  frame->height = height;
  frame->format = format;
  if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::bad_alloc();
  return frame;
}

bool PixelReader::accepts(const AVFrame& frame) {
  if (frame_width_ != 0) return frame.width == frame_width_ && frame.height == frame_height_;
  frame_width_ = frame.width;
  frame_height_ = frame.height;
  const bool lies = turns_ % 2 == 1;
  const Crop whole{0, 0, lies ? frame.height : frame.width, lies ? frame.width : frame.height};
  cut_ = (crop_ ? clip(*crop_, whole.width, whole.height) : std::nullopt).value_or(whole);
  return true;
}

AVPixelFormat PixelReader::target() const {
  return depth_ == Depth::u8    ? AV_PIX_FMT_RGB24
         : depth_ == Depth::u16 ? AV_PIX_FMT_RGB48
                                : AV_PIX_FMT_GBRPF32;
}

// The whole picture as it lies, in rgb_.
void PixelReader::convert(const AVFrame& frame) {
  const auto from = static_cast<AVPixelFormat>(frame.format);
  if (frame.format != from_format_) {
    const AVPixelFormat to = target();
    scaler_ = make_scaler(frame.width, frame.height, {from, frame.chroma_location},
                          {to, AVCHROMA_LOC_UNSPECIFIED});
    if (!scaler_)
      throw Error(HEDDLE_UNSUPPORTED, std::string("pictures of the format ") +
                                          av_get_pix_fmt_name(from) +
                                          " cannot be converted to RGB. Convert the file.");
    rgb_ = make_frame(frame.width, frame.height, to);
    from_format_ = frame.format;
  }
  set_matrix(*scaler_, frame.colorspace, is_full_range(frame), true);
  scale(*scaler_, frame, *rgb_);
}

void PixelReader::read(const AVFrame& frame, float* to) {
  convert(frame);
  constexpr int kPlanes[] = {2, 0, 1};  // of R, G, B
  for (std::int64_t y = 0; y < cut_.height; ++y)
    for (int c = 0; c < 3; ++c) {
      const auto [from, step] = row(y, kPlanes[c], sizeof(float));
      float* const line = to + y * cut_.width * 3 + c;
      for (std::int64_t x = 0; x < cut_.width; ++x)
        std::memcpy(line + 3 * x, from + x * step, sizeof(float));
    }
}

const AVFrame& PixelReader::read(const AVFrame& frame) {
  convert(frame);
  const Crop whole{0, 0, frame_width_, frame_height_};
  if (turns_ == 0 && cut_ == whole) return *rgb_;
  if (!upright_)
    upright_ = make_frame(static_cast<int>(cut_.width), static_cast<int>(cut_.height),
                          static_cast<AVPixelFormat>(rgb_->format));
  const int pixel = rgb_->format == AV_PIX_FMT_RGB48 ? 6 : 3;
  for (int y = 0; y < upright_->height; ++y) {
    const auto [from, step] = row(y, 0, pixel);
    std::uint8_t* const line = upright_->data[0] + y * std::ptrdiff_t{upright_->linesize[0]};
    for (int x = 0; x < upright_->width; ++x)
      std::memcpy(line + x * pixel, from + x * step, static_cast<std::size_t>(pixel));
  }
  return *upright_;
}

PixelReader::Row PixelReader::row(std::int64_t y, int plane, std::ptrdiff_t pixel) const {
  const auto offset = [&](std::int64_t x) {
    const Place at =
        before_turning(turns_, {static_cast<int>(cut_.x + x), static_cast<int>(cut_.y + y)},
                       frame_width_, frame_height_);
    return at.y * std::ptrdiff_t{rgb_->linesize[plane]} + at.x * pixel;
  };
  return {rgb_->data[plane] + offset(0), offset(1) - offset(0)};
}

PixelWriter::PixelWriter(int width, int height, AVPixelFormat from, AVPixelFormat to,
                         const Colours& colours)
    : colours_(colours),
      scaler_(make_scaler(width, height, {from, AVCHROMA_LOC_UNSPECIFIED}, {to, colours.location})),
      coded_(make_frame(width, height, to)) {
  if (!scaler_) throw std::bad_alloc();
  set_matrix(*scaler_, colours.matrix, true, false);
}

AVFrame& PixelWriter::write(const AVFrame& rgb) {
  // An encoder may still read the one before.
  if (av_frame_make_writable(coded_.get()) < 0) throw std::bad_alloc();
  scale(*scaler_, rgb, *coded_);
  coded_->colorspace = colours_.matrix;
  coded_->color_primaries = colours_.primaries;
  coded_->color_trc = colours_.transfer;
  coded_->color_range = AVCOL_RANGE_MPEG;
  coded_->chroma_location = colours_.location;
  return *coded_;
}

}  // namespace heddle::video
