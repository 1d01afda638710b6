#include "plugins/video/compression_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>

#include "plugins/video/encode_pictures.h"
#include "plugins/video/media_writer.h"
#include "plugins/video/read_video.h"

namespace heddle::video {
namespace {

Shape even_shape(const Shape& shape) { return {shape[0], shape[1] / 2 * 2, shape[2] / 2 * 2, 3}; }

// libx264 takes a crf of at most 51 for 8 bits.
VideoCoding one_picture(const Shape& shape, std::int64_t crf) {
  VideoCoding coding;
  coding.encoder = "libx264";
  coding.height = checked_cast<int>(shape[1], "height");
  coding.width = checked_cast<int>(shape[2], "width");
  coding.time_base = coding.frame_rate = {1, 1};
  coding.colours = {AVCOL_SPC_SMPTE170M, AVCOL_PRI_UNSPECIFIED, AVCOL_TRC_UNSPECIFIED};
  coding.options = {{"crf", std::to_string(std::min<std::int64_t>(crf, 51))},
                    {"preset", "veryfast"}};
  return coding;
}

// As PyAV converts pictures, but the same on every processor.
Held<AVFrame> converted_frame(const AVFrame& from, AVPixelFormat format) {
  Held<AVFrame> to = make_frame(from.width, from.height, format);
  const Held<SwsContext> scaler = held(
      sws_getContext(from.width, from.height, static_cast<AVPixelFormat>(from.format), from.width,
                     from.height, format, SWS_BILINEAR | SWS_BITEXACT, nullptr, nullptr, nullptr));
  if (!scaler || sws_scale(scaler.get(), from.data, from.linesize, 0, from.height, to->data,
                           to->linesize) != from.height)
    throw Error(HEDDLE_INTERNAL, "image: a picture could not be converted");
  return to;
}

std::string coded(Context& ctx, const Tensor& images, std::int64_t i, const VideoCoding& coding) {
  MediaWriter writer("mp4", {});
  StreamWriter video(writer, coding);
  writer.begin();
  const Held<AVFrame> rgb = make_frame(coding.width, coding.height, AV_PIX_FMT_RGB24);
  to_frame(ctx, images, i, *rgb);
  const Held<AVFrame> frame = converted_frame(*rgb, coding.format);
  frame->pts = 0;
  video.write(frame.get());
  video.write(nullptr);
  return writer.finish();
}

void decode_first(const std::string& bytes, float* to) {
  MediaFile file(memory_source({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}),
                 "the coded picture");
  VideoSink sink;
  sink.picture = [&](AVFrame& frame) {
    const Held<AVFrame> rgb = converted_frame(frame, AV_PIX_FMT_RGB24);
    for (int y = 0; y < frame.height; ++y) {
      const std::uint8_t* const row = rgb->data[0] + std::ptrdiff_t{y} * rgb->linesize[0];
      to = std::transform(row, row + 3 * std::ptrdiff_t{frame.width}, to,
                          [](std::uint8_t byte) { return float(byte) / 255.0f; });
    }
    return false;
  };
  decode_video(file, {}, sink);
}

}  // namespace

void LTXVPreprocess::execute(Context& ctx) {
  const Tensor images = ctx[image];
  const std::int64_t crf = ctx[img_compression];
  if (crf == 0) {
    ctx[out] = images;
    return;
  }
  const Shape given = images.shape();
  if (given.size() != 4 || given[1] < 2 || given[2] < 2 || given[3] < 3 || given[3] > 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: H.264 takes pictures (batch, height, width, 3 or 4 channels) of at least 2 "
                "x 2 pixels. Link an IMAGE.");
  const Shape shape = even_shape(given);
  const Tensor even = images.slice(1, 0, shape[1]).slice(2, 0, shape[2]);
  const Tensor result = ctx.make_host(shape, HEDDLE_F32);
  const VideoCoding coding = one_picture(shape, crf);
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    decode_first(coded(ctx, even, i, coding),
                 result.data<float>() + i * shape[1] * shape[2] * shape[3]);
    ctx.progress(double(i + 1) / double(shape[0]));
  }
  ctx[out] = result;
}

void LTXVPreprocess::infer(Infer& question) {
  const auto shape = question.shape(image);
  const auto crf = question[img_compression];
  if (!shape || shape->size() != 4 || !crf) return;
  question.out(out, "", HEDDLE_F32, *crf == 0 ? *shape : even_shape(*shape));
  if (*crf == 0) question.shares(out);
}

}  // namespace heddle::video
