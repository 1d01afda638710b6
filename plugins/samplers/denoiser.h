// D, what a model sees in a point: the predictions of its conditionings, each in its area, mixed by
// the guidance, changed by patches, and held to the noise mask. On the device of the call, but for
// patches, which get the numbers in host memory. One call's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "context_windows.h"
#include "control_nets.h"
#include "frame_cache.h"
#include "model_calls.h"
#include "model_patches.h"
#include "noise_mask.h"
#include "noise_schedule.h"
#include "output_cache.h"
#include "patched_guidance.h"
#include "reference_cache.h"
#include "sampler_loop.h"
#include "scoped_conditionings.h"
#include "video_begin.h"

namespace heddle::samplers {

class SecondLook;

class Denoiser {
 public:
  // `levels`: of the run. Borrows the plan and the sampling. `looks_twice`: what the model sees
  // without the positive conditioning is asked for, too.
  Denoiser(Context& ctx, const GuidePlan& plan, const ModelSampling& sampling, const Shape& shape,
           const Sigmas& levels, bool looks_twice);
  Denoiser(const Denoiser&) = delete;
  ~Denoiser();

  // The levels of all evaluations of the run, in order.
  void open(const SamplerPlan& plan);
  // The latent that is drawn over, for models that read it beside the point (concat_input.h), and
  // the run's seed.
  void show(const Value& latent, std::uint64_t seed);
  // Points are pictures and their sound (pair_latent.h). Throws where something is asked for that
  // goes by places of a picture.
  void use_parts(std::vector<Shape> parts);
  void use_mask(std::optional<NoiseMask> mask) { held_.mask = std::move(mask); }
  void use_begin(std::optional<VideoBegin> begin) { held_.begin = std::move(begin); }
  // Points are frames behind those that are kept there, which outlives this. Throws where something
  // is asked for that does not go together with it.
  void use_frames(FrameCache& frames);

  // The next evaluation.
  Seen operator()(const Tensor& point, double sigma);

  // Its sessions and these take turns where there is no memory for both.
  void share_with(std::function<bool()> others) { calls_.share_with(std::move(others)); }
  bool take_turns();

  // Between two evaluations. It is read where the run has been opened, but for its attempts.
  void archive(StateArchive& state);

 private:
  static constexpr std::size_t kNegativeOfLists = 1;
  // How a set counts in a list.
  struct Use {
    std::size_t set = 0;  // of the stretch
    double weight = 0.0;  // everywhere, where there is no map
    Tensor map;           // (B, 1, box)
  };
  // An evaluation: the point, its level, what each context window sees of it (the point itself
  // without windows), and for each set the part of that and what the model made of it.
  struct Look {
    const Tensor& x;
    double sigma;
    ModelTerms terms;
    std::vector<Tensor> windows, parts, outputs;
  };
  // The evaluations that were opened, and the stretch of them that is under way.
  struct Run {
    Run() {}  // written out: clang 14 does not find the implicit one from within the class
    std::vector<double> sigmas;
    std::vector<std::uint64_t> steps;  // of the evaluations, where there are context windows
    std::vector<Stretch> stretches;
    std::size_t next = 0;  // evaluation
    std::size_t now = 0;   // stretch
    bool entered = false;  // it
    std::vector<ModelSet> sets;
    std::vector<std::vector<std::vector<Use>>> lists;  // by window
  };

  void look_again(const Sigmas& levels);
  std::vector<Stretch> stretches_over(const std::vector<double>& sigmas,
                                      std::vector<std::uint64_t>& steps);
  // Of an evaluation; none where the model sees the whole point.
  const ContextWindows& windows_of(std::size_t evaluation);
  void enter(const Stretch& stretch);
  void open_controls(const Stretch& stretch);
  Value schedule_of(const AskedModel& asked, const Stretch& stretch);
  std::vector<ModelCall> calls_in(const Stretch& stretch);
  std::vector<Value> constants_of(const ModelCall& call);
  const Value& model_of(const ModelSet& set) const;
  Value with_kept(const ModelSet& set, const Value& constants) const;
  void keep_made(std::size_t set, const Value& made);
  Value set_constants(std::size_t set);
  std::vector<Use> uses_of(const Stretch& stretch, std::size_t list, std::size_t window);
  Seen see(const Tensor& x, double sigma);
  void run_model(Look& look);
  std::pmr::vector<float> numbers(const Tensor& tensor);
  Tensor part_of(const Tensor& x, const std::optional<Box>& box);
  Tensor mapped(const Look& look, std::size_t list, std::size_t window);
  Tensor in_window(const Look& look, std::size_t list, std::size_t window);
  Tensor prediction(const Look& look, std::size_t list);
  Tensor mixed(const Look& look);
  Tensor patched(const Look& look);

  Context& ctx_;
  const GuidePlan& plan_;
  const ModelSampling& sampling_;
  const Shape shape_;
  const bool looks_twice_;
  HostMemory memory_;
  ScopedConditionings conditionings_;
  ModelCalls calls_;
  PatchedGuidance patches_;
  // What points are held to.
  struct Held {
    std::optional<NoiseMask> mask;
    std::optional<VideoBegin> begin;
  } held_;
  std::optional<ControlNets> controls_;
  // Nodes that spare work, or ask for more.
  struct Caches {
    std::optional<OutputCache> outputs;  // EasyCache
    std::optional<ChangeMeter> lazy;
    std::optional<ReferenceCache> references;
    FrameCache* frames = nullptr;  // of a run in blocks
    PatchHints patches;            // of models
    std::unique_ptr<SecondLook> again;
  } caches_;
  // Of the last evaluation that was made.
  struct Last {
    Tensor lazily_added;  // D - x
    Seen seen;
    bool warned = false;  // there, or before: that NAG does nothing
  } last_;
  std::optional<Run> run_;
  // Keyframes of hooks and context windows go by all levels. parts: of pictures and their sound.
  struct Opened {
    Sigmas asked;  // the run's, as they were asked for
    std::vector<Shape> parts;
    std::vector<std::vector<double>> levels;
    std::optional<WindowSchedule> windows;
  } opened_;
};

}  // namespace heddle::samplers
