#include "noise_mask.h"

#include <algorithm>
#include <limits>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "pair_latent.h"

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

// Planes of `from` frames for each item, in `to` of them.
std::pmr::vector<float> in_frames(std::span<const float> planes, std::size_t plane,
                                  std::int64_t from, std::int64_t to,
                                  std::pmr::memory_resource& memory) {
  const std::size_t items = planes.size() / (plane * std::size_t(from));
  std::pmr::vector<float> out(&memory);
  out.reserve(items * plane * std::size_t(to));
  for (std::size_t item = 0; item < items; ++item)
    for (std::int64_t frame = 0; frame < to; ++frame) {
      const Tap tap = tap_at(frame, from, to);
      const float* const first = planes.data() + item * plane * std::size_t(from);
      for (std::size_t i = 0; i < plane; ++i)
        out.push_back(first[std::size_t(tap.low) * plane + i] * (1 - tap.weight) +
                      first[std::size_t(tap.high) * plane + i] * tap.weight);
    }
  return out;
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

namespace {

// m of a latent of this shape, (items, 1, height, width) or (items, 1, frames, height, width), in
// host memory.
Tensor planes_of(Context& ctx, const Tensor& given, const Shape& latent, HostMemory& memory) {
  const std::size_t axes = latent.size();
  if (axes != 4 && axes != 5)
    throw Error(HEDDLE_UNSUPPORTED, "the latent has a noise mask and " + std::to_string(axes) +
                                        " axes; masks work with pictures and videos, that is 4 or "
                                        "5 axes. Leave the mask out.");
  if (given.rank() < 2 || given.dtype() != HEDDLE_F32 || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent's noise mask is no f32 tensor (batch, height, width). Link a MASK.");
  const PlaneSize from{given.size(-2), given.size(-1)}, to{latent[axes - 2], latent[axes - 1]};
  std::pmr::vector<float> drawn(std::size_t(given.count()), &memory);
  read_to<float>(ctx, given, drawn);
  std::pmr::vector<float> planes = resize_planes(drawn, from, to, memory);
  const auto plane = std::size_t(to.height * to.width);
  Shape shape{latent.front(), 1, to.height, to.width};
  std::size_t item = plane;
  if (axes == 5) {
    // A mask without frames of its own has them one after another, for all items.
    const std::int64_t frames =
        given.rank() == 5 ? given.size(2) : std::int64_t(planes.size() / plane);
    planes = in_frames(planes, plane, frames, latent[2], memory);
    shape.insert(shape.begin() + 2, latent[2]);
    item *= std::size_t(latent[2]);
  }
  repeat_for_items(planes, item, latent.front());
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  std::copy(planes.begin(), planes.end(), made.data<float>());
  return made;
}

}  // namespace

bool has_noise_mask(const Latent& latent) {
  const Value field = latent.record.field("noise_mask");
  return field && !field.is(HEDDLE_KIND_NONE);
}

std::optional<NoiseMask> NoiseMask::of(Context& ctx, const Latent& latent, const Tensor& samples,
                                       const Tensor& noise, const ModelSampling& sampling,
                                       const std::optional<MaskSteps>& steps, bool is_clean) {
  if (!has_noise_mask(latent)) return std::nullopt;
  if (is_clean && steps)
    throw Error(
        HEDDLE_UNSUPPORTED,
        "the model is told how noisy each frame is, once for a run, and DifferentialDiffusion "
        "changes that from step to step. Leave that node out.");
  if (!latent.parts.empty()) return of_pair(ctx, latent, samples, noise, sampling, is_clean);
  HostMemory memory(ctx);
  NoiseMask mask;
  mask.sampling_ = &sampling;
  mask.samples_ = samples;
  mask.noise_ = is_clean ? Tensor() : noise;
  mask.steps_ = steps;
  mask.is_clean_ = is_clean;
  mask.planes_ =
      planes_of(ctx, latent.record.field("noise_mask").as<Tensor>(), latent.shape, memory);
  mask.set(ctx, {mask.planes_.data<float>(), std::size_t(mask.planes_.count())}, memory);
  return mask;
}

// Each of the two has its own mask; where there is one alone, it is that of the pictures, and all
// of the sound is drawn.
NoiseMask NoiseMask::of_pair(Context& ctx, const Latent& latent, const Tensor& samples,
                             const Tensor& noise, const ModelSampling& sampling, bool is_clean) {
  HostMemory memory(ctx);
  const Value given = latent.record.field("noise_mask");
  const std::vector<Tensor> masks =
      is_pair(given) ? parts_of(given) : std::vector<Tensor>{given.as<Tensor>()};
  NoiseMask mask;
  mask.sampling_ = &sampling;
  mask.samples_ = samples;
  mask.noise_ = is_clean ? Tensor() : noise;
  mask.is_clean_ = is_clean;
  mask.planes_ = ctx.make_host(latent.shape, HEDDLE_F32);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < latent.parts.size(); ++i) {
    const Shape& shape = latent.parts[i];
    if (i < masks.size()) {
      mask.parts_.push_back(planes_of(ctx, masks[i], shape, memory));
    } else {
      Shape one = shape;
      one[1] = 1;
      mask.parts_.push_back(ctx.make_host(one, HEDDLE_F32));
      std::fill_n(mask.parts_.back().data<float>(), mask.parts_.back().count(), 1.0f);
    }
    const Tensor& planes = mask.parts_.back();
    const std::int64_t item = planes.count() / shape[0];
    for (std::int64_t b = 0; b < shape[0]; ++b)
      for (std::int64_t c = 0; c < shape[1]; ++c)
        std::copy_n(planes.data<float>() + b * item, item,
                    mask.planes_.data<float>() + b * latent.shape[2] + offset + c * item);
    offset += item * shape[1];
  }
  mask.set(ctx, {mask.planes_.data<float>(), std::size_t(mask.planes_.count())}, memory);
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
  std::vector<ops::Term> terms{{1.0, ops::mul(ctx, x, mask_)},
                               {is_clean_ ? 1.0 : scaling.latent, kept_samples_}};
  if (kept_noise_) terms.push_back({scaling.noise, kept_noise_});
  return ops::combine(ctx, terms);
}

Tensor NoiseMask::after(Context& ctx, const Tensor& denoised) const {
  return ops::add(ctx, ops::mul(ctx, denoised, mask_), kept_samples_);
}

}  // namespace heddle::samplers
