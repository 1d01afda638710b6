#include "ltxv_guides.h"

#include <string>

#include <heddle/ops.hpp>

namespace heddle::denoisers {

void put_guides(Context& ctx, const Tensor& guides, const Tensor& ids, std::int64_t frames,
                bool in_middle) {
  const std::int64_t count = guides.size(0), each = ids.size(0) / frames;
  if (count > frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning tells of " + std::to_string(count) +
                                             " frames of guides, the latent has " +
                                             std::to_string(frames) +
                                             " in all. Link the latent of LTXVAddGuide.");
  const Tensor begins = ops::contiguous(ctx, guides.slice(1, 0, 1)),
               ends = ops::contiguous(ctx, guides.slice(1, 1, 2));
  const Tensor places = in_middle ? ops::combine(ctx, {{0.5, begins}, {0.5, ends}}) : begins;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t first = (frames - count + k) * each;
    const Tensor at = ids.slice(0, first, first + each).slice(1, 0, 1);
    ops::fill(ctx, at, 0);
    ops::add_into(ctx, at, places.slice(0, k, k + 1), at);
  }
}

}  // namespace heddle::denoisers
