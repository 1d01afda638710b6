#include "plugins/vae/video_chunks.h"

#include <algorithm>
#include <limits>
#include <span>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/parts.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/resample.h"
#include "plugins/blocks/slots.h"
#include "plugins/vae/whole_videos.h"

namespace heddle::vae {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

bool is_kept_name(const std::string& name) { return name.starts_with("kept."); }

Value chunk_shapes(const Value& stage) { return model_settings(stage).field("chunk_shapes"); }

// The stages of a side, of videos with these latents. Throws where it has none.
Value chunks_of(const Value& vae, const char* key) {
  const Value chunks = vae.field(key);
  if (chunks && chunks.field("first").count() > 0) return chunks;
  throw Error(HEDDLE_UNSUPPORTED,
              "samples: this autoencoder codes single pictures, the latent has several frames. "
              "Load the autoencoder that belongs to the model, or take one frame "
              "(LatentCut along t).");
}

// before: chunks before this one. What an attention keeps grows with them.
Shape shape_of_input(const std::string& name, const Value& told, std::int64_t rows,
                     std::int64_t columns, std::int64_t downscale, std::int64_t before) {
  const auto number = [&](std::uint32_t i) { return told.item(i).as<std::int64_t>(); };
  if (name == "z") return {number(0), number(2), rows, columns};
  const auto side = [&](std::int64_t cells) {
    return checked_product({cells, downscale}, "a side") >> number(1);
  };
  const bool grows = told.count() > 3 && number(3) != 0;
  const std::int64_t frames =
      grows ? checked_product({number(0), std::max<std::int64_t>(1, before)}, "what is kept")
            : number(0);
  return {frames, side(rows), side(columns), number(2)};
}

// What a stage reads of a chunk, before a run as f32.
std::vector<Infer::Named> stage_inputs(const Value& stage, const blocks::GridSize& cells,
                                       std::int64_t downscale, std::int64_t before) {
  const Value shapes = chunk_shapes(stage);
  std::vector<Infer::Named> inputs;
  for (std::uint32_t k = 0; k < shapes.count(); ++k)
    inputs.push_back({shapes.key(k), HEDDLE_F32,
                      shape_of_input(shapes.key(k), shapes.item(k), cells.height, cells.width,
                                     downscale, before)});
  return inputs;
}

// What the side keeps for the last chunk of `count`: what is kept may grow with them.
std::uint64_t kept_bytes(const Value& chunks, const blocks::GridSize& cells, std::int64_t downscale,
                         std::int64_t count) {
  std::uint64_t kept = 0;
  const Value stages = chunks.field("next");
  for (std::uint32_t s = 0; count > 1 && s < stages.count(); ++s)
    for (const Infer::Named& one : stage_inputs(stages.item(s), cells, downscale, count - 1))
      if (is_kept_name(one.name)) kept += sizeof(float) * std::uint64_t(count_of(one.shape));
  return kept;
}

}  // namespace

std::int64_t VideoLength::frames_of(std::int64_t cells) const {
  if (cells < 1) return 0;
  return checked_sum({1, checked_product({cells - 1, downscale}, "the frames")}, "the frames");
}

VideoLength video_length(const Value& vae) {
  return {std::max<std::int64_t>(1, vae.get<std::int64_t>("frame_downscale", 1))};
}

std::uint64_t tell_chunks(Infer& question, const Value& chunks, const blocks::GridSize& cells,
                          std::int64_t downscale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Value stages = chunks.field(i == 0 ? "first" : "next");
    for (std::uint32_t s = 0; s < stages.count(); ++s)
      question.call(
          stages.item(s),
          {{.constants = stage_inputs(stages.item(s), cells, downscale, i), .steps = {}}});
  }
  return kept_bytes(chunks, cells, downscale, count);
}

std::uint64_t tell_least_chunks(Infer& question, const Value& chunks, const blocks::GridSize& cells,
                                std::int64_t downscale, std::int64_t count) {
  for (const char* chunk : {"first", "next"}) {
    const Value stages = chunks.field(chunk);
    for (std::uint32_t s = 0; s < stages.count(); ++s)
      question.least_call(
          stages.item(s),
          {{.constants = stage_inputs(stages.item(s), cells, downscale, 1), .steps = {}}});
  }
  return kept_bytes(chunks, cells, downscale, count);
}

