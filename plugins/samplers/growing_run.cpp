#include "growing_run.h"

#include <algorithm>
#include <optional>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "denoiser.h"
#include "noise_mask.h"
#include "preview.h"
#include "random.h"
#include "resize_latent.h"
#include "run_plan.h"
#include "sampler_loop.h"

namespace heddle::samplers {
namespace {

// ComfyUI draws from PyTorch's own generator, which has made the initial noise before.
Generator draws_after(const Noise& noise, const Latent& latent, HostMemory& memory) {
  Generator generator(noise.seed);
  if (!noise.add) return generator;
  std::size_t calls = 1, count = latent.values.size();
  if (!latent.batch_index.empty()) {  // a call for each item up to the last one that is wanted
    calls = std::size_t(*std::ranges::max_element(latent.batch_index)) + 1;
    count = latent.item_count();
  }
  std::pmr::vector<float> drawn(count, &memory);
  for (std::size_t i = 0; i < calls; ++i) generator.normal(drawn);
  return generator;
}

// A run at work.
class Growing {
 public:
  Growing(Context& ctx, const SampleJob& job, const ModelSampling& sampling, const RunPlan& run,
          HostMemory& memory)
      : ctx_(ctx),
        sampling_(sampling),
        run_(run),
        guide_(job.guide, sampling, false),
        growth_(*job.sampler.growth),
        seed_(job.noise.seed),
        memory_(memory),
        previews_(ctx, model_settings(job.guide.model)) {}

  void follow(Tensor x, Generator draws) {
    const std::vector<blocks::GridSize> sizes =
        growing_sizes(growth_, grids_of(x.shape()).size, run_.levels.size());
    const GrowingShapes shapes = growing_shapes(growth_, x.shape(), run_.levels.size());
    for (const SameSize& same : shapes.steps) {
      Denoiser denoiser(ctx_, guide_, sampling_, same.shape, run_.levels, false);
      denoiser.show({}, seed_);
      denoiser.open({run_.steps.begin() + std::ptrdiff_t(same.begin),
                     run_.steps.begin() + std::ptrdiff_t(same.end)});
      for (std::size_t i = same.begin; i < same.end; ++i) {
        if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
        denoised = denoiser(x, run_.levels[i]).denoised;
        x = i < sizes.size() ? resized(denoised, sizes[i]) : denoised;
        if (run_.levels[i + 1] > 0.0f) x = noised(x, run_.levels[i + 1], draws);
        show(i + 1);
      }
    }
    result = x;
  }

  Tensor result, denoised;

 private:
  Tensor resized(const Tensor& from, const blocks::GridSize& to) {
    std::pmr::vector<float> values(std::size_t(from.count()), &memory_);
    read_to<float>(ctx_, from, values);
    const Shape shape = resized_shape(from.shape(), to);
    std::pmr::vector<float> numbers(count_of(shape), &memory_);
    resize_latent(ctx_, values.data(), from.shape(), {growth_.method, to}, numbers.data(), memory_);
    return ctx_.upload(shape, HEDDLE_F32, numbers.data());
  }
  Tensor noised(const Tensor& x, double level, Generator& draws) {
    std::pmr::vector<float> numbers(std::size_t(x.count()), &memory_);
    draws.normal(numbers);
    const Tensor noise = ctx_.upload(x.shape(), HEDDLE_F32, numbers.data());
    return ops::combine(ctx_, {{1.0, x}, {level, noise}});
  }
  static std::size_t count_of(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t side : shape) count = checked_product({count, side}, "a latent");
    return std::size_t(count);
  }
  void show(std::size_t step) {
    const std::size_t count = run_.steps.size();
    ctx_.progress(double(step) / double(count));
    previews_.show(denoised, checked_cast<std::uint32_t>(step, "steps"),
                   checked_cast<std::uint32_t>(count, "steps"));
  }

  Context& ctx_;
  const ModelSampling& sampling_;
  const RunPlan& run_;
  const GuidePlan guide_;
  const Growth growth_;
  const std::uint64_t seed_;
  HostMemory& memory_;
  Previews previews_;
};

}  // namespace

std::vector<blocks::GridSize> growing_sizes(const Growth& growth, const blocks::GridSize& from,
                                            std::size_t level_count) {
  const auto levels = std::int64_t(level_count);
  const std::int64_t points = growth.steps < 0 ? std::max<std::int64_t>(levels / 2 + 1, 2)
                                               : std::min(growth.steps + 1, levels + 1);
  std::vector<blocks::GridSize> sizes;
  const double step = points > 1 ? (growth.scale - 1.0) / double(points - 1) : 0.0;
  for (std::int64_t k = 1; k < points && k < levels; ++k)
    sizes.push_back(size_by(from, k + 1 == points ? growth.scale : double(k) * step + 1.0));
  return sizes;
}

GrowingShapes growing_shapes(const Growth& growth, const Shape& latent, std::size_t level_count) {
  const std::vector<blocks::GridSize> sizes =
      growing_sizes(growth, grids_of(latent).size, level_count);
  GrowingShapes shapes{{}, latent};
  for (std::size_t i = 0; i + 1 < level_count; ++i) {
    if (shapes.steps.empty() || shapes.steps.back().shape != shapes.result)
      shapes.steps.push_back({i, i, shapes.result});
    shapes.steps.back().end = i + 1;
    if (i < sizes.size()) shapes.result = resized_shape(shapes.result, sizes[i]);
  }
  return shapes;
}

Sampled sample_growing(Context& ctx, const SampleJob& job) {
  const ModelSampling sampling = model_sampling(job.guide.model);
  HostMemory memory(ctx);
  const Latent latent =
      read_latent(ctx, job.latent, latent_format(model_settings(job.guide.model)), memory);
  const RunPlan run =
      plan_levels(sampler_named(job.sampler.name), job.sampler, job.sigmas, sampling);
  if (!latent.parts.empty())
    throw Error(HEDDLE_UNSUPPORTED,
                "latent_image: pictures with their sound cannot grow. Take another sampler.");
  if (has_noise_mask(latent))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent_image: it has a noise mask, which cannot grow with the picture. Leave out "
                "SetLatentNoiseMask, or take another sampler.");
  if (VideoBegin::of(ctx, model_settings(job.guide.model), latent.shape))
    throw Error(HEDDLE_UNSUPPORTED,
                "the model's first frames are known (WanInfiniteTalkToVideo), and they do not grow "
                "with the picture. Take another sampler.");
  const Tensor x = beginning_of(ctx, job.noise, latent, run.levels.front(), sampling,
                                model_settings(job.guide.model), memory)
                       .x;
  Growing growing(ctx, job, sampling, run, memory);
  growing.follow(x, draws_after(job.noise, latent, memory));
  const Tensor end =
      or_zeros(ctx, sum_of(ctx, {{run.end_scale, growing.result}}), growing.result.shape());
  const Value result = with_samples(ctx, latent, end);
  return {result, growing.denoised ? with_samples(ctx, latent, growing.denoised) : result};
}

}  // namespace heddle::samplers
