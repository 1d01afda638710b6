// The guidance of a run whose predictions are patched, on numbers in host memory. One run's thread.
#pragma once

#include <functional>
#include <memory_resource>
#include <vector>

#include "guide.h"
#include "state_archive.h"

namespace heddle::samplers {

// One evaluation. Predictions by list of the plan; empty where a list was not needed, and so are
// those that patches then get as their own.
struct GuidedPoint {
  Shape shape;
  double sigma = 0.0;
  std::span<const float> x;
  std::vector<std::pmr::vector<float>> predictions;  // changed
  // As PatchPoint has them.
  std::span<const float> attended = {};
  std::function<std::pmr::vector<float>(std::span<const float> x)> look_again = {};
  std::size_t pictures = 0;
};

class PatchedGuidance {
 public:
  // Borrows all; `memory` holds what patches keep.
  PatchedGuidance(const GuidePlan& plan, const ModelSampling& sampling,
                  std::pmr::memory_resource& memory);

  std::pmr::vector<float> operator()(GuidedPoint& point, std::pmr::memory_resource& memory);
  // What patches keep between evaluations.
  void archive(StateArchive& state);

 private:
  const GuidePlan& plan_;
  const ModelSampling& sampling_;
  std::vector<ActivePatch> patches_;
};

}  // namespace heddle::samplers