VideoSide::VideoSide(const Value& chunks) {
  const Value first = chunks.field("first"), next = chunks.field("next");
  for (std::uint32_t s = 0; s < first.count(); ++s) {
    const Value shapes = chunk_shapes(first.item(s));
    if (shapes.count() != 1 || s >= next.count())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "vae: stage " + std::to_string(s) +
                      " of its chunks reads more than what the stage before made, or there is no "
                      "such stage of later chunks");
    stages_.push_back({first.item(s), next.item(s), shapes.key(0)});
  }
}

// What a stage kept is given up as soon as it has read it: of one stage alone there are two.
Tensor VideoSide::next(Context& ctx, Tensor chunk) {
  for (Stage& stage : stages_) {
    Record inputs(stage.kept);
    inputs.set(stage.input, value_of(chunk));
    stage.kept = {};
    const Value made = call_model(ctx, is_first_ ? stage.first : stage.next, inputs.value());
    Record kept;
    for (std::uint32_t i = 0; i < made.count(); ++i) {
      if (is_kept_name(made.key(i)))
        kept.set(made.key(i), made.item(i));
      else
        chunk = made.item(i).as<Tensor>();
    }
    stage.kept = kept.value();
  }
  is_first_ = false;
  return chunk;
}

void code_chunks(Context& ctx, const Value& sides, const ChunkRounds& rounds) {
  code_chunks(
      ctx, [&](std::int64_t) { return std::make_unique<VideoSide>(sides); }, rounds);
}

bool is_of_frames(const Shape& samples) { return samples.size() == 5; }

Value without_frames(const Value& latent, const Value& vae) {
  const Tensor samples = latent.get<Tensor>("samples", {});
  if (!samples || !is_of_frames(samples.shape())) return latent;
  if (samples.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: the latent, " +
                                             blocks::shape_text(samples.shape()) +
                                             ", is empty. Give one with a frame at least.");
  if (samples.size(2) != 1) {
    if (!whole_video_shape(samples.shape(), vae, Autoencoder(vae)))
      chunks_of(vae, "decoder_chunks");
    return latent;
  }
  return Record(latent)
      .set("samples", value_of(samples.reshape(
                          {samples.size(0), samples.size(1), samples.size(3), samples.size(4)})))
      .value();
}

Shape frames_shape(const Shape& samples, const Value& vae, const Autoencoder& autoencoder) {
  return {checked_product({samples[0], video_length(vae).frames_of(samples[2])}, "the frames"),
          checked_product({samples[3], autoencoder.downscale}, "the height"),
          checked_product({samples[4], autoencoder.downscale}, "the width"), autoencoder.colours};
}

Tensor decoded_frames(Context& ctx, const Value& vae, const Value& latent,
                      heddle_port_index output) {
  const Autoencoder autoencoder(vae);
  const Tensor samples = latent.get<Tensor>("samples", {});
  check_channels(samples.size(1), autoencoder);
  const Value chunks = chunks_of(vae, "decoder_chunks");
  const Shape shape = frames_shape(samples.shape(), vae, autoencoder);
  const Tensor frames = ctx.make_host(shape, HEDDLE_F32);
  PartsOfOutput parts(ctx, output, frames);
  float* to = frames.data<float>();
  std::int64_t count = 0;
  const double all = double(samples.size(0)) * double(samples.size(2));
  double done = 0;
  ChunkRounds rounds{.videos = samples.size(0), .chunks = samples.size(2), .always_waits = true};
  rounds.give = [&](std::int64_t video, std::int64_t t) {
    const Tensor cells = samples.slice(0, video, video + 1)
                             .slice(2, t, t + 1)
                             .reshape({1, samples.size(1), samples.size(3), samples.size(4)});
    return raw_of(ctx, cells, latent, autoencoder);
  };
  rounds.finish = [&](const Tensor& made) { return ops::scale_clamp(ctx, made, {0.5, 0.5, 0, 1}); };
  rounds.read = [&](std::int64_t, std::int64_t, const Tensor& pictures, bool) {
    read_to<float>(ctx, pictures, std::span<float>(to, std::size_t(pictures.count())));
    to += pictures.count();
    parts.made(count += pictures.size(0));
    ctx.progress(++done / all, "frames");
  };
  code_chunks(ctx, chunks, rounds);
  parts.whole();
  return frames;
}

