#include "plugins/vae/wan_humo_node.h"

#include <algorithm>
#include <optional>

#include "plugins/vae/humo_windows.h"
#include "plugins/vae/sound_steps.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Humo = WanHuMoImageToVideo;

Value shown_latent(const Tensor& samples) {
  return Record().set("samples", value_of(samples)).value();
}
Shape reference_shape(const WanJob& job) {
  Shape frame = job.grid.shape(1);
  frame[2] = 1;
  return frame;
}
// Of an encoder as published.
Shape silent_windows(std::int64_t frames) {
  constexpr std::int64_t kWhisperWidth = 1280;
  return {1, frames, kHumoMoments, kHumoMeans, kWhisperWidth};
}
Tensor zeros_of(Context& ctx, const Shape& shape) {
  const Tensor zeros = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  return zeros;
}

}  // namespace

void WanHuMoImageToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Humo>(ctx);
  GivenFields fields, other;
  // The negative conditioning sees nothing and hears nothing.
  const Value none = shown_latent(zeros_of(ctx, reference_shape(job)));
  fields.appended.emplace_back(
      "reference_latents",
      ctx.has(ref_image)
          ? shown_latent(encoded_begin(ctx, ctx[vae], job, ctx[ref_image], "ref_image", 1))
          : none);
  other.appended.emplace_back("reference_latents", none);
  if (!ctx.has(heard)) {
    const Value silence = value_of(zeros_of(ctx, silent_windows(job.grid.frames)));
    fields.set.emplace_back("audio_embed", silence);
    other.set.emplace_back("audio_embed", silence);
  } else {
    const Value sound = ctx[heard];
    fields.set.emplace_back("audio_embed",
                            value_of(humo_windows(ctx, sound, job.grid.frames, false)));
    other.set.emplace_back("audio_embed",
                           value_of(humo_windows(ctx, sound, job.grid.frames, true)));
  }
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[negative_out] = with_video_fields(ctx[negative], other);
  ctx[latent] = empty_video(ctx, job.grid.shape(ctx[batch_size]));
}

void WanHuMoImageToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Humo>(question);
  if (!job) return;
  ToldFields told;
  told.reference = tensor_info(HEDDLE_F32, reference_shape(*job));
  told.heard = tensor_info(HEDDLE_F32, silent_windows(job->grid.frames));
  if (const auto shape = question.shape(ref_image); shape && shape->size() == 4)
    tell_encoded_begin(question, *question[vae], *shape, *job, 1);
  if (const auto states = question.shape(heard, kAllStates)) {
    const Shape windows = humo_shape(*states, job->grid.frames);
    if (windows.empty()) return;
    told.heard = tensor_info(HEDDLE_F32, windows);
    question.host_scratch(sizeof(float) * std::uint64_t(2 * count_of(*states)));
  }
  tell_wan<Humo>(question, *job, told);
}

}  // namespace heddle::vae
