#include "denoiser.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>

#include "attention_pairs.h"
#include "pair_latent.h"
#include "parallel_heads.h"
#include "plugins/blocks/sparse_config.h"
#include "run_plan.h"
#include "second_look.h"
#include "sound_levels.h"
#include "window_stretches.h"
#include "window_tensors.h"

namespace heddle::samplers {
namespace {

bool is_scalar(const auto& uses) {
  return std::ranges::all_of(uses, [](const auto& use) { return !use.map; });
}

// False: none of them has any strength, and the list predicts a picture of zeros, as in ComfyUI.
bool draws(const auto& uses) {
  return std::ranges::any_of(uses, [](const auto& use) { return use.weight != 0.0; });
}

}  // namespace

Denoiser::Denoiser(Context& ctx, const GuidePlan& plan, const ModelSampling& sampling,
                   const Shape& shape, const Sigmas& levels, bool looks_twice)
    : ctx_(ctx),
      plan_(plan),
      sampling_(sampling),
      shape_(shape),
      looks_twice_(looks_twice),
      memory_(ctx),
      conditionings_(ctx, plan, sampling.levels, shape),
      calls_(ctx, HookStrengths(sampling.levels, *std::ranges::max_element(levels))),
      patches_(plan, sampling, memory_),
      caches_{.patches = PatchHints(ctx)} {
  const Value settings = model_settings(plan.guide().model);
  opened_.asked = levels;
  opened_.windows = WindowSchedule::of(settings, shape, levels);
  if (const auto easy = step_cache_of(settings, "easy_cache", sampling.levels))
    caches_.outputs.emplace(*easy);
  if (nag_of(settings) && !plan.nag())
    ctx.warn("NAGuidance changes nothing: the model '" + model_family(plan.guide().model) +
             "' has no attention that it can guide.");
  if (const auto note = settings.get<std::string>(blocks::kSparseNote, ""); !note.empty())
    ctx.warn(note);
  if (const auto lazy = step_cache_of(settings, "lazy_cache", sampling.levels))
    caches_.lazy.emplace(*lazy, true);
  caches_.references = ReferenceCache::of(plan, opened_.windows.has_value());
  for (const AskedModel& asked : plan.models())
    if (reads_patches(asked.model))
      refuse_with_patches(opened_.windows.has_value(), plan.nag().has_value());
  if (opened_.windows && conditionings_.has_boxes())
    throw Error(HEDDLE_UNSUPPORTED,
                "GLIGENTextBoxApply places boxes in the whole picture, which does not go together "
                "with context windows. Leave out one of the two.");
  if (conditionings_.has_controls()) {
    refuse_with_controls(opened_.windows.has_value(), plan.nag().has_value());
    controls_.emplace(ctx);
    calls_.share_with([this] { return controls_->take_turns(); });
  }
  look_again(levels);
}

void Denoiser::open(const SamplerPlan& plan) {
  run_.emplace();
  for (const auto& step : plan)
    for (const Evaluation& evaluation : step) run_->sigmas.push_back(evaluation.sigma);
  run_->stretches = stretches_over(run_->sigmas, run_->steps);
  if (caches_.again) caches_.again->denoiser().open(plan);
}

std::vector<Stretch> Denoiser::stretches_over(const std::vector<double>& sigmas,
                                              std::vector<std::uint64_t>& steps) {
  opened_.levels.push_back(sigmas);
  std::vector<Stretch> stretches =
      stretches_of(conditionings_.lists(), plan_, calls_.hooks(), sigmas);
  if (caches_.references) stretches = caches_.references->first_looks().apart(stretches);
  if (!opened_.windows) return stretches;
  for (const double sigma : sigmas) steps.push_back(opened_.windows->step_of(sigma));
  return cut_by_windows(stretches, steps, *opened_.windows,
                        reads_by_places(opened_.windows->rule(), plan_));
}

const ContextWindows& Denoiser::windows_of(std::size_t evaluation) {
  static const ContextWindows kNone;
  return opened_.windows ? opened_.windows->at(run_->steps[evaluation]) : kNone;
}

void Denoiser::enter(const Stretch& stretch) {
  run_->entered = true;
  calls_.close();
  if (controls_) controls_->close();
  run_->sets.clear();
  run_->lists.clear();
  const ContextWindows& windows = windows_of(stretch.begin);
  for (std::size_t k = 0; k < std::max<std::size_t>(windows.size(), 1); ++k) {
    const Stretch seen = windows.empty() ? stretch
                                         : samplers::in_window(stretch, conditionings_.lists(),
                                                               *opened_.windows, windows[k]);
    std::vector<std::vector<Use>>& lists = run_->lists.emplace_back();
    for (std::size_t list = 0; list < seen.entries.size(); ++list)
      lists.push_back(uses_of(seen, list, k));
  }
  if (controls_) open_controls(stretch);
  for (ModelCall& call : calls_in(stretch)) {
    const AskedModel& asked = plan_.models()[call.model];
    std::vector<Value> constants = constants_of(call);
    calls_.open({.call = std::move(call),
                 .own = asked.model,
                 .constants = std::move(constants),
                 .schedule = schedule_of(asked, stretch),
                 .steps = checked_cast<std::uint32_t>(stretch.count, "steps")});
  }
}

// What the model is told about each evaluation.
Value Denoiser::schedule_of(const AskedModel& asked, const Stretch& stretch) {
  const auto told = [&](auto&& level_at) {
    const Tensor schedule = ctx_.make_host({std::int64_t(stretch.count)}, HEDDLE_F32);
    for (std::size_t k = 0; k < stretch.count; ++k)
      schedule.data<float>()[k] =
          asked.levels.timestep(float(level_at(run_->sigmas[stretch.begin + k])));
    return value_of(schedule);
  };
  Record schedule;
  schedule.set("timestep", told([](double sigma) { return sigma; }));
  if (model_takes(asked.model, kTargetTimestep))
    schedule.set(kTargetTimestep,
                 told([&](double sigma) { return level_behind(opened_.asked, sigma); }));
  add_sound_levels(ctx_, asked.model, std::span(run_->sigmas).subspan(stretch.begin, stretch.count),
                   schedule);
  add_head_weights(ctx_, asked.model, opened_.asked,
                   std::span(run_->sigmas).subspan(stretch.begin, stretch.count), schedule);
  return schedule.value();
}

void Denoiser::open_controls(const Stretch& stretch) {
  std::vector<ControlNets::Asked> sets;
  for (const ModelSet& set : run_->sets) {
    sets.push_back({conditionings_.entry(set), model_of(set), point_of(shape_, set.box),
                    conditionings_.grid(), conditionings_.seed()});
  }
  controls_->open(sets, sampling_.levels,
                  std::span(run_->sigmas).subspan(stretch.begin, stretch.count));
}

std::vector<ModelCall> Denoiser::calls_in(const Stretch& stretch) {
  std::vector<ModelCall> calls = calls_of(stretch, run_->sets);
  if (!plan_.nag()) return calls;
  const auto shapes = [&](std::size_t set) { return shapes_of(set_constants(set)); };
  PairedCalls paired =
      in_pairs(std::move(calls), run_->sets, [&](std::size_t positive, std::size_t negative) {
        return unlike(shapes(positive), shapes(negative));
      });
  if (!paired.lacking.empty() && !last_.warned) {
    last_.warned = true;
    ctx_.warn(
        "NAGuidance changes nothing where the model cannot see positive and negative "
        "conditioning together: " +
        paired.lacking + ".");
  }
  return std::move(paired.calls);
}

std::vector<Value> Denoiser::constants_of(const ModelCall& call) {
  std::vector<Value> constants;
  for (const std::size_t set : call.sets) constants.push_back(set_constants(set));
  if (!call.pairs) return constants;
  const ContextWindows& windows = windows_of(run_->stretches[run_->now].begin);
  const bool is_part = !windows.empty() && opened_.windows->axis() == 0;
  std::vector<Value> paired;
  for (std::size_t k = 0; k < constants.size(); k += 2) {
    const std::int64_t items =
        is_part ? windows[run_->sets[call.sets[k]].window].seen_count() : shape_.front();
    paired.push_back(paired_constants(ctx_, *plan_.nag(), constants[k], constants[k + 1], items));
  }
  return paired;
}

Value Denoiser::set_constants(std::size_t place) {
  const ModelSet& set = run_->sets[place];
  const Value& read = conditionings_.constants(ctx_, model_of(set), set);
  const std::size_t evaluation = run_->stretches[run_->now].begin;
  const auto& [model, levels] = plan_.models()[run_->stretches[run_->now].models[set.list]];
  const Shape point = opened_.parts.empty() ? point_of(shape_, set.box) : opened_.parts.front();
  const Value all = caches_.patches.added(read, model, levels, run_->sigmas[evaluation], point,
                                          set.list == kNegativeOfLists);
  if (caches_.references || caches_.frames != nullptr) return with_kept(set, all);
  const ContextWindows& windows = windows_of(evaluation);
  if (windows.empty()) return all;
  return constants_in(ctx_, all, opened_.windows->rule(), windows[set.window],
                      opened_.windows->full());
}

const Value& Denoiser::model_of(const ModelSet& set) const {
  return plan_.models()[run_->stretches[run_->now].models[set.list]].model;
}

std::vector<Denoiser::Use> Denoiser::uses_of(const Stretch& stretch, std::size_t list,
                                             std::size_t window) {
  const std::vector<std::size_t>& entries = stretch.entries[list];
  const std::vector<ScopedEntry>& scoped = conditionings_.lists()[list];
  const auto index_of_entry = [&](std::size_t k) {
    ModelSet set = set_of(scoped[entries[k]], stretch.weights[list][k], conditionings_.grid());
    set.window = window;
    return index_of(run_->sets, set);
  };
  std::vector<Use> uses;
  const bool everywhere = std::ranges::all_of(
      entries, [&](std::size_t i) { return scoped[i].scope.counts_everywhere(); });
  if (everywhere) {
    double total = 0.0;
    for (const std::size_t i : entries) total += scoped[i].scope.strength;
    for (std::size_t k = 0; k < entries.size(); ++k) {
      const double weight = scoped[entries[k]].scope.strength;
      uses.push_back(
          {.set = index_of_entry(k), .weight = total == 0.0 ? weight : weight / total, .map = {}});
    }
    return uses;
  }
  if (opened_.windows)
    for (const std::size_t i : entries) check_scope(scoped[i].scope, opened_.windows->rule());
  const ContextWindows& windows = windows_of(stretch.begin);
  const std::vector<CellWeights> weights = conditionings_.weights(list, entries);
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (!weights[k].counts) continue;
    Shape shape{weights[k].rows, 1};
    shape.insert(shape.end(), weights[k].box.size.begin(), weights[k].box.size.end());
    Tensor map = ctx_.upload(shape, HEDDLE_F32, weights[k].values.data());
    // Here windows lie along the batch.
    if (!windows.empty() && shape[0] > 1)
      map = with_places(ctx_, map, 0, windows[window].seen(shape[0]));
    uses.push_back({.set = index_of_entry(k), .weight = 1.0, .map = map});
  }
  return uses;
}

