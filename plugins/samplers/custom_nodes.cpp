#include "custom_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/host_memory.hpp>

#include "block_run.h"
#include "growing_run.h"
#include "latent.h"
#include "random.h"
#include "sample.h"
#include "sample_shapes.h"
#include "sampler_value.h"
#include "sigmas_value.h"

namespace heddle::samplers {
namespace {

Value noise_record(std::uint64_t seed, bool add) {
  return Record().set("seed", value_of(seed)).set("add", value_of(add)).value();
}

Noise noise_in(const Value& record) {
  return {record.get<std::uint64_t>("seed", 0), record.get<bool>("add", true)};
}

std::optional<Sigmas> known_sigmas(const std::optional<Tensor>& tensor) {
  if (!tensor || tensor->rank() != 1 || tensor->dtype() != HEDDLE_F32) return {};
  const float* from = tensor->data<float>();
  if (from == nullptr && tensor->count() > 0) return {};
  return Sigmas(from, from + tensor->count());
}

// The same as infer() of a scheduler told them.
std::optional<Sigmas> told_sigmas(const Value& told) {
  if (!told.is(HEDDLE_KIND_LIST)) return {};
  Sigmas levels;
  for (std::uint32_t i = 0; i < told.count(); ++i)
    levels.push_back(float(told.item(i).as<double>()));
  return levels;
}

// A run in which the picture grows: a call of the model for every size.
template <class Node>
void infer_growing(Infer& question, JobShapes job) {
  if (!job.sigmas) return;
  Sigmas levels = *job.sigmas;
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const GrowingShapes shapes = growing_shapes(*job.sampler->growth, job.latent, levels.size());
  question.out(Node::output, "samples", HEDDLE_F32, shapes.result);
  question.out(Node::denoised, "samples", HEDDLE_F32,
               shapes.steps.empty() ? shapes.result : shapes.steps.back().shape);
  for (const SameSize& same : shapes.steps) {
    job.latent = same.shape;
    job.sigmas = Sigmas(levels.begin() + std::ptrdiff_t(same.begin),
                        levels.begin() + std::ptrdiff_t(same.end) + 1);
    infer_run(question, job);
  }
}

// A run in which a video is drawn in blocks: a call of the model for each.
template <class Node>
void infer_blocks(Infer& question, const JobShapes& job) {
  question.out(Node::output, "samples", HEDDLE_F32, job.latent);
  question.out(Node::denoised, "samples", HEDDLE_F32, job.latent);
  RunScratch most;
  for (const JobShapes& block : block_jobs(job)) {
    const RunScratch one = infer_run(question, block);
    most = {std::max(most.device, one.device), std::max(most.host, one.host)};
  }
  if (most.host == 0) return;  // nothing is known
  // Of all frames the point that is begun with, and the result; on the host the latent, and noise.
  constexpr std::uint64_t kWhole = 2;
  std::uint64_t bytes = kWhole * sizeof(float);
  for (const std::int64_t size : job.latent) bytes *= std::uint64_t(size);
  question.cost(0, 0, most.device + bytes);
  question.host_scratch(most.host + bytes);
}

// The inputs that both samplers have, and the outputs.
template <class Node>
void infer_custom(Infer& question, JobShapes job) {
  const std::optional<Value> choice = question[Node::sampler];
  if (choice) job.sampler = sampler_choice(*choice);
  const std::optional<Shape> shape = sampled_shape(question, Node::latent_image, job.model);
  if (!shape) return;
  job.latent = *shape;
  tell_latent(question, Node::latent_image, job);
  if (!choice) return;  // the picture may grow
  job.sigmas = known_sigmas(question[Node::sigmas]);
  if (!job.sigmas) job.sigmas = told_sigmas(question.part(Node::sigmas, kToldLevels));
  if (job.sampler && job.sampler->growth) return infer_growing<Node>(question, std::move(job));
  if (job.sampler && job.sampler->frames_per_block > 0) return infer_blocks<Node>(question, job);
  infer_latent(question, Node::latent_image, Node::output, *shape, job.parts);
  infer_latent(question, Node::latent_image, Node::denoised, *shape, job.parts);
  infer_run(question, job);
}

// A model and what guides it, as far as they are known.
template <class Node>
void infer_guider(Infer& question, const Input<Value>& positive) {
  if (const Value model = question.part(Node::model, ""))
    question.known(Node::guider, "model", model);
  infer_entries(question, Node::guider, entry_shapes(question, positive), "positive");
  question.shares(Node::guider);
}

}  // namespace

void RandomNoise::execute(Context& ctx) { ctx[noise] = noise_record(ctx[noise_seed], true); }

void DisableNoise::execute(Context& ctx) { ctx[noise] = noise_record(0, false); }

void KSamplerSelect::execute(Context& ctx) {
  const std::string name = ctx[sampler_name];
  sampler_named(name);  // a wrong name is this node's error, not the one's that draws
  ctx[sampler] = sampler_record({.name = name});
}

void SamplerEulerAncestral::execute(Context& ctx) {
  ctx[sampler] =
      sampler_record({.name = "euler_ancestral", .eta = ctx[eta], .noise_factor = ctx[s_noise]});
}

void BasicGuider::execute(Context& ctx) {
  ctx[guider] = guider_record({.model = ctx[model], .positive = ctx[conditioning], .negative = {}});
}

void BasicGuider::infer(Infer& question) {
  infer_guider<BasicGuider>(question, conditioning);
  question.known(guider, "cfg", value_of(1.0));
}

void CFGGuider::execute(Context& ctx) {
  ctx[guider] = guider_record(
      {.model = ctx[model], .positive = ctx[positive], .negative = ctx[negative], .cfg = ctx[cfg]});
}

void CFGGuider::infer(Infer& question) {
  infer_guider<CFGGuider>(question, positive);
  infer_entries(question, guider, entry_shapes(question, negative), "negative");
  if (const std::optional<double> scale = question[cfg])
    question.known(guider, "cfg", value_of(*scale));
}

void SamplerCustom::execute(Context& ctx) {
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler = sampler_choice(ctx[sampler]);
  job.sigmas = sigmas_of(ctx, ctx[sigmas]);
  job.noise = {ctx[noise_seed], ctx[add_noise]};
  job.latent = ctx[latent_image];
  const Sampled result = sample(ctx, job);
  ctx[output] = result.latent;
  ctx[denoised] = result.denoised;
}

void SamplerCustom::infer(Infer& question) {
  JobShapes job{.model = question.part(model, ""),
                .positive = entry_shapes(question, positive),
                .negative = entry_shapes(question, negative),
                .cfg = question[cfg],
                .sampler = {},
                .sigmas = {},
                .latent = {}};
  infer_custom<SamplerCustom>(question, std::move(job));
}

void SamplerCustomAdvanced::execute(Context& ctx) {
  SampleJob job;
  job.guide = guide_of(ctx[guider]);
  job.sampler = sampler_choice(ctx[sampler]);
  job.sigmas = sigmas_of(ctx, ctx[sigmas]);
  job.noise = noise_in(ctx[noise]);
  job.latent = ctx[latent_image];
  const Sampled result = sample(ctx, job);
  ctx[output] = result.latent;
  ctx[denoised] = result.denoised;
}

void SamplerCustomAdvanced::infer(Infer& question) {
  const Value scale = question.part(guider, "cfg");
  JobShapes job{.model = question.part(guider, "model"),
                .positive = entry_shapes(question, guider, "positive"),
                .negative = entry_shapes(question, guider, "negative"),
                .third = entry_shapes(question, guider, "third"),
                .cfg = scale ? std::optional(scale.as<double>()) : std::nullopt,
                .sampler = {},
                .sigmas = {},
                .latent = {},
                .negative_model = question.part(guider, "negative_model")};
  if (const Value mix = question.part(guider, "mix")) {
    job.mix = find_mix(mix.as<std::string>()).value_or(Mix::kCfg);
    const Value number = question.part(guider, "number");
    if (number)
      job.number = number.as<double>();
    else
      job.cfg.reset();
  }
  infer_custom<SamplerCustomAdvanced>(question, std::move(job));
}

void AddNoise::execute(Context& ctx) {
  const Value from = ctx[latent_image], of = ctx[model];
  const Sigmas levels = sigmas_of(ctx, ctx[sigmas]);
  if (levels.empty()) {
    ctx[out] = from;
    return;
  }
  const ModelSampling sampling = model_sampling(of);
  HostMemory memory(ctx);
  const Latent latent = read_latent(ctx, from, latent_format(model_settings(of)), memory);
  const Noise draws = noise_in(ctx[noise]);
  std::pmr::vector<float> fresh(latent.values.size(), &memory);
  if (draws.add) fresh = noise_of(latent, draws.seed, memory);
  scale_noise(fresh, float(sampling.noise_scale));
  const double level =
      levels.size() == 1 ? levels.front() : std::abs(double(levels.front()) - levels.back());
  // Below every level of the model: it is no run that starts at the top.
  const NoiseScaling mix =
      noise_scaling(sampling.prediction, level, std::numeric_limits<double>::max());
  const Tensor samples = ctx.make_host(latent.shape, HEDDLE_F32);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const auto value = float(mix.noise * fresh[i] + mix.latent * latent.values[i]);
    samples.data<float>()[i] = std::isfinite(value) ? value : 0.0f;
  }
  // Parts are cut out by the device.
  ctx[out] = with_samples(
      ctx, latent,
      latent.parts.empty() ? samples : ctx.upload(latent.shape, HEDDLE_F32, samples.data<float>()));
}

void AddNoise::infer(Infer& question) {
  const Value known = question.part(model, "");
  if (const auto shape = sampled_shape(question, latent_image, known))
    infer_latent(question, latent_image, out, *shape, sampled_parts(question, latent_image, known));
}

}  // namespace heddle::samplers
