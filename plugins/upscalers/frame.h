// plugins/upscalers/frame.h - builds what stands before, between and behind the layers of upscalers
// that are transformers (frame_blocks.h), by the names that SwinIR, HAT and DAT share. Used while a
// family builds; nothing is kept.
#pragma once

#include <heddle/model.hpp>

#include "upscaler_shape.h"

namespace heddle::upscalers {

// Where a picture comes in.
struct FrameStart {
  Source image, hidden, tokens, pixels;
};
struct FrameStyle {
  std::int64_t window = 1;  // sides become multiples of it, in pixels that are not unshuffled
  std::int64_t unshuffle = 1;
  double range = 1;
  std::string norm;  // behind the first convolution; "": none
};

class Frame {
 public:
  Frame(const Checkpoint& file, Blocks& graph) : file_(file), graph_(graph) {}

  // The first convolution is "conv_first", or "conv_first.1" where that is unshuffled.
  FrameStart begin(const FrameStyle& style);
  // hidden through "<module>" (one convolution), "<module>.0", ".2" and ".4" (three), or none where
  // `may_lack`; plus base. norm: of what goes in; "": none.
  Source join(const std::string& path, const std::string& module, const std::string& norm,
              const Source& hidden, const Source& base, bool may_lack = false);
  // The enlarging, by what the file has: "conv_before_upsample", "upsample", "conv_up1"..,
  // "conv_hr", "conv_last". Adds the model's output and its settings.
  void end(const char* family, const FrameStyle& style, const FrameStart& start,
           const Source& hidden);

 private:
  Source shuffle(const Source& hidden, std::int64_t& scale);
  Source nearest(const Source& hidden, std::int64_t& scale);
  Source conv(const std::string& path, const std::string& module, const Source& hidden,
              double slope, std::int64_t scale = 1);
  bool has(const std::string& module) const { return file_.has(module + ".weight"); }

  const Checkpoint& file_;
  Blocks& graph_;
};

// The whole number whose square is n; 0 for none.
std::int64_t square_root(std::int64_t n);

}  // namespace heddle::upscalers
