#include "sample_shapes.h"

#include <algorithm>
#include <set>

#include <heddle/checked.hpp>

#include "attention_pairs.h"
#include "block_run.h"
#include "boxes.h"
#include "brownian_tree.h"
#include "cond_weights.h"
#include "conditioning.h"
#include "control_nets.h"
#include "joined_entries.h"
#include "model_patches.h"
#include "model_sampling.h"
#include "parallel_heads.h"
#include "prediction.h"
#include "reference_cache.h"
#include "run_plan.h"
#include "sound_levels.h"
#include "stretches.h"
#include "told_controls.h"
#include "video_inputs.h"
#include "window_stretches.h"
#include "window_tensors.h"

namespace heddle::samplers {
namespace {

double count_of(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= double(size);
  return count;
}

// The point as the model reads it.
Constants point_shapes(const JobShapes& job, const Shape& x) {
  if (job.parts.empty()) return {{"x", HEDDLE_F32, x}};
  return {{"x", HEDDLE_F32, job.parts[0]}, {kSound, HEDDLE_F32, job.parts[1]}};
}

// Sums over the latent: for each evaluation the input, the clean picture of all sets and the next
// point, besides the noise at the beginning and the scaling at the end. Each term is read once.
RunScratch infer_cost(Infer& question, const JobShapes& job, const RunPlan& run, std::size_t sets,
                      const heddle_sampler_desc& sampler, const GuidePlan& plan, double shown,
                      double references) {
  constexpr double kTermsOfAPoint = 3, kOnce = 6, kBytes = 4;
  const double terms = double(run.evaluations()) * (double(sets) + 1 + kTermsOfAPoint) + kOnce;
  const double count = count_of(job.latent);
  double kept = 4.0 + double(sets);
  for (const std::int32_t of :
       {HEDDLE_SAMPLER_DENOISED, HEDDLE_SAMPLER_UNCONDITIONED, HEDDLE_SAMPLER_SLOPE,
        HEDDLE_SAMPLER_UNCONDITIONED_SLOPE, HEDDLE_SAMPLER_NOISE})
    kept += double(kept_of(run.steps, of));
  RunScratch scratch;
  scratch.device = checked_cast<std::uint64_t>(kBytes * (kept * count + references), "bytes");
  question.cost(2 * terms * count, kBytes * terms * count, scratch.device);
  // The numbers of the latent and of the noise, and those of the levels, stay in host memory.
  constexpr double kInHost = 2, kBytesOfALevel = 16, kLittle = 1024;
  double in_host = kBytes * kInHost * count + kBytesOfALevel * double(run.evaluations()) + kLittle;
  if ((sampler.flags & HEDDLE_SAMPLER_BROWNIAN) != 0)
    in_host += double(BrownianTree::scratch_bytes(std::size_t(count)));
  if (sampler.attempt != nullptr) in_host += 3 * kBytes * count;
  in_host += kBytes * shown;
  // Patches get the point and every prediction there, and work in double precision.
  if (plan.is_patched()) in_host += kBytes * count * double(plan.list_count() + 6);
  scratch.host = checked_cast<std::uint64_t>(in_host, "bytes");
  question.host_scratch(scratch.host);
  return scratch;
}

using EntryLists = std::vector<std::vector<EntryShapes>>;

// By list of the plan; none where a list of a patch is not known.
std::optional<EntryLists> lists_of(const JobShapes& job, const GuidePlan& plan) {
  EntryLists lists = {job.positive, with_inherited_of(job.positive, job.negative),
                      with_inherited_of(job.positive, job.third)};
  for (std::size_t list = lists.size(); list < plan.list_count(); ++list) {
    lists.push_back(own_entries(plan, list, job.positive));
    if (lists.back().empty()) return {};
  }
  return lists;
}

// The entries as a run has them; none where that depends on what a mask looks like.
std::optional<ScopedLists> scoped_lists(const JobShapes& job, EntryLists& all,
                                        const NoiseLevels& levels) {
  const Shape grid(job.latent.begin() + 2, job.latent.end());
  ScopedLists lists;
  for (const std::vector<EntryShapes>& entries : all) {
    std::vector<ScopedEntry>& list = lists.emplace_back();
    for (std::size_t item = 0; item < entries.size(); ++item) {
      const EntryShapes& entry = entries[item];
      ScopedEntry made{.scope = scope_of(entry.scope, entry.mask.has_value(), grid, levels),
                       .list = lists.size() - 1,
                       .item = item,
                       .control_list = lists.size() - 1,
                       .control_item = item};
      if (made.scope.bounded_by_mask) return {};
      list.push_back(std::move(made));
    }
  }
  add_opposites(lists);
  join_entries(lists, all);
  return lists;
}

// Default entries count where others leave something. Where those have masks nobody knows, and all
// are taken.
std::vector<bool> counting(const std::vector<ScopedEntry>& list,
                           const std::vector<std::size_t>& entries, const Shape& grid) {
  std::vector<Weighed> weighed;
  bool has_mask = false, has_default = false;
  for (const std::size_t i : entries) {
    weighed.push_back({&list[i].scope, nullptr});
    has_mask = has_mask || list[i].scope.has_mask;
    has_default = has_default || list[i].scope.is_default;
  }
  std::vector<bool> counts(entries.size(), true);
  if (has_mask || !has_default) return counts;
  const std::vector<CellWeights> weights = cell_weights(weighed, grid, 1);
  for (std::size_t k = 0; k < weights.size(); ++k) counts[k] = weights[k].counts;
  return counts;
}

// As they came, in the point's size, and as the model reads them.
double shown_numbers(const Constants& constants) {
  double numbers = 0;
  for (const Infer::Named& one : constants)
    if (is_shown_input(one.name)) numbers += 3 * count_of(one.shape);
  return numbers;
}

// The context windows of a stretch; none: its model sees the whole point. `looked_at`: lists and
// items whose reference pictures an earlier one has shown to a model that keeps them.
struct ToldWindows {
  const WindowSchedule* schedule = nullptr;
  ContextWindows windows = {};
  std::set<std::pair<std::size_t, std::size_t>>* looked_at = nullptr;
  // Of the stretch's first evaluation.
  const NoiseLevels* levels = nullptr;
  double sigma = 0;
  SharedControls* told = nullptr;             // of the run
  std::vector<ToldPatch>* patches = nullptr;  // of the run
};

// What a stretch asks its models for. Throws as a run does where areas and windows meet.
std::vector<ModelSet> sets_in(const ScopedLists& lists, const Stretch& stretch,
                              const ToldWindows& told, const Shape& grid) {
  const WindowSchedule* const schedule = told.schedule;
  const ContextWindows& windows = told.windows;
  std::vector<ModelSet> wanted;
  for (std::size_t window = 0; window < std::max<std::size_t>(windows.size(), 1); ++window) {
    const Stretch seen =
        windows.empty() ? stretch : in_window(stretch, lists, *schedule, windows[window]);
    for (std::size_t list = 0; list < lists.size(); ++list) {
      const std::vector<bool> counts = counting(lists[list], seen.entries[list], grid);
      for (std::size_t k = 0; k < counts.size(); ++k) {
        if (!counts[k]) continue;
        const ScopedEntry& entry = lists[list][seen.entries[list][k]];
        if (schedule != nullptr) check_scope(entry.scope, schedule->rule());
        ModelSet set = set_of(entry, seen.weights[list][k], grid);
        set.window = window;
        index_of(wanted, set);
      }
    }
  }
  return wanted;
}

double kept_numbers(const Constants& constants) {
  double numbers = 0;
  for (const Infer::Named& one : constants)
    if (is_kept(one.name)) numbers += count_of(one.shape);
  return numbers;
}

// The calls of a stretch; none where an entry lacks something.
std::optional<std::vector<ToldCall>> calls_in(const JobShapes& job, const EntryLists& entries,
                                              const ScopedLists& lists, const GuidePlan& plan,
                                              HookStrengths& hooks, const Stretch& stretch,
                                              const ToldWindows& told_windows) {
  const Shape grid(job.latent.begin() + 2, job.latent.end());
  const auto& [schedule, windows, looked_at, levels, sigma, told_run, patches] = told_windows;
  const std::vector<ModelSet> wanted = sets_in(lists, stretch, told_windows, grid);
  std::vector<ModelCall> asked = calls_of(stretch, wanted);
  const std::int64_t items = job.latent.front();
  Record latent;
  if (job.has_noise_mask) latent.set("noise_mask", value_of(true));
  const Value shown = latent.value();
  std::vector<Constants> constants(wanted.size());
  std::vector<ToldCall> encodings;  // of hints that model patches read
  for (const ModelCall& call : asked) {
    const AskedModel& told = plan.models()[call.model];
    const Value& model = told.model;
    const auto inputs = conditioning_inputs(model);
    for (const std::size_t place : call.sets) {
      const ModelSet& set = wanted[place];
      std::optional<Constants> made = constants_of(
          entries[set.list][set.item], inputs, model,
          {.items = items, .grid = grid, .box = set.box, .latent = shown, .parts = job.parts});
      const Shape point = job.parts.empty() ? point_of(job.latent, set.box) : job.parts.front();
      if (!made || !tell_patches(*made, encodings, model, told.levels, sigma, point, *patches))
        return {};
      if (has_reference_cache(model) && !looked_at->emplace(set.list, set.item).second) {
        constants[place] = kept_shapes(*made, model, items);
        continue;
      }
      add_kept_frames(job, model, *made);
      constants[place] = windows.empty() ? *made
                                         : constants_in(*made, schedule->rule(),
                                                        windows[set.window], schedule->full());
    }
  }
  if (plan.nag())
    asked = in_pairs(std::move(asked), wanted, [&](std::size_t positive, std::size_t negative) {
              return unlike(constants[positive], constants[negative]);
            }).calls;
  std::vector<ControlledSet> controlled;
  for (const ModelSet& set : wanted)
    controlled.push_back({&entries[set.list][set.item],
                          plan.models()[stretch.models[set.list]].model,
                          point_of(job.latent, set.box)});
  std::optional<ToldControls> controls =
      told_controls(controlled, *levels, sigma, stretch.count, *told_run);
  if (!controls) return {};
  std::vector<ToldCall> calls = std::move(controls->calls);
  std::ranges::move(encodings, std::back_inserter(calls));
  for (const ModelCall& call : asked) {
    ToldCall& told = calls.emplace_back();
    told.model = hooks.model(call.model, plan.models()[call.model].model, call.weights);
    told.steps = stretch.count;
    told.predictions = call.sets.size() * (call.pairs ? 2 : 1);
    for (std::size_t k = 0; k < call.sets.size(); k += call.pairs ? 2 : 1) {
      const std::size_t place = call.sets[k];
      told.shown = std::max(told.shown, shown_numbers(constants[place]));
      told.kept += kept_numbers(constants[place]);
      Shape x = point_of(job.latent, wanted[place].box);
      if (!windows.empty()) x[schedule->axis()] = windows[wanted[place].window].seen_count();
      Constants steps = point_shapes(job, x);
      steps.insert(steps.end(), controls->residuals[place].begin(),
                   controls->residuals[place].end());
      told.sets.push_back(
          {call.pairs ? paired_shapes(constants[place], constants[call.sets[k + 1]], x.front())
                      : constants[place],
           std::move(steps)});
    }
  }
  return calls;
}

// A guide whose conditionings only say that they are there.
Guide guide_of(const JobShapes& job) {
  const Value there = value_of(true);
  return {.model = job.model,
          .positive = there,
          .negative = job.negative.empty() ? Value() : there,
          .cfg = *job.cfg,
          .mix = job.mix,
          .third = job.third.empty() ? Value() : there,
          .number = job.number,
          .negative_model = job.negative_model};
}

// A text that the model cannot read, and a ControlNet for another model, are refused before
// anything runs. Whether a negative one is asked for at all is known by cfg.
void check_texts(const JobShapes& job) {
  for (const EntryShapes& entry : job.positive)
    if (entry.text.rank > 0) check_text_width(entry.text.shape[entry.text.rank - 1], job.model);
  for (const EntryShapes& entry : job.positive) check_controls(entry.scope, job.model);
  if (*job.cfg == 1 || job.negative_model.is(HEDDLE_KIND_MODEL)) return;
  for (const EntryShapes& entry : job.negative) check_controls(entry.scope, job.model);
  for (const EntryShapes& entry : job.negative)
    if (entry.text.rank > 0) check_text_width(entry.text.shape[entry.text.rank - 1], job.model);
}

// What the negative conditioning is asked for by itself (second_look.h).
JobShapes second_look_of(const JobShapes& job) {
  JobShapes again = job;
  again.model =
      without_patches(job.negative_model.is(HEDDLE_KIND_MODEL) ? job.negative_model : job.model);
  again.positive = with_inherited_of(job.positive, job.negative);
  again.negative = {};
  again.third = {};
  again.mix = Mix::kCfg;
  again.cfg = 1.0;
  again.negative_model = {};
  return again;
}

// The models that entries with boxes are asked of.
JobShapes with_boxes(JobShapes job) {
  const auto joined = [&](const Value& model) {
    Value all = model;
    for (const auto* list : {&job.positive, &job.negative, &job.third})
      for (const EntryShapes& entry : *list) all = with_gligen_of(all, entry.scope);
    return all;
  };
  const Value model = joined(job.model);
  if (job.negative_model.is(HEDDLE_KIND_MODEL)) job.negative_model = joined(job.negative_model);
  job.model = model;
  return job;
}

// Adapters see the same hint at all levels.
Constants schedule_of(const ToldCall& call) {
  if (!model_takes(call.model, "timestep")) return {};
  Constants told{{"timestep", HEDDLE_F32, {std::int64_t(call.steps)}}};
  for (const char* name : {kTargetTimestep, kSoundTimestep, kSoundCarry, kSoundKept, kSoundGain})
    if (model_takes(call.model, name))
      told.push_back({name, HEDDLE_F32, {std::int64_t(call.steps)}});
  tell_head_weights(told, call.model, std::int64_t(call.steps));
  return told;
}

}  // namespace

RunScratch infer_run(Infer& question, const JobShapes& told) {
  if (!told.model.is(HEDDLE_KIND_MODEL) || told.positive.empty() || !told.cfg || !told.sampler ||
      !told.sigmas || told.latent.empty())
    return {};
  if (told.sigmas->empty()) return {};  // the latent is handed on
  const JobShapes job = with_boxes(told);
  check_texts(job);
  try {
    const heddle_sampler_desc& sampler = sampler_named(job.sampler->name);
    const ModelSampling sampling = model_sampling(job.model);
    RunPlan run = plan_levels(sampler, *job.sampler, *job.sigmas, sampling);
    add_clean_look(job, run);
    const bool looks_twice = (sampler.flags & HEDDLE_SAMPLER_LOOKS_TWICE) != 0;
    const GuidePlan plan(guide_of(job), sampling, looks_twice);
    std::optional<EntryLists> entries = lists_of(job, plan);
    if (!entries) return {};
    const std::optional<ScopedLists> lists = scoped_lists(job, *entries, sampling.levels);
    if (!lists) return {};
    HookStrengths hooks(sampling.levels, highest_of(run));
    std::optional<WindowSchedule> schedule =
        WindowSchedule::of(model_settings(job.model), job.latent, run.levels);
    if (schedule && !job.parts.empty()) return {};  // the run refuses it
    const std::vector<double> sigmas = run.sigmas();
    std::vector<Stretch> stretches = stretches_of(*lists, plan, hooks, sigmas);
    std::vector<std::uint64_t> steps;
    std::set<std::pair<std::size_t, std::size_t>> looked_at;
    if (ReferenceCache::of(plan, schedule.has_value())) stretches = FirstLooks().apart(stretches);
    if (schedule) {
      for (const double sigma : sigmas) steps.push_back(schedule->step_of(sigma));
      stretches =
          cut_by_windows(stretches, steps, *schedule, reads_by_places(schedule->rule(), plan));
    }
    std::vector<ToldCall> calls;
    std::size_t most_sets = 0;
    double shown = 0, references = 0;
    SharedControls told_run;
    std::vector<ToldPatch> patches;
    for (const Stretch& stretch : stretches) {
      ToldWindows windows{.looked_at = &looked_at,
                          .levels = &sampling.levels,
                          .sigma = sigmas[stretch.begin],
                          .told = &told_run,
                          .patches = &patches};
      if (schedule) {
        windows.schedule = &*schedule;
        windows.windows = schedule->at(steps[stretch.begin]);
      }
      const std::optional<std::vector<ToldCall>> now =
          calls_in(job, *entries, *lists, plan, hooks, stretch, windows);
      if (!now) return {};
      std::size_t sets = 0;
      double kept = 0;
      for (const ToldCall& call : *now) {
        sets += call.predictions;
        kept += call.kept;
        shown = std::max(shown, call.shown);
      }
      most_sets = std::max(most_sets, sets);
      references = std::max(references, kept);
      calls.insert(calls.end(), now->begin(), now->end());
    }
    const RunScratch scratch =
        infer_cost(question, job, run, most_sets, sampler, plan, shown, references);
    for (const ToldCall& call : calls)
      if (call.steps == 0)
        question.call(call.model, call.sets);
      else
        question.call(call.model, call.sets, schedule_of(call),
                      checked_cast<std::uint32_t>(call.steps, "steps"));
    if (plan.looks_again()) infer_run(question, second_look_of(job));
    return scratch;
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
  return {};
}

}  // namespace heddle::samplers