Seen Denoiser::operator()(const Tensor& point, double sigma) {
  const Tensor x = held_.mask ? held_.mask->before(ctx_, point, sigma) : point;
  Seen seen = see(held_.begin ? held_.begin->in(ctx_, x) : x, sigma);
  if (held_.mask) seen.denoised = held_.mask->after(ctx_, seen.denoised);
  return seen;
}

Seen Denoiser::see(const Tensor& x, double sigma) {
  const std::size_t evaluation = run_->next++;
  const bool follows = caches_.lazy && caches_.lazy->follows(sigma);
  std::pmr::vector<float> in(&memory_);
  if (follows) {
    in = numbers(x);
    if (caches_.lazy->is_little(sigma, in, shape_, bool(last_.lazily_added)))
      return {ops::combine(ctx_, {{1.0, x}, {1.0, last_.lazily_added}}), last_.seen.unconditioned};
  }
  for (const auto& all = run_->stretches;
       run_->now + 1 < all.size() && all[run_->now + 1].begin <= evaluation; ++run_->now)
    run_->entered = false;
  if (!run_->entered) enter(run_->stretches[run_->now]);

  const double timestep = sampling_.levels.timestep(float(sigma));
  Look look{x, sigma, model_terms(sampling_.prediction, sigma, timestep), {}, {}, {}};
  run_model(look);
  Seen seen{plan_.is_patched() ? patched(look) : mixed(look), {}};
  if (looks_twice_)
    seen.unconditioned = or_zeros(ctx_, prediction(look, kNegativeOfLists), x.shape());
  if (follows) {
    const std::pmr::vector<float> out = numbers(seen.denoised);
    caches_.lazy->made(sigma, in, out, shape_, mean_size(out));
    last_.lazily_added = ops::combine(ctx_, {{1.0, seen.denoised}, {-1.0, x}});
  }
  last_.seen = seen;
  return seen;
}

