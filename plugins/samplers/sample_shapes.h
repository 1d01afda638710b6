// Runs of samplers and conditionings by shapes, for infer(): what sample() (sample.h) is going to
// ask of the model. Where something is not known before the run, nothing is told. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "cond_scope.h"
#include "guide.h"
#include "latent.h"
#include "noise_schedule.h"
#include "pair_latent.h"
#include "plugins/blocks/entry_shapes.h"
#include "sampler_kind.h"

namespace heddle::samplers {

using blocks::EntryShapes, blocks::entry_shapes, blocks::infer_entries;
using blocks::path_join, blocks::shape_of, blocks::told_info, blocks::info_of;

// The entries as a value that a node can tell of in the place of the CONDITIONING that it will be.
Value told_shapes(const std::vector<EntryShapes>& entries);
// Of such a value, or of a CONDITIONING; none where it is neither.
std::vector<EntryShapes> entries_told(const Value& list);
// The entries of a list that a patch has of its own; none: they are not known.
std::vector<EntryShapes> own_entries(const GuidePlan& plan, std::size_t list,
                                     std::vector<EntryShapes> positive);

// Of a latent of pictures and their sound the shapes of both; none of any other, or not told.
template <class T>
std::vector<Shape> told_parts(const Infer& question, const Input<T>& latent) {
  std::vector<Shape> parts;
  for (const char* index : {"0", "1"})
    if (const auto shape = question.shape(latent, path_join("samples", index)))
      parts.push_back(*shape);
  return parts.size() == 2 && parts[0].size() == 5 && parts[1].size() == 4 ? parts
                                                                           : std::vector<Shape>();
}
// The shape of the samples that a sampler ends with: the model's channels, and cells of its size.
template <class T>
std::optional<Shape> sampled_shape(const Infer& question, const Input<T>& latent,
                                   const Value& model) {
  if (!model.is(HEDDLE_KIND_MODEL)) return {};
  if (model_settings(model).get<bool>("latent_sound", false)) {
    const std::vector<Shape> parts = told_parts(question, latent);
    return parts.empty() ? std::nullopt : std::optional(packed_shape(parts));
  }
  std::optional<Shape> shape = question.shape(latent, "samples");
  if (!shape || shape->size() < 3) return {};
  const Value settings = model_settings(model), cells = question.part(latent, kDownscaleKey);
  const auto channels = settings.get<std::int64_t>("latent_channels", 0);
  if (channels > 0) (*shape)[1] = channels;
  *shape = with_frames(*shape, settings.get<bool>("latent_frames", false));
  return with_cells(*shape, cells ? cells.template as<std::int64_t>() : 0,
                    settings.get<std::int64_t>("latent_downscale", 0));
}

// Of a model that makes pictures and their sound the shapes of both.
template <class T>
std::vector<Shape> sampled_parts(const Infer& question, const Input<T>& latent,
                                 const Value& model) {
  return model_settings(model).get<bool>("latent_sound", false) ? told_parts(question, latent)
                                                                : std::vector<Shape>();
}

// What a sampler hands on: the samples, and the mask that came in.
template <class T, class U>
void infer_latent(Infer& question, const Input<T>& from, const Output<U>& to, const Shape& samples,
                  const std::vector<Shape>& parts = {}) {
  if (parts.empty()) question.out(to, "samples", HEDDLE_F32, samples);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string index = std::to_string(i);
    question.out(to, path_join("samples", index), HEDDLE_F32, parts[i]);
    if (const auto mask = question.tensor(from, path_join("noise_mask", index)))
      question.out(to, path_join("noise_mask", index), mask->dtype, shape_of(*mask));
  }
  if (const auto mask = question.tensor(from, "noise_mask"))
    question.out(to, "noise_mask", mask->dtype, shape_of(*mask));
}

// A SampleJob by shapes.
struct JobShapes {
  Value model;
  std::vector<EntryShapes> positive, negative, third = {};
  Mix mix = Mix::kCfg;
  double number = 1.0;  // of the mix
  std::optional<double> cfg;
  std::optional<SamplerChoice> sampler;
  std::optional<Sigmas> sigmas;
  Shape latent;  // in the model's channels
  Value negative_model = {};
  bool has_noise_mask = false;    // the latent
  std::vector<Shape> parts = {};  // of pictures and their sound, which `latent` packs
  // Of a block of a video (block_run.h): frames before it; whether it is drawn, and whether the
  // model looks at it without noise.
  struct Block {
    std::int64_t before = 0;
    bool is_drawn = true, is_looked_at = false;
  };
  std::optional<Block> block = {};
};
// What is told of the latent beside its shape.
template <class T>
void tell_latent(const Infer& question, const Input<T>& latent, JobShapes& job) {
  job.parts = sampled_parts(question, latent, job.model);
  for (const char* mask : {"noise_mask", "noise_mask.0"})
    job.has_noise_mask = job.has_noise_mask || question.tensor(latent, mask).has_value();
}

// What a run's own sums hold at once, in bytes: where it is placed, and in host memory.
struct RunScratch {
  std::uint64_t device = 0, host = 0;
};

// Tells the call of the model and what the node's own sums cost, and says what they hold; nothing
// when a part of the job is not known, or when sample() would throw.
RunScratch infer_run(Infer& question, const JobShapes& job);

}  // namespace heddle::samplers
