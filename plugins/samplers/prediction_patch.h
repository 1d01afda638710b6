// Patches of predictions: functions behind the guidance that change what a model sees in a point,
// wherever the model ran. They get row-major numbers in host memory, so parallel modes, streams and
// captured graphs of the model's session know nothing of them. A file of plugins/samplers/patches
// registers each. Formulas are ComfyUI's, from the papers named there. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_sampling.h"

namespace heddle::samplers {

// One evaluation. All spans are of `shape`, (B, C, ...); predictions are clean pictures.
struct PatchPoint {
  Shape shape;
  double sigma = 0.0;
  double cfg = 1.0;
  const ModelSampling* sampling = nullptr;
  std::span<const float> x;        // the noisy state
  std::span<float> conditioned;    // by the positive conditioning
  std::span<float> unconditioned;  // by the negative one; zeros where it was not needed
  bool has_unconditioned = true;
  std::span<const float> own;  // the patch's own; empty without one, and outside of its part
  std::span<float> result;     // of the guidance
  // Of patches that look again: how much each token of the model's middle is attended to where the
  // negative conditioning is seen, (B, n), and what that conditioning predicts of another state.
  std::span<const float> attended;
  std::function<std::pmr::vector<float>(std::span<const float> x)> look_again;
  // Of each item the numbers that are pictures, before those of their sound; 0: all are.
  std::size_t pictures = 0;
  std::pmr::memory_resource* memory = nullptr;

  std::size_t items() const { return std::size_t(shape[0]); }
  std::size_t item_size() const { return x.size() / items(); }
  std::size_t channels() const { return std::size_t(shape[1]); }
};

// What a workflow gave a patch: its numbers, and the name of a latent operation and the latent that
// it may have, f32 in host memory.
struct PatchNumbers {
  std::vector<std::pair<std::string, double>> numbers;
  std::string operation;
  Tensor reference = {};
  double operator[](std::string_view name) const;  // 0 where there is none
};

// What a patch keeps from one evaluation of a run to the next.
struct PatchState {
  explicit PatchState(std::pmr::memory_resource* memory) : kept(memory) {}
  std::pmr::vector<float> kept;
  double sigma = -1.0;
};

struct PredictionPatch {
  enum class Place {
    kBefore,  // changes the two predictions, before they are mixed
    kMix,     // mixes them into the result, in the place of classifier-free guidance
    kAfter    // changes the result
  };
  const char* name;
  Place place;
  void (*apply)(PatchPoint& point, const PatchNumbers& numbers, PatchState& state);
  bool looks_again = false;
  bool needs_negative = false;  // also where the guider's cfg is 1
  bool of_sound = false;        // of kMix: does nothing where there is no sound beside the pictures
};

// At namespace scope, of static storage.
struct RegisteredPatch {
  explicit RegisteredPatch(const PredictionPatch& patch);
};
// Null if there is no such name. Points into static data.
const PredictionPatch* find_patch(std::string_view name);

// A patch of a run.
struct ActivePatch {
  const PredictionPatch* patch = nullptr;
  PatchNumbers numbers;
  PatchState state;
  std::span<const float> own;  // prediction by its own conditioning, of this evaluation
};

// D_u + cfg (D_c - D_u), in single precision as ComfyUI.
void mix_plainly(PatchPoint& point);
// The patches before, the last of those that mix such a point, those behind. `result` is written.
void apply_patches(PatchPoint& point, std::span<ActivePatch> patches);
// Only those that mix, and those behind.
void apply_behind(PatchPoint& point, std::span<ActivePatch> patches);

// E + cfg (p - neg_scale (q - (q p / |p|^2) p)) with p = P - E and q = N - E, products over the
// whole batch (Armandpour et al. 2023): P is conditioned, N unconditioned, E own.
void mix_perpendicular(PatchPoint& point, double neg_scale);

}  // namespace heddle::samplers
