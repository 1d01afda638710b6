#include "video_begin.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "host_latent.h"
#include "plugins/blocks/patched_model.h"
#include "vace_input.h"

namespace heddle::samplers {
namespace {

constexpr int kFramesOfVideo = 2;

bool is_begin_of(const Shape& frames, const Shape& latent) {
  return frames.size() == latent.size() && frames.size() == 5 && frames[0] == 1 &&
         frames[2] <= latent[2] && frames[1] == latent[1] && frames[3] == latent[3] &&
         frames[4] == latent[4];
}

}  // namespace

std::optional<VideoBegin> VideoBegin::of(Context& ctx, const Value& settings, const Shape& latent) {
  const Value patches = settings.field(blocks::kModelPatches);
  for (std::uint32_t i = 0; i < patches.count(); ++i) {
    const Value told = patches.item(i), begin = told.field("begin");
    if (!begin.is(HEDDLE_KIND_TENSOR)) continue;
    const Tensor given = begin.as<Tensor>();
    if (!is_begin_of(given.shape(), latent))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the model's patch has first frames of " + shape_text(given.shape()) +
                      ", which are none of the latent of " + shape_text(latent) +
                      ". Take model and latent from one WanInfiniteTalkToVideo.");
    VideoBegin made;
    const Tensor raw = ctx.make(given.shape(), HEDDLE_F32);
    ops::copy_into(ctx, given, raw);
    made.frames_ = ctx.make(given.shape(), HEDDLE_F32);
    to_model_units(ctx, raw, latent_format(settings), made.frames_);
    made.stays_ = told.get<bool>("begin_stays", false);
    return made;
  }
  return {};
}

Tensor VideoBegin::in(Context& ctx, const Tensor& point) const {
  const Tensor made = ctx.make(point.shape(), point.dtype());
  ops::copy_into(ctx, point, made);
  for (std::int64_t item = 0; item < made.size(0); ++item)
    ops::copy_into(ctx, frames_,
                   made.slice(0, item, item + 1).slice(kFramesOfVideo, 0, frames_.size(2)));
  return made;
}

}  // namespace heddle::samplers
