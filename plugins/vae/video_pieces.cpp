#include "plugins/vae/video_pieces.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/parts.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/decoder_noise.h"
#include "plugins/vae/piece_turns.h"
#include "plugins/vae/video_chunks.h"

namespace heddle::vae {
namespace {

constexpr int kFramesOfHidden = 1;  // the axis
constexpr double kPieceUnbound = std::numeric_limits<double>::infinity();

Value piece_settings(const Value& model) { return model_settings(model).field("piece"); }

bool is_kept_frame(const std::string& name) { return name.starts_with("kept."); }
// Drawn for the frames that a stage takes.
bool is_noise_of_cells(const std::string& name) { return name == "cell_noise"; }

// One side at work on one video.
class PieceSide final : public ChunkSide {
 public:
  using DrawCells = std::function<Tensor(std::int64_t begin, std::int64_t frames)>;

  // given: what every call is given besides, of the inputs that a stage has.
  PieceSide(const Value& pieces, const std::vector<PieceRound>& rounds, Value given, DrawCells draw)
      : rounds_(rounds), given_(std::move(given)), draw_(std::move(draw)) {
    for (std::uint32_t s = 0; s < pieces.count(); ++s) stages_.push_back({pieces.item(s)});
  }

  // piece: empty where the first stage takes nothing more.
  Tensor next(Context& ctx, Tensor piece) override {
    for (const PieceCall& call : rounds_[next_++]) {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      if (call.stage > 0) piece = taken(call);
      piece = this->call(ctx, call, piece);
      stages_[call.stage].made = piece;
    }
    stages_.back().made = {};
    return piece;
  }

 private:
  struct Stage {
    Value models;
    Value kept = {};  // of the piece before; a record
    Tensor made = {};
    std::int64_t taken = 0;  // frames
  };

  // Of what the stage before has made, which is given up with its last frames.
  Tensor taken(const PieceCall& call) {
    Tensor& made = stages_[call.stage - 1].made;
    const std::int64_t end = call.begin + call.turn.frames;
    const Tensor part = made.slice(kFramesOfHidden, call.begin, end);
    if (end == made.size(kFramesOfHidden)) made = {};
    return part;
  }

  // What a stage kept is given up as soon as it has read it.
  Tensor call(Context& ctx, const PieceCall& call, const Tensor& piece) {
    Stage& stage = stages_[call.stage];
    const Value model = stage.models.field(call.turn.kind());
    Record inputs(stage.kept);
    const Value shapes = piece_settings(model).field("shapes");
    for (std::uint32_t i = 0; i < shapes.count(); ++i) {
      if (is_noise_of_cells(shapes.key(i)))
        inputs.set(shapes.key(i), value_of(draw_(stage.taken, call.turn.frames)));
      else if (!is_kept_frame(shapes.key(i)))
        inputs.set(shapes.key(i), value_of(piece));
    }
    stage.taken += call.turn.frames;
    const Value drawn = model_settings(model).field("noise_inputs");
    for (std::uint32_t i = 0; i < drawn.count(); ++i) {
      const auto name = drawn.item(i).as<std::string>();
      if (given_.has(name.c_str())) inputs.set(name, given_.field(name.c_str()));
    }
    stage.kept = {};
    const Value made = call_model(ctx, model, inputs.value());
    Record kept;
    Tensor result;
    for (std::uint32_t i = 0; i < made.count(); ++i) {
      if (!is_kept_frame(made.key(i)))
        result = made.item(i).as<Tensor>();
      else if (!call.turn.ends)
        kept.set(made.key(i), made.item(i));
    }
    stage.kept = kept.value();
    return result;
  }

