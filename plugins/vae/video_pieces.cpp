#include "plugins/vae/video_pieces.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/parts.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/decoder_noise.h"
#include "plugins/vae/video_chunks.h"

namespace heddle::vae {
namespace {

constexpr double kPieceUnbound = std::numeric_limits<double>::infinity();

Value piece_settings(const Value& model) { return model_settings(model).field("piece"); }

const char* kind_of(const PieceTurn& turn) {
  return turn.begins ? (turn.ends ? "only" : "first") : turn.ends ? "last" : "next";
}

bool is_kept_frame(const std::string& name) { return name.starts_with("kept."); }

// One side at work on one video.
class PieceSide {
 public:
  using Sink = std::function<void(const Tensor&)>;

  // given: what every call is given besides, of the inputs that a stage has.
  PieceSide(Context& ctx, const Value& pieces, std::int64_t cell, Record given, Sink sink)
      : ctx_(ctx), given_(given.value()), sink_(std::move(sink)) {
    const std::vector<PieceStage> sizes = piece_stages(pieces, cell);
    for (std::uint32_t s = 0; s < pieces.count(); ++s)
      stages_.push_back({pieces.item(s), sizes[s], PieceQueue(sizes[s])});
  }

  void push(const Tensor& frames, bool is_end, std::size_t to = 0) {
    Stage& stage = stages_[to];
    const Value settings = piece_settings(stage.models.field("first"));
    const auto axis = std::uint32_t(settings.get<std::int64_t>("axis", 1));
    stage.waiting.push_back(frames);
    stage.queue.push(frames.size(axis), is_end);
    while (const std::optional<PieceTurn> turn = stage.queue.next()) {
      if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      const Tensor made = call(stage, *turn, axis);
      if (to + 1 < stages_.size())
        push(made, turn->ends, to + 1);
      else
        sink_(made);
    }
  }

 private:
  struct Stage {
    Value models;
    PieceStage size;
    PieceQueue queue;
    Value kept = {};  // of the piece before; a record
    std::vector<Tensor> waiting = {};
  };

  // The first frames of those that wait, one after another in one tensor.
  Tensor taken(Stage& stage, std::int64_t count, std::uint32_t axis) {
    std::vector<Tensor> parts, rest;
    std::int64_t left = count;
    for (const Tensor& one : stage.waiting) {
      const std::int64_t here = std::min(left, one.size(axis));
      if (here > 0) parts.push_back(one.slice(axis, 0, here));
      if (here < one.size(axis)) rest.push_back(one.slice(axis, here, one.size(axis)));
      left -= here;
    }
    stage.waiting = std::move(rest);
    if (parts.size() == 1) return ops::contiguous(ctx_, parts.front());
    Shape shape = parts.front().shape();
    shape[axis] = count;
    const Tensor all = ctx_.make(shape, parts.front().dtype());
    std::int64_t at = 0;
    for (const Tensor& part : parts) {
      ops::copy_into(ctx_, part, all.slice(axis, at, at + part.size(axis)));
      at += part.size(axis);
    }
    return all;
  }

  // What a stage kept is given up as soon as it has read it.
  Tensor call(Stage& stage, const PieceTurn& turn, std::uint32_t axis) {
    const Value model = stage.models.field(kind_of(turn));
    Record inputs(stage.kept);
    const Value shapes = piece_settings(model).field("shapes");
    for (std::uint32_t i = 0; i < shapes.count(); ++i)
      if (!is_kept_frame(shapes.key(i)))
        inputs.set(shapes.key(i), value_of(taken(stage, turn.frames, axis)));
    const Value drawn = model_settings(model).field("noise_inputs");
    for (std::uint32_t i = 0; i < drawn.count(); ++i) {
      const auto name = drawn.item(i).as<std::string>();
      if (given_.has(name.c_str())) inputs.set(name, given_.field(name.c_str()));
    }
    stage.kept = {};
    const Value made = call_model(ctx_, model, inputs.value());
    Record kept;
    Tensor result;
    for (std::uint32_t i = 0; i < made.count(); ++i) {
      if (!is_kept_frame(made.key(i)))
        result = made.item(i).as<Tensor>();
      else if (!turn.ends)
        kept.set(made.key(i), made.item(i));
    }
    stage.kept = kept.value();
    return result;
  }

