// One run of a sampler: from a latent, noise and a list of noise levels to the latent at the end.
// The loop of all samplers, on the device of the call. One call's thread.
#pragma once

#include <cstdint>
#include <optional>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/session.hpp>

#include "guide.h"
#include "latent.h"
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

// Where a run begins. Tensors are on the device of the call.
struct Beginning {
  Tensor samples;  // of the latent
  Tensor noise;    // empty: none is added
  Tensor x;        // the first point
};
// `level`: the first of the run. `settings`: the model's, which may have noise repeated.
Beginning beginning_of(Context& ctx, const Noise& noise, const Latent& latent, double level,
                       const ModelSampling& sampling, const Value& settings, HostMemory& memory);
Tensor upload_noise(Context& ctx, const Latent& latent, std::pmr::vector<float> values,
                    const ModelSampling& sampling);

}  // namespace heddle::samplers
