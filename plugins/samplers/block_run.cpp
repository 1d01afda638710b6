#include "block_run.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/resume.hpp>

#include "conditioning.h"
#include "denoiser.h"
#include "frame_cache.h"
#include "host_latent.h"
#include "model_sampling.h"
#include "noise_mask.h"
#include "preview.h"
#include "random.h"
#include "state_archive.h"
#include "vace_input.h"
#include "video_begin.h"

namespace heddle::samplers {
namespace {

constexpr int kBlockAxis = 2;                  // the axis
constexpr std::uint64_t kSeedsOfBlock = 1000;  // ComfyUI's: of the noise between two steps

// The evaluation in which the model looks at frames without noise.
Evaluation clean_evaluation() { return {.sigma = 0.0, .next = {}, .start = {}}; }

Shape block_shape(Shape latent, const FrameBlock& block) {
  latent[kBlockAxis] = block.count;
  return latent;
}

[[noreturn]] void refuse_blocks(const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "SamplerARVideo: " + what);
}

// Levels as a block goes through them.
void check_block_levels(const Sigmas& levels) {
  if (levels.size() > 1 && levels.back() != 0.0f)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "sigmas: they end at " + std::to_string(levels.back()) +
                    "; SamplerARVideo needs levels that end at 0, as BasicScheduler makes with "
                    "denoise 1.");
}

// Frames that the model is given, in its units: (1, C, n, h, w); empty without any.
Tensor first_frames(Context& ctx, const Value& settings, const Shape& latent) {
  const Value told = settings.field(kFirstFrames);
  if (!told.is(HEDDLE_KIND_TENSOR)) return {};
  const Tensor given = told.as<Tensor>();
  Shape like = latent;
  like[0] = 1;
  if (given.rank() == like.size()) like[kBlockAxis] = given.size(kBlockAxis);
  if (given.shape() != like || like[kBlockAxis] > latent[kBlockAxis])
    refuse_blocks("the model's first frames are of " + shape_text(given.shape()) +
                  ", and the latent of " + shape_text(latent) +
                  ". Take model and latent from one ARVideoI2V.");
  const Tensor raw = ctx.make(given.shape(), HEDDLE_F32);
  ops::copy_into(ctx, given, raw);
  const Tensor made = ctx.make(given.shape(), HEDDLE_F32);
  to_model_units(ctx, raw, latent_format(settings), made);
  return made;
}

// A run at work.
class InBlocks {
 public:
  InBlocks(Context& ctx, const SampleJob& job, const ModelSampling& sampling, const RunPlan& run,
           const Tensor& x, HostMemory& memory)
      : ctx_(ctx),
        sampling_(sampling),
        run_(run),
        guide_(job.guide, sampling, false),
        seed_(job.noise.seed),
        x_(x),
        memory_(memory),
        previews_(ctx, model_settings(job.guide.model)),
        cache_(ctx, guide_, x.size(0)) {}

  Tensor follow(const Tensor& given, std::int64_t each) {
    const std::vector<FrameBlock> blocks =
        frame_blocks(x_.size(kBlockAxis), given ? given.size(kBlockAxis) : 0, each);
    count_ = std::size_t(std::ranges::count(blocks, false, &FrameBlock::is_given));
    at_.result = ctx_.make(x_.shape(), HEDDLE_F32);
    ops::copy_into(ctx_, x_, at_.result);
    const Value saved = saved_state(ctx_);
    bool goes_on = bool(saved);
    if (goes_on) {
      StateArchive state(ctx_, saved);
      archive(state);
      // What is brought back may lie in host memory, whose readers wait for no op that writes to
      // it.
      const Tensor brought = at_.result;
      at_.result = ctx_.make(x_.shape(), HEDDLE_F32);
      ops::copy_into(ctx_, brought, at_.result);
    }
    for (; at_.block < blocks.size(); ++at_.block) {
      const FrameBlock& block = blocks[at_.block];
      const bool is_last = at_.block + 1 == blocks.size();
      const Shape shape = block_shape(x_.shape(), block);
      const Tensor part = at_.result.slice(kBlockAxis, block.begin, block.begin + block.count);
      {
        Denoiser denoiser(ctx_, guide_, sampling_, shape, run_.levels, false);
        denoiser.show({}, seed_);
        denoiser.use_frames(cache_);
        SamplerPlan steps = block.is_given ? SamplerPlan() : run_.steps;
        if (!is_last) steps.push_back({clean_evaluation()});
        denoiser.open(steps);
        if (block.is_given)
          for (std::int64_t item = 0; item < part.size(0); ++item)
            ops::copy_into(ctx_, given, part.slice(0, item, item + 1));
        else
          draw(denoiser, part, goes_on ? &saved : nullptr);
        goes_on = false;
        if (!is_last) {
          cache_.look_at_frames();
          denoiser(ops::contiguous(ctx_, part), 0.0);
        }
      }
      cache_.grow();
      if (!block.is_given) ++at_.drawn;
    }
    return at_.result;
  }