  Context& ctx_;
  const Value given_;
  const Sink sink_;
  std::vector<Stage> stages_;
};

// What a call of a stage reads, as f32. cells: of a frame of the latent.
Infer::Set piece_set(const Value& model, const PieceTurn& turn, const blocks::GridSize& cells,
                     const std::vector<Infer::Named>& drawn) {
  Infer::Set set;
  const Value settings = piece_settings(model), shapes = settings.field("shapes");
  const auto axis = settings.get<std::int64_t>("axis", 1);
  for (std::uint32_t i = 0; i < shapes.count(); ++i) {
    const auto number = [&](std::uint32_t k) { return shapes.item(i).item(k).as<std::int64_t>(); };
    const std::int64_t frames = number(0) > 0 ? number(0) : turn.frames,
                       height = checked_product({cells.height, number(1)}, "the height"),
                       width = checked_product({cells.width, number(1)}, "the width");
    // Of a stage that begins with latents or pictures, what it keeps of these alone lies likewise.
    const bool is_input = i == 0 || shapes.key(i) == std::string("kept.0");
    Shape shape{1, frames, height, width, number(2)};
    if (axis == 2 && is_input) shape = {1, number(2), frames, height, width};
    if (axis == 0 && is_input) shape = {frames, height, width, number(2)};
    set.constants.push_back({shapes.key(i), HEDDLE_F32, shape});
  }
  const Value names = model_settings(model).field("noise_inputs");
  for (std::uint32_t i = 0; i < names.count(); ++i)
    for (const Infer::Named& one : drawn)
      if (one.name == names.item(i).as<std::string>()) set.constants.push_back(one);
  return set;
}

// Tells of the calls for a video of which `pushes` of so many frames come. Gives what the stages
// keep, in bytes.
std::uint64_t tell_pieces(Infer& question, const Value& pieces, std::int64_t cell,
                          const blocks::GridSize& cells, const std::vector<std::int64_t>& pushes,
                          const std::vector<Infer::Named>& drawn) {
  const std::vector<PieceStage> sizes = piece_stages(pieces, cell);
  std::vector<PieceQueue> queues(sizes.begin(), sizes.end());
  const std::function<void(std::size_t, std::int64_t, bool)> push =
      [&](std::size_t to, std::int64_t frames, bool is_end) {
        queues[to].push(frames, is_end);
        while (const std::optional<PieceTurn> turn = queues[to].next()) {
          const Value model = pieces.item(std::uint32_t(to)).field(kind_of(*turn));
          question.call(model, {piece_set(model, *turn, cells, drawn)});
          if (to + 1 < queues.size()) push(to + 1, turn->made(sizes[to]), turn->ends);
        }
      };
  for (std::size_t i = 0; i < pushes.size(); ++i) push(0, pushes[i], i + 1 == pushes.size());
  std::uint64_t kept = 0;
  for (std::uint32_t s = 0; s < pieces.count(); ++s)
    for (const Infer::Named& one :
         piece_set(pieces.item(s).field("next"), {.frames = 1}, cells, {}).constants)
      if (is_kept_frame(one.name)) kept += sizeof(float) * std::uint64_t(count_of(one.shape));
  return kept;
}

// The latents of one video, with their share of noise where the decoder is told a level; `inputs`:
// what it draws besides.
Tensor with_drawn(Context& ctx, const Value& decoder, const Tensor& z, Record& inputs) {
  set_decoder_noise(ctx, decoder, z, inputs);
  const Value drawn = inputs.value().field("noise");
  if (!drawn) return z;
  const double share = model_settings(decoder).get<double>("noise_share", 0);
  return ops::combine(ctx,
                      {{1 - share, ops::cast(ctx, z, HEDDLE_F32)}, {share, drawn.as<Tensor>()}});
}

Value encoder_pieces_of(const Value& vae) { return vae.field("encoder_pieces"); }

}  // namespace

std::int64_t PieceTurn::made(const PieceStage& stage) const {
  const std::int64_t late = begins == ends ? 0
                            : begins       ? -stage.lag
                                           : stage.lag,
                     whole = frames + late;
  if (stage.fewer > 1) return begins ? (whole - 1) / stage.fewer + 1 : whole / stage.fewer;
  return stage.more * whole - (begins ? stage.more - 1 : 0);
}

void PieceQueue::push(std::int64_t frames, bool is_end) {
  count_ += frames;
  is_end_ = is_end;
}

std::optional<PieceTurn> PieceQueue::next() {
  const std::int64_t wanted = has_begun_ ? stage_.piece : stage_.lag + 1;
  if (count_ == 0 || (count_ < wanted && !is_end_)) return {};
  PieceTurn turn;
  turn.begins = !has_begun_;
  turn.ends = is_end_ && count_ <= wanted;
  turn.frames = std::min(count_, wanted);
  count_ -= turn.frames;
  has_begun_ = true;
  return turn;
}

std::vector<PieceStage> piece_stages(const Value& pieces, std::int64_t cell) {
  std::vector<PieceStage> stages;
  std::int64_t piece = cell;
  for (std::uint32_t s = 0; s < pieces.count(); ++s) {
    const Value told = piece_settings(pieces.item(s).field("first"));
    PieceStage stage;
    stage.lag = told.get<std::int64_t>("lag", 0);
    stage.more = std::max<std::int64_t>(1, told.get<std::int64_t>("more", 1));
    stage.fewer = std::max<std::int64_t>(1, told.get<std::int64_t>("fewer", 1));
    stage.piece = piece;
    piece = piece * stage.more / stage.fewer;
    stages.push_back(stage);
  }
  return stages;
}

bool decodes_pieces(const Value& vae, const Shape& samples) {
  return samples.size() == 5 && samples[2] > 1 && vae.field("decoder_pieces").count() > 0;
}
bool encodes_pieces(const Value& vae, std::int64_t pictures) {
  return pictures > 1 && encoder_pieces_of(vae).count() > 0;
}

Tensor decoded_pieces(Context& ctx, const Value& vae, const Value& latent,
                      heddle_port_index output) {
  const Autoencoder autoencoder(vae);
  const Tensor samples = latent.get<Tensor>("samples", {});
  check_channels(samples.size(1), autoencoder);
  const Value decoder = model_of(vae, "decoder");
  const Shape shape = frames_shape(samples.shape(), vae, autoencoder);
  const Tensor frames = ctx.make_host(shape, HEDDLE_F32);
  PartsOfOutput parts(ctx, output, frames);
  const std::int64_t each = count_of(shape) / shape[0];
  float* to = frames.data<float>();
  const float* const end = to + frames.count();
  std::int64_t done = 0;
  const auto keep = [&](const Tensor& image) {
    const Tensor pictures = ops::scale_clamp(ctx, image, {0.5, 0.5, 0, 1});
    if (pictures.count() > end - to)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the VAE's pieces make more pictures than its decoder's settings tell. Load it "
                  "again.");
    read_to<float>(ctx, pictures, std::span<float>(to, std::size_t(pictures.count())));
    to += pictures.count();
    parts.made(done += pictures.count() / each);
    ctx.progress(double(done) / double(shape[0]), "frames");
  };
  // As a whole, the videos of a batch draw one after another.
  const Tensor raw = raw_of(ctx, samples, latent, autoencoder);
  Record given;
  const Tensor z = with_drawn(ctx, decoder, raw, given);
  for (std::int64_t item = 0; item < z.size(0); ++item) {
    PieceSide side(ctx, vae.field("decoder_pieces"), 1, given, keep);
    for (std::int64_t t = 0; t < z.size(2); ++t)
      side.push(z.slice(0, item, item + 1).slice(2, t, t + 1), t + 1 == z.size(2));
  }
  parts.whole();
  return frames;
}