void tell_decoded_frames(Infer& question, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder) {
  const Value chunks = vae.field("decoder_chunks");
  if (chunks.field("first").count() == 0) return;
  std::uint64_t kept = 0;
  for (std::int64_t item = 0; item < samples[0]; ++item)
    kept =
        tell_chunks(question, chunks, {samples[3], samples[4]}, autoencoder.downscale, samples[2]);
  const Shape frames = frames_shape(samples, vae, autoencoder);
  const double numbers = double(count_of(frames));
  const std::uint64_t chunk = sizeof(float) * std::uint64_t(video_length(vae).downscale) *
                              std::uint64_t(frames[1] * frames[2] * frames[3]);
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, kept + 3 * chunk);
  question.host_scratch(sizeof(float) * std::uint64_t(count_of(frames)));
}

bool is_video(std::int64_t pictures, const Value& vae) {
  return pictures > 1 && vae.field("encoder_chunks").field("first").count() > 0;
}

Shape latent_frames_shape(const Shape& pictures, const Value& vae, const Autoencoder& autoencoder) {
  return {1, autoencoder.channels, video_length(vae).cells_of(pictures[0]),
          autoencoder.cells(pictures[1]), autoencoder.cells(pictures[2])};
}

Tensor coded_frames(Context& ctx, const Value& vae, const Shape& latent, const ProgressPart& part,
                    const std::function<Tensor(std::int64_t, std::int64_t)>& pictures) {
  const std::int64_t step = video_length(vae).downscale;
  const Tensor means = ctx.make(latent, HEDDLE_F32);
  std::vector<float> waited;
  ChunkRounds rounds{.chunks = latent[2]};
  rounds.give = [&](std::int64_t, std::int64_t t) {
    const std::int64_t end = 1 + t * step, begin = t == 0 ? 0 : end - step;
    return ops::scale_clamp(ctx, pictures(begin, end), {2, -1, -kNoBound, kNoBound});
  };
  rounds.read = [&](std::int64_t, std::int64_t t, const Tensor& mean, bool waits) {
    ops::copy_into(ctx, mean.reshape({1, latent[1], 1, latent[3], latent[4]}),
                   means.slice(2, t, t + 1));
    if (waits) {
      waited.resize(std::size_t(mean.count()));
      read_to<float>(ctx, mean, waited);
    }
    ctx.progress(part.begin + (part.end - part.begin) * double(t + 1) / double(latent[2]),
                 "frames");
  };
  code_chunks(ctx, vae.field("encoder_chunks"), rounds);
  return means;
}

Tensor encoded_frames(Context& ctx, const Value& vae, const Tensor& pictures,
                      const Autoencoder& autoencoder, const ProgressPart& part) {
  const Shape shape = latent_frames_shape(pictures.shape(), vae, autoencoder);
  return coded_frames(ctx, vae, shape, part, [&](std::int64_t begin, std::int64_t end) {
    return pictures.slice(0, begin, end);
  });
}

void tell_encoded_frames(Infer& question, const Value& vae, const Shape& latent,
                         const Autoencoder& autoencoder) {
  const std::uint64_t kept = tell_chunks(question, vae.field("encoder_chunks"),
                                         {latent[3], latent[4]}, autoencoder.downscale, latent[2]);
  const std::int64_t step = video_length(vae).downscale;
  const double numbers =
      double(count_of({video_length(vae).frames_of(latent[2]), latent[3] * autoencoder.downscale,
                       latent[4] * autoencoder.downscale, autoencoder.colours}));
  const std::uint64_t chunk =
      sizeof(float) *
      std::uint64_t(count_of({step, latent[3] * autoencoder.downscale,
                              latent[4] * autoencoder.downscale, autoencoder.colours}));
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, kept + 2 * chunk);
}

}  // namespace heddle::vae