std::pmr::vector<float> Denoiser::numbers(const Tensor& tensor) {
  std::pmr::vector<float> values(std::size_t(tensor.count()), &memory_);
  read_to<float>(ctx_, tensor, values);
  return values;
}

Tensor Denoiser::part_of(const Tensor& x, const std::optional<Box>& box) {
  if (!box) return x;
  Tensor part = x;
  for (std::size_t axis = 0; axis < box->size.size(); ++axis)
    part = part.slice(int(axis + 2), box->begin[axis], box->begin[axis] + box->size[axis]);
  return ops::contiguous(ctx_, part);
}

void Denoiser::run_model(Look& look) {
  const auto as_input = [&](const Tensor& seen) {
    return point_input(ctx_, sum_of(ctx_, {{look.terms.input, seen}}), opened_.parts);
  };
  const ContextWindows& windows = windows_of(run_->next - 1);
  for (const ContextWindow& window : windows)
    look.windows.push_back(
        with_places(ctx_, look.x, opened_.windows->axis(),
                    window.seen(opened_.windows->full(), opened_.windows->rule().latent_retained)));
  if (windows.empty()) look.windows.push_back(look.x);
  std::vector<Value> whole, inputs;
  for (const Tensor& seen : look.windows) whole.push_back(as_input(seen));
  std::vector<SetInput> measured;
  for (std::size_t k = 0; k < run_->sets.size(); ++k) {
    ModelSet set = run_->sets[k];
    look.parts.push_back(part_of(look.windows[set.window], set.box));
    inputs.push_back(set.box ? as_input(look.parts.back()) : whole[set.window]);
    if (!caches_.outputs) continue;
    if (!windows.empty()) set.places = windows[set.window].seen(opened_.windows->full());
    measured.push_back(
        {set, opened_.parts.empty() ? inputs.back().field("x").as<Tensor>() : look.parts.back(),
         set_constants(k)});
  }
  if (run_->sets.empty()) return;
  if (caches_.outputs) look.outputs = caches_.outputs->guess(ctx_, look.sigma, measured);
  if (!look.outputs.empty()) return;
  const Stretch& stretch = run_->stretches[run_->now];
  const std::size_t step = run_->next - 1 - stretch.begin;
  std::function<void(std::size_t, const Value&)> keep;
  if (caches_.references || caches_.again || caches_.frames != nullptr)
    keep = [this](std::size_t set, const Value& made) { keep_made(set, made); };
  if (controls_)
    controls_->add_residuals(std::uint32_t(step), inputs, [this] { calls_.take_turns(); });
  look.outputs = calls_.step(std::uint32_t(step), inputs, keep);
  if (caches_.outputs) caches_.outputs->made(ctx_, look.sigma, measured, look.outputs);
}

