#include "plugins/vae/wan_causal_node.h"

#include <algorithm>
#include <memory_resource>
#include <optional>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

constexpr const char* kFirstFrames = "first_frames";

Value model_begun_by(const Value& model, const Value& frames) {
  return with_settings(model, Record(model_settings(model)).set(kFirstFrames, frames).value());
}

}  // namespace

void ARVideoI2V::execute(Context& ctx) {
  const WanJob job = wan_job<ARVideoI2V>(ctx);
  const Tensor encoded = encoded_begin(ctx, ctx[vae], job, ctx[start_image], "start_image", 1);
  // In host memory: the run may be on another device.
  const Tensor frames = ctx.make_host(encoded.shape(), HEDDLE_F32);
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(encoded.count()), &memory);
  read_to<float>(ctx, encoded, numbers);
  std::ranges::copy(numbers, frames.data<float>());
  ctx[model_out] = model_begun_by(ctx[model], value_of(frames));
  ctx[latent] = empty_video(ctx, job.grid.shape(ctx[batch_size]));
}

void ARVideoI2V::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<ARVideoI2V>(question);
  if (!job) return;
  if (const auto items = question[batch_size])
    question.out(latent, "samples", HEDDLE_F32, job->grid.shape(*items));
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4)
    tell_encoded_begin(question, *question[vae], *shape, *job, 1);
  Shape frame = job->grid.shape(1);
  frame[2] = 1;
  if (const Value given = question.part(model, ""); given.is(HEDDLE_KIND_MODEL))
    question.known(model_out, "",
                   model_begun_by(given, blocks::told_info(tensor_info(HEDDLE_F32, frame))));
}

}  // namespace heddle::vae
