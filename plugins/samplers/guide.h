// Who says what the picture shall be: a model, its conditionings, and how what it sees by each of
// them is mixed. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "prediction_patch.h"

namespace heddle::samplers {

// P, N and T are the predictions by positive, negative and third conditioning.
enum class Mix {
  kCfg,        // N + cfg (P - N)
  kPerpNeg,    // mix_perpendicular(), T by the empty text, `number` is neg_scale
  kDual,       // N + number (T - N) + cfg (P - T)
  kDualNested  // N + number (T + cfg (P - T) - N)
};

struct Guide {
  Value model;
  Value positive;
  Value negative;  // may be empty where it is not needed
  double cfg = 1.0;
  Mix mix = Mix::kCfg;
  Value third = {};
  double number = 1.0;
  Value negative_model = {};  // that the negative conditioning is asked of; empty: the same
  // `positive` is the negative conditioning of another guide, and where it says nothing about the
  // picture, the model is told what it is told for that one (SDXL's refiner: it looks bad).
  bool is_of_negative = false;
};
// To and from a GUIDER (heddle/diffusion/values.h). Throws where one without a model or a
// conditioning comes in.
Value guider_record(const Guide& guide);
Guide guide_of(const Value& guider);
std::optional<Mix> find_mix(const std::string& name);

// What a MODEL's settings say about predictions ("prediction_patches"): one of them as its node
// wrote it.
struct PatchChoice {
  const PredictionPatch* patch = nullptr;
  PatchNumbers numbers;
  Value conditioning;  // of its own, or empty
  // Blocks by their paths: not empty: its own prediction is that by the positive conditioning, of
  // the model without them, from level `start_percent` to `end_percent` of its numbers.
  std::vector<std::string> without;
  // A field of conditionings: not empty: its own prediction is that by the positive conditioning
  // without this field, from level `start_percent` to `end_percent` of its numbers.
  std::string without_field = {};

  bool has_range() const { return !without.empty() || !without_field.empty(); }
  bool has_own() const { return conditioning || has_range(); }
};
Value with_patch(const Value& model, const std::string& name, const PatchNumbers& numbers,
                 const Value& conditioning = {});
// One whose own prediction is that of the model without these blocks.
Value with_skipping_patch(const Value& model, const std::string& name, const PatchNumbers& numbers,
                          const std::vector<std::string>& blocks);
// The model without any patch of its predictions, and without what spares evaluations.
Value without_patches(const Value& model);
// The model whose negative conditioning is, in a part of the way, asked of it without these blocks.
Value with_less_for_negative(const Value& model, const std::vector<std::string>& blocks,
                             double start_percent, double end_percent);
// Throws not_found at a name that no patch has.
std::vector<PatchChoice> patches_of(const Value& settings);

// Normalized Attention Guidance ("nag" of the settings), as NAGuidance's inputs.
struct NagNumbers {
  double scale = 5.0, alpha = 0.5, tau = 1.5;
};
inline constexpr const char* kNagInput = "nag";  // of models that can do it
Value with_nag(const Value& model, const NagNumbers& numbers);
std::optional<NagNumbers> nag_of(const Value& settings);

// What a model tells of the attention in its middle, (B, n) f32, where it was built so
// (second_look.h): its output, and the patch of UNets that makes it.
inline constexpr const char* kAttended = "attended";

// A cfg that holds between two levels ("cfg_overrides" of the settings).
struct CfgOverride {
  double cfg = 1.0, start_sigma = 0.0, end_sigma = 0.0;
};
Value with_cfg_override(const Value& model, double cfg, double start_percent, double end_percent);
std::vector<CfgOverride> cfg_overrides_of(const Value& settings, const NoiseLevels& levels);

// A model that conditionings are asked of.
struct AskedModel {
  Value model;
  NoiseLevels levels;  // that say which timestep it is told
};

// Which predictions an evaluation takes, of which models, and their factors.
class GuidePlan {
 public:
  // Throws where the guide has two models that predict differently.
  GuidePlan(const Guide& guide, const ModelSampling& sampling, bool looks_twice);

  // Lists: positive, negative, third, then those of patches.
  std::size_t list_count() const { return 3 + own_.size(); }
  Value list(std::size_t index) const;
  bool is_negative(std::size_t index) const;
  // True: the list is the positive conditioning once more.
  bool repeats_positive(std::size_t index) const;
  // Not empty: the list is the positive conditioning without this field.
  std::string lacks_of_positive(std::size_t index) const;
  // The first is the guide's.
  const std::vector<AskedModel>& models() const { return models_; }
  // Which of them each list is asked of.
  std::vector<std::size_t> models_at(double sigma) const;
  // The factors of the lists in a result that is linear in them; those of 0 are not needed.
  std::vector<double> factors_at(double sigma) const;
  // Throws where a list is needed that is not there.
  std::vector<bool> needed_at(double sigma) const;
  // True: the result is no linear mix, its numbers are changed in host memory.
  bool is_patched() const { return !patches_.empty() || guide_.mix == Mix::kPerpNeg; }
  // A patch asks for what the negative conditioning predicts of another state (second_look.h).
  bool looks_again() const;
  double cfg_at(double sigma) const;
  const Guide& guide() const { return guide_; }
  const std::vector<PatchChoice>& patches() const { return patches_; }
  // Only of a model that can do it.
  const std::optional<NagNumbers>& nag() const { return nag_; }

 private:
  Guide guide_;
  bool looks_twice_;
  std::vector<PatchChoice> patches_;
  std::vector<CfgOverride> overrides_;
  std::optional<NagNumbers> nag_;
  // Own predictions of patches.
  struct Own {
    std::size_t patch = 0, model = 0;
    std::optional<SigmaRange> range;  // none: all the way
  };
  struct Less {
    std::size_t model = 0;
    SigmaRange range;
  };
  std::size_t add_model(const Value& model, const NoiseLevels& levels);
  // Model patches are at work in a part of the way (model_patches.h): a model without those that
  // are not.
  struct Rest {
    std::size_t model = 0;
    std::vector<std::string> paths;
    std::size_t without = 0;
  };
  void add_rests(std::size_t model);

  std::vector<Own> own_;
  std::vector<AskedModel> models_;
  std::size_t negative_model_ = 0;
  std::optional<Less> less_for_negative_;
  std::vector<Rest> rests_;
};

}  // namespace heddle::samplers