// Each prediction times its map, in its box.
Tensor Denoiser::mapped(const Look& look, std::size_t list, std::size_t window) {
  std::vector<ops::Term> terms;
  for (const Use& use : run_->lists[window][list]) {
    const Tensor seen = sum_of(
        ctx_, {{look.terms.x, look.parts[use.set]}, {look.terms.output, look.outputs[use.set]}});
    const Tensor weighed = ops::mul(ctx_, seen, use.map);
    const std::optional<Box>& box = run_->sets[use.set].box;
    if (!box) {
      terms.push_back({1.0, weighed});
      continue;
    }
    const Tensor whole = or_zeros(ctx_, {}, look.windows[window].shape());
    Tensor there = whole;
    for (std::size_t axis = 0; axis < box->size.size(); ++axis)
      there = there.slice(int(axis + 2), box->begin[axis], box->begin[axis] + box->size[axis]);
    ops::copy_into(ctx_, weighed, there);
    terms.push_back({1.0, whole});
  }
  return sum_of(ctx_, std::move(terms));
}

// Empty: a picture of zeros.
Tensor Denoiser::in_window(const Look& look, std::size_t list, std::size_t window) {
  const std::vector<Use>& uses = run_->lists[window][list];
  if (!is_scalar(uses)) return mapped(look, list, window);
  if (!draws(uses)) return {};
  std::vector<ops::Term> parts{{look.terms.x, look.windows[window]}};
  for (const Use& use : uses)
    parts.push_back({look.terms.output * use.weight, look.outputs[use.set]});
  return sum_of(ctx_, std::move(parts));
}

Tensor Denoiser::prediction(const Look& look, std::size_t list) {
  const ContextWindows& windows = windows_of(run_->next - 1);
  if (windows.empty()) return in_window(look, list, 0);
  std::vector<Tensor> made;
  for (std::size_t k = 0; k < windows.size(); ++k)
    made.push_back(or_zeros(ctx_, in_window(look, list, k), look.windows[k].shape()));
  return joined(ctx_, made, windows, opened_.windows->axis(), look.x.shape());
}

Tensor Denoiser::mixed(const Look& look) {
  const std::vector<double> factors = plan_.factors_at(look.sigma);
  std::vector<ops::Term> parts{{0.0, look.x}};
  double drawn = 0.0;
  bool all_draw = true;
  for (std::size_t list = 0; list < factors.size(); ++list) {
    if (factors[list] == 0.0) continue;
    const std::vector<Use>& uses = run_->lists.front()[list];
    const bool scalar = is_scalar(uses) && !opened_.windows;
    if (scalar && draws(uses))
      drawn += factors[list];
    else
      all_draw = false;
    if (scalar)
      for (const Use& use : uses)
        parts.push_back({look.terms.output * (factors[list] * use.weight), look.outputs[use.set]});
    else if (const Tensor seen = prediction(look, list))
      parts.push_back({factors[list], seen});
  }
  // The factors of all lists add up to 1.
  parts.front().coefficient = look.terms.x * (all_draw ? 1.0 : drawn);
  return or_zeros(ctx_, sum_of(ctx_, std::move(parts)), look.x.shape());
}

}  // namespace heddle::samplers
