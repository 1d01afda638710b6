#include "plugins/vae/ltxv_freeze_node.h"

#include <algorithm>

namespace heddle::vae {
namespace {

constexpr std::size_t kSoundRank = 4, kVideoRank = 5;

// A number for each frame, which is the third axis: (B, 1, T, 1), or (B, 1, T, 1, 1).
Shape frozen_mask_shape(const Shape& samples) {
  if (samples.size() != kSoundRank && samples.size() != kVideoRank)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: its samples have " + std::to_string(samples.size()) +
                    " axes. Link one of sound, which has 4, or of a video, which has 5.");
  Shape mask(samples.size(), 1);
  mask[0] = samples[0];
  mask[2] = samples[2];
  return mask;
}

}  // namespace

void LTXVFreezeLatent::execute(Context& ctx) {
  const Value given = ctx[latent], samples = given.field("samples");
  if (!samples.is(HEDDLE_KIND_TENSOR))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: it is no single tensor. Take those of pictures and sound apart "
                "(LTXVSeparateAVLatent), and join them behind this node.");
  const Tensor mask = ctx.make_host(frozen_mask_shape(samples.as<Tensor>().shape()), HEDDLE_F32);
  std::fill_n(mask.data<float>(), mask.count(), 0.0f);
  ctx[out] = Record(given).set("noise_mask", value_of(mask)).value();
}

void LTXVFreezeLatent::infer(Infer& question) {
  const auto samples = question.shape(latent, "samples");
  if (!samples) return;
  question.out(out, "samples", HEDDLE_F32, *samples);
  question.out(out, "noise_mask", HEDDLE_F32, frozen_mask_shape(*samples));
}

}  // namespace heddle::vae
