// plugins/denoisers/frame_pictures.h - the frames of a video as pictures that filters read. Used in
// blocks, as they are traced; any thread.
#pragma once

#include <heddle/ops.hpp>

#include "even_sides.h"

namespace heddle::denoisers {

// Each frame of a video (B, C, F, H, W) as a picture, channels last: (B F, H, W, C), of even sides.
inline Tensor pictures_of_frames(Context& ctx, const Tensor& video) {
  const std::int64_t items = video.size(0), channels = video.size(1), frames = video.size(2);
  const Tensor even =
      even_sides(ctx, video.reshape({items, channels * frames, video.size(3), video.size(4)}));
  const std::int64_t height = even.size(2), width = even.size(3);
  const Tensor pictures = ctx.make({items * frames, height, width, channels});
  ops::copy_into(ctx,
                 even.reshape({items, channels, frames, height, width}).permute({0, 2, 3, 4, 1}),
                 pictures.reshape({items, frames, height, width, channels}));
  return pictures;
}

}  // namespace heddle::denoisers