void tell_decoded_pieces(Infer& question, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder) {
  const Shape frames = frames_shape(samples, vae, autoencoder);  // may throw: before all calls
  std::vector<Infer::Named> drawn;
  tell_decoder_noise(vae.field("decoder"), samples, drawn);
  std::uint64_t kept = 0;
  for (std::int64_t item = 0; item < samples[0]; ++item)
    kept = tell_pieces(question, vae.field("decoder_pieces"), 1, {samples[3], samples[4]},
                       std::vector<std::int64_t>(std::size_t(samples[2]), 1), drawn);
  const double numbers = double(count_of(frames));
  const std::uint64_t piece = sizeof(float) * std::uint64_t(video_length(vae).downscale) *
                              std::uint64_t(frames[1] * frames[2] * frames[3]);
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, kept + 2 * piece);
  question.host_scratch(sizeof(float) * std::uint64_t(count_of(frames)));
}

Tensor encoded_pieces(Context& ctx, const Value& vae, const Tensor& pictures,
                      const Autoencoder& autoencoder) {
  const Shape shape = latent_frames_shape(pictures.shape(), vae, autoencoder);
  const std::int64_t step = video_length(vae).downscale;
  const Tensor means = ctx.make(shape, HEDDLE_F32);
  std::int64_t at = 0;
  const auto keep = [&](const Tensor& mean) {
    ops::copy_into(ctx, mean, means.slice(2, at, at + mean.size(2)));
    at += mean.size(2);
    ctx.progress(double(at) / double(shape[2]), "frames");
  };
  PieceSide side(ctx, encoder_pieces_of(vae), step, {}, keep);
  for (std::int64_t t = 0; t < shape[2]; ++t) {
    const std::int64_t end = 1 + t * step, begin = t == 0 ? 0 : end - step;
    side.push(ops::scale_clamp(ctx, pictures.slice(0, begin, end),
                               {2, -1, -kPieceUnbound, kPieceUnbound}),
              t + 1 == shape[2]);
  }
  return means;
}

