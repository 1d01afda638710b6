// my_plugin, a sampler that KSampler lists. It says which sums of what the model has made lead to
// the next point (heddle/diffusion/samplers.h); it never sees a tensor, so it runs on any device.
#include <heddle/diffusion/samplers.h>

#include <heddle/plugin.hpp>

namespace {

// Euler's method: with D the clean image that the model sees in x at the level s,
// x' = D + (s' / s) (x - D), a straight line to the next level s'.
heddle_status* step(const heddle_host*, const heddle_sampler_desc*, const heddle_sampler_run* run,
                    std::uint32_t index, void (*emit)(void*, const heddle_sampler_evaluation*),
                    void* to) {
  return heddle::guard([&] {
    const double from = run->sigmas[index], ratio = run->sigmas[index + 1] / from;
    const heddle_sampler_term terms[] = {{HEDDLE_SAMPLER_START, 0, ratio},
                                         {HEDDLE_SAMPLER_DENOISED, 0, 1 - ratio}};
    heddle_sampler_evaluation evaluation{};
    evaluation.size = sizeof evaluation;
    evaluation.after = HEDDLE_SAMPLER_MOVE_START;  // what it leads to is where the next step begins
    evaluation.sigma = from;
    evaluation.next = {terms, 2};
    emit(to, &evaluation);
  });
}

// It has no options: a run that gives it one is refused.
constexpr const heddle_sampler_option_desc* kNoOptions[] = {nullptr};

constexpr heddle_sampler_desc kMyPluginSampler{sizeof(heddle_sampler_desc),
                                               "my_plugin",
                                               "Euler's method.",
                                               0,
                                               &step,
                                               nullptr,
                                               nullptr,
                                               kNoOptions};

struct MyPluginSamplers {
  static constexpr std::string_view kind = HEDDLE_SAMPLERS;
  static const heddle_list* list() { return heddle::descs<kMyPluginSampler>(); }
};

}  // namespace

HEDDLE_PLUGIN("org.example.my_plugin", "1.0.0", MyPluginSamplers)
