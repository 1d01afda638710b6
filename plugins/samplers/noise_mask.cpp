#include "noise_mask.h"

#include <algorithm>
#include <limits>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

namespace heddle::samplers {
namespace {

// Where an output position lies between two input positions.
struct Tap {
  std::int64_t low = 0, high = 0;
  float weight = 0;  // of high
};

Tap tap_at(std::int64_t position, std::int64_t from, std::int64_t to) {
  const float scale = float(from) / float(to);
  const float source = std::max((float(position) + 0.5f) * scale - 0.5f, 0.0f);
  const std::int64_t low = std::min(std::int64_t(source), from - 1);
  return {low, std::min(low + 1, from - 1), source - float(low)};
}

// One plane per item, whatever the mask's own batch.
void repeat_for_items(std::pmr::vector<float>& planes, std::size_t plane, std::int64_t items) {
  const std::size_t there = planes.size();
  planes.resize(plane * std::size_t(items));
  for (std::size_t i = there; i < planes.size(); ++i) planes[i] = planes[i - there];
}

}  // namespace

std::pmr::vector<float> resize_planes(std::span<const float> planes, PlaneSize from, PlaneSize to,
                                      std::pmr::memory_resource& memory) {
  const std::size_t in = std::size_t(from.height * from.width);
  const std::size_t count = planes.size() / in;
  std::pmr::vector<float> out(&memory);
  out.reserve(count * std::size_t(to.height * to.width));
  for (std::size_t p = 0; p < count; ++p) {
    const float* plane = planes.data() + p * in;
    for (std::int64_t y = 0; y < to.height; ++y) {
      const Tap row = tap_at(y, from.height, to.height);
      for (std::int64_t x = 0; x < to.width; ++x) {
        const Tap column = tap_at(x, from.width, to.width);
        const auto across = [&](std::int64_t line) {
          const float* values = plane + line * from.width;
          return values[column.low] * (1 - column.weight) + values[column.high] * column.weight;
        };
        out.push_back(across(row.low) * (1 - row.weight) + across(row.high) * row.weight);
      }
    }
  }
  return out;
}

bool has_noise_mask(const Latent& latent) {
  const Value field = latent.record.field("noise_mask");
  return field && !field.is(HEDDLE_KIND_NONE);
}

std::optional<NoiseMask> NoiseMask::of(Context& ctx, const Latent& latent, const Tensor& samples,
                                       const Tensor& noise, const ModelSampling& sampling,
                                       const std::optional<MaskSteps>& steps) {
  if (!has_noise_mask(latent)) return std::nullopt;
  const Tensor given = latent.record.field("noise_mask").as<Tensor>();
  if (latent.shape.size() != 4)
    throw Error(HEDDLE_UNSUPPORTED,
                "the latent has a noise mask and " + std::to_string(latent.shape.size()) +
                    " axes; masks work with pictures, that is 4 axes. Leave the mask out.");
  if (given.rank() < 2 || given.dtype() != HEDDLE_F32 || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent's noise mask is no f32 tensor (batch, height, width). Link a MASK.");
  const PlaneSize from{given.size(-2), given.size(-1)}, to{latent.shape[2], latent.shape[3]};
  HostMemory memory(ctx);
  std::pmr::vector<float> drawn(std::size_t(given.count()), &memory);
  read_to<float>(ctx, given, drawn);
  std::pmr::vector<float> planes = resize_planes(drawn, from, to, memory);
  repeat_for_items(planes, std::size_t(to.height * to.width), latent.items());

  NoiseMask mask;
  mask.sampling_ = &sampling;
  mask.samples_ = samples;
  mask.noise_ = noise;
  mask.steps_ = steps;
  mask.planes_ = ctx.make_host({latent.items(), 1, to.height, to.width}, HEDDLE_F32);
  std::copy(planes.begin(), planes.end(), mask.planes_.data<float>());
  mask.set(ctx, planes, memory);
  return mask;
}

void NoiseMask::set(Context& ctx, std::span<const float> planes,
                    std::pmr::memory_resource& memory) {
  const Shape shape = planes_.shape();
  mask_ = ctx.upload(shape, HEDDLE_F32, planes.data());
  std::pmr::vector<float> rest(planes.begin(), planes.end(), &memory);
  for (float& m : rest) m = 1 - m;
  const Tensor kept = ctx.upload(shape, HEDDLE_F32, rest.data());
  kept_samples_ = ops::mul(ctx, samples_, kept);
  if (noise_) kept_noise_ = ops::mul(ctx, noise_, kept);
}

Tensor NoiseMask::before(Context& ctx, const Tensor& x, double sigma) {
  if (steps_) {
    const float time = sampling_->levels.timestep(float(sigma));
    const float left = (time - steps_->last_time) / (steps_->first_time - steps_->last_time);
    HostMemory memory(ctx);
    std::pmr::vector<float> now(planes_.data<float>(), planes_.data<float>() + planes_.count(),
                                &memory);
    const bool mixes = steps_->strength > 0.0 && steps_->strength < 1.0;
    const auto strength = float(mixes ? steps_->strength : 1.0);
    for (float& m : now) m = strength * (m >= left ? 1.0f : 0.0f) + (1.0f - strength) * m;
    set(ctx, now, memory);
  }
  constexpr double kNoHighest = std::numeric_limits<double>::max();
  const NoiseScaling scaling = noise_scaling(sampling_->prediction, sigma, kNoHighest);
  std::vector<ops::Term> terms{{1.0, ops::mul(ctx, x, mask_)}, {scaling.latent, kept_samples_}};
  if (kept_noise_) terms.push_back({scaling.noise, kept_noise_});
  return ops::combine(ctx, terms);
}

Tensor NoiseMask::after(Context& ctx, const Tensor& denoised) const {
  return ops::add(ctx, ops::mul(ctx, denoised, mask_), kept_samples_);
}

}  // namespace heddle::samplers
