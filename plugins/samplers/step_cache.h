// When an evaluation may be left out because little has changed since the last one: the measure of
// EasyCache (Zhou et al. 2025, arXiv 2507.02860) and of ComfyUI's LazyCache. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <heddle/node.hpp>

#include "noise_levels.h"
#include "state_archive.h"

namespace heddle::samplers {

struct StepCacheNumbers {
  double threshold = 0.2;
  double start_sigma = 0.0, end_sigma = 0.0;  // evaluations are left out between these levels
};
// Of the settings' record under `key`, "easy_cache" or "lazy_cache"; none where there is none.
std::optional<StepCacheNumbers> step_cache_of(const Value& settings, const char* key,
                                              const NoiseLevels& levels);

// Follows what goes into a function and what comes out of it.
class ChangeMeter {
 public:
  // from_the_start: it follows evaluations before start_sigma, too, as LazyCache does.
  ChangeMeter(const StepCacheNumbers& numbers, bool from_the_start)
      : numbers_(numbers), from_the_start_(from_the_start) {}

  // False: nothing is left out, followed or kept any more.
  bool follows(double sigma) const { return float(sigma) > float(numbers_.end_sigma); }
  // Before an evaluation, with the numbers (..., h, w) that go in: whether it may be left out.
  bool is_little(double sigma, std::span<const float> in, const Shape& shape, bool can_skip);
  // After one that was made. `norm`: the mean of the sizes of all that came out.
  void made(double sigma, std::span<const float> in, std::span<const float> out, const Shape& shape,
            double norm);
  void archive(StateArchive& state);

 private:
  bool has_started(double sigma) const { return float(sigma) <= float(numbers_.start_sigma); }

  StepCacheNumbers numbers_;
  bool from_the_start_;
  std::optional<std::vector<float>> in_, out_;  // every 8th number of every 8th row, of the last
  std::optional<double> norm_, rate_, input_change_;
  double accumulated_ = 0.0;
};

double mean_size(std::span<const float> values);

}  // namespace heddle::samplers
