#include "plugins/vae/humo_windows.h"

#include <algorithm>
#include <memory_resource>
#include <span>
#include <vector>

#include <heddle/host_memory.hpp>

#include "plugins/vae/sound_steps.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kLayersOfMean = 8, kStatesOfWhisper = 33, kPointsOfMoment = 640,
                       kStatesOfMoment = 2, kFirstSilent = 3, kFramesOfWindow = 4, kBesides = 2;
constexpr double kMomentsOfSecond = 25;

// Of each moment the five states (5, K), moment by moment.
class HeardMeans {
 public:
  HeardMeans(const float* states, const Shape& shape, std::int64_t count,
             std::pmr::memory_resource& memory)
      : states_(states),
        all_(shape[2]),
        width_(shape[3]),
        count_(std::min(count * kStatesOfMoment, shape[2])),
        moments_(stepped_count(count_, kMomentsOfSecond)),
        row_(std::size_t(count_ * width_), 0, &memory),
        made_(std::size_t(moments_ * kHumoMeans * width_), 0, &memory) {
    for (std::int64_t mean = 0; mean < kHumoMeans; ++mean) add(mean);
  }
  std::int64_t moments() const { return moments_; }
  const float* of(std::int64_t moment) const { return made_.data() + moment * kHumoMeans * width_; }

 private:
  void add(std::int64_t mean) {
    const std::int64_t first = mean * kLayersOfMean,
                       layers = std::min(kLayersOfMean, kStatesOfWhisper - first);
    std::ranges::fill(row_, 0.0f);
    for (std::int64_t layer = first; layer < first + layers; ++layer)
      for (std::size_t i = 0; i < row_.size(); ++i)
        row_[i] += states_[layer * all_ * width_ + std::int64_t(i)];
    for (float& number : row_) number /= float(layers);
    for (std::int64_t t = 0; t < moments_; ++t) {
      const StepPlace place = step_place(t, moments_, count_);
      for (std::int64_t k = 0; k < width_; ++k)
        made_[std::size_t((t * kHumoMeans + mean) * width_ + k)] = place.of(row_.data(), width_, k);
    }
  }

  const float* states_;
  const std::int64_t all_, width_, count_, moments_;
  std::pmr::vector<float> row_, made_;
};

}  // namespace

Shape humo_shape(const Shape& states, std::int64_t frames) {
  if (states.size() != kStateAxes || states[0] != kStatesOfWhisper || states[1] < 1) return {};
  return {1, frames, kHumoMoments, kHumoMeans, states[3]};
}

Tensor humo_windows(Context& ctx, const Value& heard, std::int64_t frames, bool none) {
  const Tensor all = heard.get<Tensor>(kAllStates, {});
  const Shape states = all ? all.shape() : Shape{}, shape = humo_shape(states, frames);
  if (shape.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio_encoder_output: it has " + std::to_string(states.empty() ? 0 : states[0]) +
                    " layers' states, HuMo hears " + std::to_string(kStatesOfWhisper) +
                    ". Encode the sound with whisper_large_v3.");
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  std::fill_n(to, made.count(), 0.0f);
  if (none) return made;
  // It may be on a device.
  HostMemory memory(ctx);
  std::pmr::vector<float> floats(std::size_t(all.count() / states[1]), &memory);
  for (std::int64_t layer = 0; layer < states[0]; ++layer) {
    const std::int64_t each = states[2] * states[3];
    read_to<float>(ctx, all.slice(0, layer, layer + 1).slice(1, 0, 1),
                   std::span<float>(floats).subspan(std::size_t(layer * each), std::size_t(each)));
  }
  const HeardMeans means(floats.data(), states,
                         heard.get<std::int64_t>("audio_samples", 0) / kPointsOfMoment, memory);
  const std::int64_t moment = kHumoMeans * states[3];
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    // The first frame is one of pixels: it hears five moments about its own.
    const std::int64_t silent = frame == 0 ? kFirstSilent : 0,
                       first =
                           frame == 0 ? -kBesides : 1 + (frame - 1) * kFramesOfWindow - kBesides;
    for (std::int64_t i = 0; i < kHumoMoments; ++i, to += moment) {
      const std::int64_t at = first + i - silent;
      if (i >= silent && at >= 0 && at < means.moments()) std::copy_n(means.of(at), moment, to);
    }
  }
  return made;
}

}  // namespace heddle::vae
