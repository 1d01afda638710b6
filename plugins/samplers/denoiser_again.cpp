// What a denoiser does beside its evaluations: what it keeps between them, and the second look that
// patches ask for.
#include "pair_latent.h"
#include "second_look.h"

namespace heddle::samplers {

Denoiser::~Denoiser() = default;

void Denoiser::show(const Value& latent, std::uint64_t seed) {
  conditionings_.show(latent, seed);
  if (caches_.again) caches_.again->denoiser().show(latent, seed);
}

void Denoiser::use_parts(std::vector<Shape> parts) {
  if (opened_.windows)
    throw Error(HEDDLE_UNSUPPORTED,
                "pictures with their sound are not seen in context windows yet. Leave out the "
                "context windows node.");
  for (const auto& list : conditionings_.lists())
    for (const ScopedEntry& entry : list)
      if (!entry.scope.counts_everywhere())
        throw Error(HEDDLE_UNSUPPORTED,
                    "a conditioning has an area or a mask, and the latent pictures with their "
                    "sound, which have no places in common. Leave the area out.");
  if (caches_.again) caches_.again->denoiser().use_parts(parts);
  conditionings_.use_parts(parts);
  opened_.parts = std::move(parts);
}

void Denoiser::use_frames(FrameCache& frames) {
  if (controls_) refuse_frames_with("ControlNets");
  if (plan_.nag()) refuse_frames_with("NAGuidance");
  if (caches_.again) refuse_frames_with("guidance that looks twice, such as SelfAttentionGuidance");
  for (const auto& list : conditionings_.lists())
    for (const ScopedEntry& entry : list)
      if (!entry.scope.counts_everywhere()) refuse_frames_with("areas and masks of conditionings");
  caches_.frames = &frames;
}

Value Denoiser::with_kept(const ModelSet& set, const Value& constants) const {
  if (caches_.references) return caches_.references->constants(set, constants);
  return caches_.frames->constants(model_of(set), set, constants);
}

void Denoiser::keep_made(std::size_t set, const Value& made) {
  if (caches_.references) caches_.references->made(ctx_, run_->sets[set], made);
  if (caches_.frames != nullptr) caches_.frames->made(run_->sets[set], made);
  if (caches_.again && run_->sets[set].list == kNegativeOfLists) caches_.again->saw(made);
}

bool Denoiser::take_turns() {
  calls_.take_turns();
  if (controls_) controls_->take_turns();
  return true;
}

// Where there is no memory for the sessions of both looks, each gives way to the other's.
void Denoiser::look_again(const Sigmas& levels) {
  caches_.again = SecondLook::of(ctx_, plan_, sampling_, shape_, levels);
  if (!caches_.again) return;
  Denoiser& again = caches_.again->denoiser();
  calls_.share_with([this, &again] {
    if (controls_) controls_->take_turns();
    return again.take_turns();
  });
  again.share_with([this, &again] {
    again.take_turns();
    return take_turns();
  });
}

void Denoiser::archive(StateArchive& state) {
  state("evaluation", run_->next);
  std::size_t count = opened_.levels.size();
  state("opened", count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> sigmas =
        i < opened_.levels.size() ? opened_.levels[i] : std::vector<double>();
    state("opened " + std::to_string(i), sigmas);
    std::vector<std::uint64_t> steps;
    if (i >= opened_.levels.size()) stretches_over(sigmas, steps);
  }
  patches_.archive(state);
  if (caches_.again)
    state.under("again ", [&](StateArchive& inner) { caches_.again->archive(inner); });
  if (caches_.outputs) caches_.outputs->archive(state);
  if (caches_.references) caches_.references->archive(state);
  if (!caches_.lazy) return;
  caches_.lazy->archive(state);
  state("lazily_added", last_.lazily_added);
  state("last_unconditioned", last_.seen.unconditioned);
}

Tensor Denoiser::patched(const Look& look) {
  const std::pmr::vector<float> x = numbers(look.x);
  GuidedPoint point{.shape = shape_, .sigma = look.sigma, .x = x, .predictions = {}};
  const Stretch& stretch = run_->stretches[run_->now];
  for (std::size_t list = 0; list < run_->lists.front().size(); ++list) {
    const bool needed = stretch.needed[list];
    point.predictions.push_back(
        needed ? numbers(or_zeros(ctx_, prediction(look, list), look.x.shape()))
               : std::pmr::vector<float>(&memory_));
  }
  if (opened_.parts.size() > 1) {
    point.pictures = 1;
    const Shape& pictures = opened_.parts.front();
    for (std::size_t axis = 1; axis < pictures.size(); ++axis)
      point.pictures *= std::size_t(pictures[axis]);
  }
  if (caches_.again) {
    point.attended = caches_.again->attended();
    point.look_again = [&](std::span<const float> state) {
      // Of this evaluation, though there may have been some without a second look.
      caches_.again->denoiser().run_->next = run_->next - 1;
      return caches_.again->look(state, look.sigma);
    };
  }
  const std::pmr::vector<float> result = patches_(point, memory_);
  return ctx_.upload(shape_, HEDDLE_F32, result.data());
}

}  // namespace heddle::samplers
