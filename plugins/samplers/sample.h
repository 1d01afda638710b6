// One run of a sampler: from a latent, noise and a list of noise levels to the latent at the end.
// The loop of all samplers, on the device of the call. One call's thread.
#pragma once

#include <cstdint>
#include <optional>

#include <heddle/model.hpp>
#include <heddle/session.hpp>

#include "guide.h"
#include "noise_schedule.h"
#include "sampler_kind.h"

namespace heddle::samplers {

struct Noise {
  std::uint64_t seed = 0;
  bool add =
      true;  // false: the run starts from the latent alone; the seed still serves the sampler
};

struct SampleJob {
  Guide guide;
  SamplerChoice sampler;
  Sigmas sigmas;  // from noisy to clean; empty: the latent is handed on
  Noise noise;
  Value latent;
};

struct Sampled {
  Value latent;    // at the end
  Value denoised;  // what the model saw in the last step
};

Sampled sample(Context& ctx, const SampleJob& job);

}  // namespace heddle::samplers