  const std::vector<PieceRound>& rounds_;
  const Value given_;
  const DrawCells draw_;
  std::vector<Stage> stages_;
  std::size_t next_ = 0;
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

// In bytes: on the device, what the stages keep, what is drawn for one, and what they have made
// that others have still to take; on the host, what is drawn there.
struct PieceBytes {
  std::uint64_t kept = 0, drawn = 0;
};
// Tells of the calls for a video of so many frames.
PieceBytes tell_pieces(Infer& question, const Value& pieces, std::int64_t cell,
                       const blocks::GridSize& cells, std::int64_t frames,
                       const std::vector<Infer::Named>& drawn) {
  const std::vector<PieceStage> sizes = piece_stages(pieces, cell);
  std::uint64_t waiting = 0, noise = 0;  // of one stage at a time
  for (const PieceRound& round : piece_rounds(sizes, frames))
    for (const PieceCall& call : round) {
      const Value model = pieces.item(std::uint32_t(call.stage)).field(call.turn.kind());
      const Infer::Set set = piece_set(model, call.turn, cells, drawn);
      for (const Infer::Named& one : set.constants)
        if (is_noise_of_cells(one.name))
          noise = std::max(noise, sizeof(float) * std::uint64_t(count_of(one.shape)));
      question.call(model, {set});
      if (call.stage + 1 == sizes.size()) continue;
      const Value taker = pieces.item(std::uint32_t(call.stage + 1)).field("first");
      PieceTurn all;
      all.frames = call.turn.made(sizes[call.stage]);
      for (const Infer::Named& one : piece_set(taker, all, cells, {}).constants)
        if (!is_kept_frame(one.name) && !is_noise_of_cells(one.name))
          waiting = std::max(waiting, sizeof(float) * std::uint64_t(count_of(one.shape)));
    }
  PieceBytes bytes{waiting + noise, noise};
  for (std::uint32_t s = 0; s < pieces.count(); ++s)
    for (const Infer::Named& one :
         piece_set(pieces.item(s).field("next"), {.frames = 1}, cells, {}).constants)
      if (is_kept_frame(one.name)) bytes.kept += sizeof(float) * std::uint64_t(count_of(one.shape));
  return bytes;
}

// The latents of one video, with their share of noise where the decoder is told a level; `inputs`:
// what it draws besides.
Tensor with_drawn(Context& ctx, const Value& decoder, const Tensor& z, Record& inputs) {
  if (model_settings(decoder).has("cell_noise")) return z;  // drawn piece by piece
  set_decoder_noise(ctx, decoder, z, inputs);
  const Value drawn = inputs.value().field("noise");
  if (!drawn) return z;
  const double share = model_settings(decoder).get<double>("noise_share", 0);
  return ops::combine(ctx,
                      {{1 - share, ops::cast(ctx, z, HEDDLE_F32)}, {share, drawn.as<Tensor>()}});
}

// Behind z (B, C, F, h, w) its last frame, as often as the decoder wants it.
std::int64_t z_frames_behind(const Value& vae) {
  return model_settings(vae.field("decoder")).get<std::int64_t>("frames_behind", 0);
}
Tensor with_frames_behind(Context& ctx, const Tensor& z, std::int64_t more) {
  if (more == 0) return z;
  Shape shape = z.shape();
  const std::int64_t count = shape[2];
  shape[2] = checked_sum({count, more}, "the frames");
  const Tensor all = ctx.make(shape, z.dtype());
  ops::copy_into(ctx, z, all.slice(2, 0, count));
  for (std::int64_t at = count; at < shape[2]; ++at)
    ops::copy_into(ctx, z.slice(2, count - 1, count), all.slice(2, at, at + 1));
  return all;
}

std::vector<Tensor> tensors_of(const Value& record) {
  std::vector<Tensor> all;
  for (std::uint32_t i = 0; i < record.count(); ++i)
    if (record.item(i).is(HEDDLE_KIND_TENSOR)) all.push_back(record.item(i).as<Tensor>());
  return all;
}

Value encoder_pieces_of(const Value& vae) { return vae.field("encoder_pieces"); }

}  // namespace

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
  // As a whole, the videos of a batch draw one after another.
  const Tensor raw = raw_of(ctx, samples, latent, autoencoder);
  Record given;
  const Tensor z =
      with_frames_behind(ctx, with_drawn(ctx, decoder, raw, given), z_frames_behind(vae));
  const Value pieces = vae.field("decoder_pieces");
  const std::vector<PieceRound> pass = piece_rounds(piece_stages(pieces, 1), z.size(2));
  ChunkRounds rounds{
      .videos = z.size(0), .chunks = std::int64_t(pass.size()), .always_waits = true};
  rounds.given = tensors_of(given.value());
  rounds.give = [&](std::int64_t video, std::int64_t number) {
    const PieceCall& first = pass[std::size_t(number)].front();
    if (first.stage > 0) return Tensor();
    return ops::contiguous(
        ctx, z.slice(0, video, video + 1).slice(2, first.begin, first.begin + first.turn.frames));
  };
  rounds.finish = [&](const Tensor& made) { return ops::scale_clamp(ctx, made, {0.5, 0.5, 0, 1}); };
  rounds.read = [&](std::int64_t, std::int64_t, const Tensor& pictures, bool) {
    if (pictures.count() > end - to)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the VAE's pieces make more pictures than its decoder's settings tell. Load it "
                  "again.");
    read_to<float>(ctx, pictures, std::span<float>(to, std::size_t(pictures.count())));
    to += pictures.count();
    parts.made(done += pictures.count() / each);
    ctx.progress(double(done) / double(shape[0]), "frames");
  };
  const auto begin = [&](std::int64_t video) {
    const auto draw = [&, video](std::int64_t first, std::int64_t count) {
      return drawn_cells(ctx, decoder, raw.shape(), video, first, count);
    };
    return std::make_unique<PieceSide>(pieces, pass, given.value(), draw);
  };
  code_chunks(ctx, begin, rounds);
  parts.whole();
  return frames;
}