 private:
  // part: the block's of the result. saved: where an earlier call was stopped in it, or nullptr.
  void draw(Denoiser& denoiser, const Tensor& part, const Value* saved) {
    const auto all = [&](StateArchive& state) {
      archive(state);
      denoiser.archive(state);
    };
    if (saved != nullptr) {
      StateArchive state(ctx_, *saved);
      denoiser.archive(state);
    } else {
      at_.step = 0;
      at_.point = ops::contiguous(ctx_, part);
    }
    const std::size_t steps = run_.levels.size() - 1;
    for (; at_.step < steps; ++at_.step) {
      at_boundary(ctx_, [&] {
        StateArchive state(ctx_);
        all(state);
        return state.value();
      });
      if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      const Tensor clean = denoiser(at_.point, run_.levels[at_.step]).denoised;
      const double next = run_.levels[at_.step + 1];
      at_.point = next > 0 ? noised(clean, next) : clean;
      show(clean, at_.drawn * steps + at_.step + 1, count_ * steps);
    }
    ops::copy_into(ctx_, at_.point, part);
  }

  Tensor noised(const Tensor& clean, double level) {
    Generator draws(seed_ + at_.drawn * kSeedsOfBlock + at_.step);
    std::pmr::vector<float> numbers(std::size_t(clean.count()), &memory_);
    draws.normal(numbers);
    const Tensor noise = ctx_.upload(clean.shape(), HEDDLE_F32, numbers.data());
    return ops::combine(ctx_, {{1.0 - level, clean}, {level, noise}});
  }
  void show(const Tensor& clean, std::size_t step, std::size_t count) {
    ctx_.progress(double(step) / double(count));
    if (ctx_.wants_preview())
      previews_.show(clean, checked_cast<std::uint32_t>(step, "steps"),
                     checked_cast<std::uint32_t>(count, "steps"));
  }
  void archive(StateArchive& state) {
    state("block", at_.block);
    state("drawn", at_.drawn);
    state("block step", at_.step);
    state("block point", at_.point);
    state("video", at_.result);
    cache_.archive(state);
  }

  Context& ctx_;
  const ModelSampling& sampling_;
  const RunPlan& run_;
  const GuidePlan guide_;
  const std::uint64_t seed_;
  const Tensor x_;
  HostMemory& memory_;
  Previews previews_;
  FrameCache cache_;
  std::size_t count_ = 0;  // blocks that are drawn
  // Where it is. drawn: blocks before this one that were. point: of this one.
  struct At {
    std::size_t block = 0, drawn = 0, step = 0;
    Tensor point, result;
  } at_;
};

}  // namespace

std::vector<FrameBlock> frame_blocks(std::int64_t frames, std::int64_t given, std::int64_t each) {
  std::vector<FrameBlock> blocks;
  if (given > 0) blocks.push_back({0, given, true});
  for (std::int64_t at = given; at < frames; at += each)
    blocks.push_back({at, std::min(each, frames - at), false});
  return blocks;
}

Sampled sample_in_blocks(Context& ctx, const SampleJob& job) {
  const ModelSampling sampling = model_sampling(job.guide.model);
  const Value settings = model_settings(job.guide.model);
  HostMemory memory(ctx);
  const Latent latent = read_latent(ctx, job.latent, latent_format(settings), memory);
  if (latent.shape.size() != 5 || !latent.parts.empty())
    refuse_blocks("the latent is of " + shape_text(latent.shape) +
                  ", and not that of a video. Take EmptyARVideoLatent.");
  if (has_noise_mask(latent))
    refuse_blocks("the latent has a noise mask, which blocks are not held to. Leave it out.");
  const RunPlan run =
      plan_levels(sampler_named(job.sampler.name), job.sampler, job.sigmas, sampling);
  check_block_levels(run.levels);
  const Tensor given = first_frames(ctx, settings, latent.shape);
  const Tensor x =
      beginning_of(ctx, job.noise, latent, run.levels.front(), sampling, settings, memory).x;
  const Value end = with_samples(
      ctx, latent,
      InBlocks(ctx, job, sampling, run, x, memory).follow(given, job.sampler.frames_per_block));
  return {end, end};
}

std::vector<JobShapes> block_jobs(const JobShapes& job) {
  if (job.latent.size() != 5 || !job.sampler || !job.sigmas || job.has_noise_mask) return {};
  std::int64_t given = 0;
  if (const auto info = blocks::info_of(model_settings(job.model).field(kFirstFrames)))
    if (info->rank == job.latent.size()) given = info->shape[kBlockAxis];
  const std::vector<FrameBlock> blocks =
      frame_blocks(job.latent[kBlockAxis], given, job.sampler->frames_per_block);
  std::vector<JobShapes> jobs;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool is_last = i + 1 == blocks.size();
    if (blocks[i].is_given && is_last) continue;  // the model is not asked
    JobShapes& one = jobs.emplace_back(job);
    one.latent = block_shape(job.latent, blocks[i]);
    one.block = {
        .before = blocks[i].begin, .is_drawn = !blocks[i].is_given, .is_looked_at = !is_last};
  }
  return jobs;
}

void add_clean_look(const JobShapes& job, RunPlan& run) {
  if (!job.block) return;
  if (!job.block->is_drawn) run.steps.clear();
  if (job.block->is_looked_at) run.steps.push_back({clean_evaluation()});
}

void add_kept_frames(const JobShapes& job, const Value& model, Constants& constants) {
  if (!job.block) return;
  const auto patch = model_settings(model).get<std::int64_t>("patch", 1);
  const auto along = [&](std::int64_t cells) { return (cells + patch - 1) / patch; };
  const std::int64_t cell = along(job.latent[3]) * along(job.latent[4]);
  for (const Infer::Named& one :
       kept_frame_shapes(model, job.latent.front(), job.block->before * cell))
    constants.push_back(one);
}

}  // namespace heddle::samplers
