// Which frames a part of a long video by Wan Animate has: those of the part before that it begins
// with, and those of the videos that it follows. One call's
// thread.
#pragma once

#include <algorithm>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {

// Where the parts of a video that goes on begin and end, in frames of pixels.
struct AnimatePart {
  std::int64_t length, first;  // first: of the videos that are followed
  std::int64_t continued;      // frames that are known
  std::int64_t trimmed;        // of them, as far as whole frames of the latent hold

  // most: pictures of those linked that are taken; continued_given: pictures that are linked, or 0.
  static AnimatePart of(std::int64_t length, std::int64_t offset, std::int64_t most,
                        std::int64_t continued_given) {
    const std::int64_t taken = std::min(continued_given, most);
    AnimatePart part{length, std::max<std::int64_t>(offset - taken, 0), std::min(taken, length), 0};
    const std::int64_t known = latent_frames_of(part.continued) * kFramesOfCell;
    part.trimmed = std::max<std::int64_t>(known - kFramesOfCell + 1, 0);
    return part;
  }
  // Of so many pictures, those that are followed.
  std::int64_t followed(std::int64_t pictures) const {
    return std::clamp<std::int64_t>(pictures - first, 0, length);
  }
};

inline std::int64_t picture_count(Context& ctx, const Input<Tensor>& port, const char* name) {
  return ctx.has(port) ? pictures_shape(ctx[port].shape(), name)[0] : 0;
}

// The latent of so many pictures that a part follows; the last one stays.
template <class Node>
Tensor encoded_poses(Context& ctx, const WanJob& job, const AnimatePart& part, std::int64_t count) {
  const Tensor poses = ctx[Node::pose_video];
  FrameStrip strip(ctx, ctx[Node::vae], job.grid.pixel_frames(), job.pixels,
                   blocks::Resampling::area);
  strip.put(poses, "pose_video", part.first, count, 0);
  const std::int64_t last = part.first + count - 1;
  strip.repeat(poses.slice(0, last, last + 1), "pose_video", count);
  return strip.encoded();
}

}  // namespace heddle::vae