void tell_encoded_pieces(Infer& question, const Value& vae, const Shape& pictures,
                         const Autoencoder& autoencoder) {
  const std::int64_t step = video_length(vae).downscale,
                     frames = video_length(vae).cells_of(pictures[0]);
  std::vector<std::int64_t> pushes(std::size_t(frames), step);
  pushes.front() = 1;
  const std::uint64_t kept =
      tell_pieces(question, encoder_pieces_of(vae), step,
                  {autoencoder.cells(pictures[1]), autoencoder.cells(pictures[2])}, pushes, {});
  const double numbers = double(count_of(pictures));
  const std::uint64_t piece =
      sizeof(float) * std::uint64_t(count_of({step, pictures[1], pictures[2], pictures[3]}));
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, kept + 2 * piece);
}

Tensor mean_of_pictures(Context& ctx, const Value& vae, const Tensor& pictures,
                        const Autoencoder& autoencoder) {
  if (encodes_pieces(vae, pictures.size(0))) return encoded_pieces(ctx, vae, pictures, autoencoder);
  return mean_of(ctx, model_of(vae, "encoder"), pictures);
}

void tell_mean_of_pictures(Infer& question, const Value& vae, const Shape& pictures,
                           const Autoencoder& autoencoder) {
  if (encodes_pieces(vae, pictures[0]))
    return tell_encoded_pieces(question, vae, pictures, autoencoder);
  const Value encoder = vae.field("encoder");
  if (encoder.is(HEDDLE_KIND_MODEL))
    question.call(encoder, {{.constants = {{"image", HEDDLE_F32, pictures}}, .steps = {}}});
}

}  // namespace heddle::vae
