// Pictures of video between FFmpeg's formats and RGB. Numbers come out as PyAV gives them to
// ComfyUI (to_ndarray("gbrpf32le")), the same whatever the processor. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "plugins/video/ffmpeg.h"

namespace heddle::video {

struct Crop {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Crop&) const = default;
};

// The part of a crop that lies within a picture, or nothing when it is empty: sizes of 0 or below
// mean the whole picture; the corner is moved into it first, as ComfyUI does.
std::optional<Crop> clip(const Crop& crop, std::int64_t width, std::int64_t height);

// Quarter turns against the clock in which a stream is shown, 0 to 3.
int quarter_turns(const AVStream& stream);

// Pictures of a stream as RGB, upright and cropped. They all have the size of the first one.
class PixelReader {
 public:
  enum class Depth { f32, u16, u8 };

  // turns: as quarter_turns(); crop: of the upright picture.
  PixelReader(int turns, const std::optional<Crop>& crop, Depth depth)
      : turns_(turns), crop_(crop), depth_(depth) {}

  // The size that results have; known with the first picture.
  std::int64_t width() const { return cut_.width; }
  std::int64_t height() const { return cut_.height; }

  // Sets up for such pictures. False when it has another size than the one before.
  bool accepts(const AVFrame& frame);
  // Writes height x width x 3 numbers from 0 to 1, row-major. REQUIRES: accepts(frame), f32.
  void read(const AVFrame& frame, float* to);
  // A picture of packed RGB (rgb48, rgb24), valid until the next one. REQUIRES: accepts(frame), u16
  // or u8.
  const AVFrame& read(const AVFrame& frame);

 private:
  // A row of the result, where it stands in the picture as it lies: its first pixel, and the bytes
  // from one to the next.
  struct Row {
    const std::uint8_t* first;
    std::ptrdiff_t step;
  };
  Row row(std::int64_t y, int plane, std::ptrdiff_t pixel) const;
  void convert(const AVFrame& frame);
  AVPixelFormat target() const;

  const int turns_;
  const std::optional<Crop> crop_;
  const Depth depth_;
  int frame_width_ = 0, frame_height_ = 0;
  Crop cut_;
  int from_format_ = AV_PIX_FMT_NONE;
  Held<SwsContext> scaler_;
  Held<AVFrame> rgb_, upright_;
};

// Colours as they are coded in a file.
struct Colours {
  AVColorSpace matrix = AVCOL_SPC_BT709;
  AVColorPrimaries primaries = AVCOL_PRI_BT709;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_IEC61966_2_1;
  AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
};

// RGB of 8 or 16 bits to a format that an encoder takes (4:2:0, limited range).
class PixelWriter {
 public:
  // from: AV_PIX_FMT_RGB24, RGBA or RGB48.
  PixelWriter(int width, int height, AVPixelFormat from, AVPixelFormat to, const Colours& colours);
  // Valid until the next one.
  AVFrame& write(const AVFrame& rgb);

 private:
  Colours colours_;
  Held<SwsContext> scaler_;
  Held<AVFrame> coded_;
};

// A new frame with room for its pixels.
Held<AVFrame> make_frame(int width, int height, AVPixelFormat format);

}  // namespace heddle::video