void tell_decoded_pieces(Infer& question, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder) {
  const Shape frames = frames_shape(samples, vae, autoencoder);  // may throw: before all calls
  std::vector<Infer::Named> drawn;
  tell_decoder_noise(vae.field("decoder"), samples, drawn);
  PieceBytes bytes;
  const std::int64_t all = checked_sum({samples[2], z_frames_behind(vae)}, "the frames");
  for (std::int64_t item = 0; item < samples[0]; ++item)
    bytes =
        tell_pieces(question, vae.field("decoder_pieces"), 1, {samples[3], samples[4]}, all, drawn);
  const double numbers = double(count_of(frames));
  const std::vector<PieceStage> stages = piece_stages(vae.field("decoder_pieces"), 1);
  std::int64_t most = 0;  // frames of a piece; at the end of a video there are more
  for (const PieceRound& round : piece_rounds(stages, all))
    for (const PieceCall& call : round)
      if (call.stage + 1 == stages.size()) most = std::max(most, call.turn.made(stages.back()));
  const std::uint64_t piece =
      sizeof(float) * std::uint64_t(count_of({most, frames[1], frames[2], frames[3]}));
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, bytes.kept + 3 * piece);
  question.host_scratch(sizeof(float) * std::uint64_t(count_of(frames)) + bytes.drawn);
}

Tensor encoded_pieces(Context& ctx, const Value& vae, const Tensor& pictures,
                      const Autoencoder& autoencoder) {
  const Shape shape = latent_frames_shape(pictures.shape(), vae, autoencoder);
  const std::int64_t step = video_length(vae).downscale;
  const Tensor means = ctx.make(shape, HEDDLE_F32);
  const Value pieces = encoder_pieces_of(vae);
  const std::vector<PieceRound> pass =
      piece_rounds(piece_stages(pieces, step), video_length(vae).frames_of(shape[2]));
  std::int64_t at = 0;
  std::vector<float> waited;
  ChunkRounds rounds{.chunks = std::int64_t(pass.size())};
  rounds.give = [&](std::int64_t, std::int64_t number) {
    const PieceCall& first = pass[std::size_t(number)].front();
    if (first.stage > 0) return Tensor();
    return ops::scale_clamp(ctx, pictures.slice(0, first.begin, first.begin + first.turn.frames),
                            {2, -1, -kPieceUnbound, kPieceUnbound});
  };
  rounds.read = [&](std::int64_t, std::int64_t, const Tensor& mean, bool waits) {
    ops::copy_into(ctx, mean, means.slice(2, at, at + mean.size(2)));
    at += mean.size(2);
    if (waits) {
      waited.resize(std::size_t(mean.count()));
      read_to<float>(ctx, mean, waited);
    }
    ctx.progress(double(at) / double(shape[2]), "frames");
  };
  const auto begin = [&](std::int64_t) {
    return std::make_unique<PieceSide>(pieces, pass, Value(), PieceSide::DrawCells());
  };
  code_chunks(ctx, begin, rounds);
  return means;
}

void tell_encoded_pieces(Infer& question, const Value& vae, const Shape& pictures,
                         const Autoencoder& autoencoder) {
  const VideoLength length = video_length(vae);
  const std::int64_t step = length.downscale;
  const std::uint64_t kept =
      tell_pieces(question, encoder_pieces_of(vae), step,
                  {autoencoder.cells(pictures[1]), autoencoder.cells(pictures[2])},
                  length.frames_of(length.cells_of(pictures[0])), {})
          .kept;
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
