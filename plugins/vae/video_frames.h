// Frames of pixels for models of videos, as ComfyUI's nodes make them: pictures resized from the
// middle, and grey where none are given; and what an autoencoder makes of them. One call's thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {

// Frames of pixels that a frame of the latent holds; the first holds one.
inline constexpr std::int64_t kFramesOfCell = 4;

// The latent of a video of so many pixels and frames: its frames, rows and columns.
struct VideoGrid {
  std::int64_t channels = 0, frames = 0, height = 0, width = 0;

  // (items, channels, frames, height, width)
  Shape shape(std::int64_t items) const { return {items, channels, frames, height, width}; }
  // Frames of pixels that it holds: those behind them are not encoded.
  std::int64_t pixel_frames() const { return 1 + (frames - 1) * kFramesOfCell; }
};
// Of an autoencoder that does not tell its channels it is 16. Throws where a side is less than a
// cell.
VideoGrid video_grid(const Autoencoder& autoencoder, std::int64_t width, std::int64_t height,
                     std::int64_t length);

// Frames of the latent that hold so many frames of pixels.
constexpr std::int64_t latent_frames_of(std::int64_t frames) {
  return frames < 1 ? 0 : (frames - 1) / kFramesOfCell + 1;
}

// (frames, height, width, 3) f32 in host memory, grey to begin with, for an autoencoder.
class FrameStrip {
 public:
  // Throws where the autoencoder's encoder knows single pictures alone and there are more frames.
  // method: how pictures are resized.
  FrameStrip(Context& ctx, const Value& vae, std::int64_t frames, const blocks::GridSize& size,
             blocks::Resampling method = blocks::Resampling::bilinear);

  // From now on pictures are resized as a whole, whatever their aspect.
  void stretch() { is_cut_ = false; }

  // All numbers of all frames.
  void fill(float number);

  // Puts pictures `first` to `first + count` of (B, H, W, 3 or more) at `at`, resized, as far as
  // there are frames. name: of the input, for errors.
  void put(const Tensor& pictures, const char* name, std::int64_t first, std::int64_t count,
           std::int64_t at);
  // Puts the first of the pictures into all frames from `at` on.
  void repeat(const Tensor& pictures, const char* name, std::int64_t at);

  // Keeps of each pixel a share, the rest is grey. shares: (frames, height, width), or nullptr,
  // which keeps all; what_is_left: what they leave is kept instead.
  void keep(const float* shares, bool what_is_left);
  // Each pixel of frame `at` times its share, (height, width).
  void shade(const float* shares, std::int64_t at);

  // (1, C, frames of the latent, h, w) f32 in the autoencoder's units.
  Tensor encoded() const;

 private:
  Context& ctx_;
  Value vae_;
  blocks::GridSize size_;
  blocks::Resampling method_;
  bool is_cut_ = true;
  Tensor pixels_;
};

// Numbers of an IMAGE's axes; throws where it is none, or has no picture.
Shape pictures_shape(const Shape& shape, const char* name);

// The calls of FrameStrip::encoded(), and what it takes besides.
void infer_encoded_video(Infer& question, const Value& vae, const VideoGrid& grid,
                         std::int64_t frames);

}  // namespace heddle::vae
