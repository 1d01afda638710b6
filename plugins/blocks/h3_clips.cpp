#include "plugins/blocks/h3_clips.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/parts.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/chunk_rounds.h"
#include "plugins/blocks/clip_wall.h"

namespace heddle::vae {
namespace {

constexpr double kClipUnbound = std::numeric_limits<double>::infinity();
// Of frames: a clip, and what a decoder makes of the clip that follows.
constexpr std::int64_t kClipFrames = 17, kSharedFrames = 5, kStep = 4;
// Of cells of time. A clip's first one is of a single frame.
constexpr std::int64_t kClipCells = 5, kSharedCells = 2, kDroppedCells = 3;

std::int64_t frames_of_cells(std::int64_t cells) {
  const std::int64_t rest = cells % kClipCells;
  return checked_sum({checked_product({cells / kClipCells, kClipFrames}, "the frames"),
                      rest == 0 ? 0 : 1 + kStep * (rest - 1)},
                     "the frames");
}
std::int64_t clips_of_cells(std::int64_t cells) {
  return std::max<std::int64_t>(1, (cells + kDroppedCells + kClipCells - 1) / kClipCells - 1);
}
// What a decoder is given at once.
std::int64_t cells_at_once(std::int64_t cells) {
  return cells <= kSharedCells ? cells : kClipCells + kSharedCells;
}
std::int64_t clips_of_frames(std::int64_t frames) {
  return (frames + kClipFrames - 1) / kClipFrames;
}
std::int64_t cells_of_frames(std::int64_t frames) {
  return frames == 1 ? 1 : clips_of_frames(frames) * kClipCells - kDroppedCells;
}
std::int64_t frames_at_once(std::int64_t frames) { return frames == 1 ? 1 : kClipFrames; }

// As few tiles as cover the side; what they share beyond the least is dealt out among them.
std::vector<ClipTile> clip_tiles(std::int64_t cells, std::int64_t pixels, std::int64_t overlap,
                                 std::int64_t downscale) {
  // At most half of a tile: smaller steps make more tiles than anybody waits for.
  const std::int64_t tile = std::max<std::int64_t>(1, pixels / downscale),
                     least = overlap < pixels ? std::min(overlap / downscale, tile / 2)
                                              : overlap / downscale;
  if (tile >= cells) return {{0, cells, 0, 0}};
  if (least >= tile)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "overlap: tiles of " + std::to_string(pixels) + " that overlap by " +
                    std::to_string(overlap) +
                    " never get on. Ask for smaller overlaps, at most a quarter of the tiles.");
  std::int64_t count = (cells + tile - 1) / tile;
  while (tile * count - least * (count - 1) < cells) ++count;
  std::vector<ClipTile> tiles(std::size_t(count), ClipTile{0, tile, 0, 0});
  const std::int64_t rest = tile * count - least * (count - 1) - cells, gaps = count - 1;
  for (std::int64_t i = 0; i < gaps; ++i) {
    const std::int64_t shared = least + rest / gaps + (i < rest % gaps ? 1 : 0);
    ClipTile &one = tiles[std::size_t(i)], &next = tiles[std::size_t(i) + 1];
    one.shared_behind = next.shared = shared;
    next.begin = one.begin + tile - shared;
  }
  return tiles;
}
// Whether a run gets from one tile to the next; cells: the larger side of a frame.
bool have_steps(const ClipTiling& tiling, std::int64_t cells, std::int64_t downscale) {
  const std::int64_t tile = std::max<std::int64_t>(1, tiling.side / downscale);
  return tile >= cells || tiling.overlap / downscale < tile;
}
ClipTiles tiles_of_clip(std::int64_t height, std::int64_t width, const ClipTiling& tiling,
                        std::int64_t downscale) {
  return {clip_tiles(height, tiling.side, tiling.overlap, downscale),
          clip_tiles(width, tiling.side, tiling.overlap, downscale)};
}

// A side, which is given tiles of clips that have nothing to do with each other.
class TileSide final : public ChunkSide {
 public:
  TileSide(Value model, const char* input, const char* output)
      : model_(std::move(model)), input_(input), output_(output) {}
  Tensor next(Context& ctx, Tensor tile) override {
    const Value inputs = Record().set(input_, value_of(tile)).value();
    return call_model(ctx, model_, inputs).get<Tensor>(output_, {});
  }

 private:
  const Value model_;
  const char *const input_, *const output_;
};

// Into the place of the next tile. Whether its clip is whole.
bool put_next(Context& ctx, const Tensor& made, TileWall& wall, ClipFloats& clip) {
  ClipFloats& to = wall.next();
  to.resize(std::size_t(made.count()));
  read_to<float>(ctx, made, to);
  return wall.put_next(clip.data());
}

Shape with_time(const Shape& samples) {
  if (samples.size() != 4) return samples;
  return {samples[0], samples[1], 1, samples[2], samples[3]};
}

// Cells of time `begin` and what follows, the last one repeated, of a tile of one video.
Tensor cells_of_clip(Context& ctx, const Tensor& video, std::int64_t begin, std::int64_t count,
                     const ClipTile& rows, const ClipTile& columns) {
  const Tensor part = video.slice(3, rows.begin, rows.begin + rows.size)
                          .slice(4, columns.begin, columns.begin + columns.size);
  const std::int64_t there = std::min(count, video.size(2) - begin), last = video.size(2) - 1;
  if (there == count) return part.slice(2, begin, begin + count);
  const Tensor made = ctx.make({1, video.size(1), count, rows.size, columns.size}, video.dtype());
  ops::copy_into(ctx, part.slice(2, begin, begin + there), made.slice(2, 0, there));
  for (std::int64_t t = there; t < count; ++t)
    ops::copy_into(ctx, part.slice(2, last, last + 1), made.slice(2, t, t + 1));
  return made;
}

// The frames of clip `number` into those of the video.
void join_clip(const ClipFloats& clip, std::int64_t number, std::int64_t frames, std::int64_t size,
               float* video) {
  const std::int64_t at = number * kClipFrames;
  const auto made = std::int64_t(clip.size()) / size;
  for (std::int64_t t = 0; t < made && at + t < frames; ++t) {
    // Of what follows the clip, the first frames are none of the next one's.
    const std::int64_t from = t < kClipFrames ? t : t + kStep - 1;
    if (from >= made) break;
    const float* source = clip.data() + from * size;
    float* to = video + (at + t) * size;
    const float share = number > 0 && t < kSharedFrames ? float(t) / float(kSharedFrames) : 1.0f;
    if (share == 1.0f)
      std::copy(source, source + size, to);
    else
      for (std::int64_t i = 0; i < size; ++i) to[i] = to[i] * (1 - share) + source[i] * share;
  }
}

}  // namespace

bool codes_clips(const Value& vae) { return bool(vae.field("clips")); }

ClipTiling published_tiling(const Value& vae) {
  const Value clips = vae.field("clips");
  return {clips.get<std::int64_t>("tile", 256), clips.get<std::int64_t>("tile_overlap", 64)};
}

std::optional<Shape> decoded_clips_shape(const Shape& samples, const Autoencoder& autoencoder) {
  const Shape all = with_time(samples);
  if (all.size() != 5 || count_of(all) == 0) return {};
  return Shape{checked_product({all[0], frames_of_cells(all[2])}, "the frames"),
               checked_product({all[3], autoencoder.downscale}, "the height"),
               checked_product({all[4], autoencoder.downscale}, "the width"), autoencoder.colours};
}

Tensor decoded_clips(Context& ctx, const Value& vae, const Value& latent, const ClipTiling& tiling,
                     heddle_port_index output) {
  const Autoencoder autoencoder(vae);
  Tensor samples = latent.get<Tensor>("samples", {});
  const auto shape = samples ? decoded_clips_shape(samples.shape(), autoencoder) : std::nullopt;
  if (!shape)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: these are not (batch, channels, frames, height, width), or empty. Link a "
                "latent of pictures, such as that of EmptyMiniMaxH3LatentAV behind "
                "LTXVSeparateAVLatent.");
  samples = samples.reshape(with_time(samples.shape()));
  check_channels(samples.size(1), autoencoder);
  const Value decoder = model_of(vae, "decoder");
  const std::int64_t cells = samples.size(2), once = cells_at_once(cells),
                     clips = clips_of_cells(cells), frames = frames_of_cells(cells),
                     size = (*shape)[1] * (*shape)[2] * (*shape)[3];
  const ClipTiles tiles =
      tiles_of_clip(samples.size(3), samples.size(4), tiling, autoencoder.downscale);
  const ClipShape whole{once * kStep - kStep + 1, (*shape)[1], (*shape)[2], autoencoder.colours};
  const Tensor pictures = ctx.make_host(*shape, HEDDLE_F32);
  PartsOfOutput parts(ctx, output, pictures);
  HostMemory memory(ctx);
  ClipFloats clip(std::size_t(whole.count()), &memory);
  TileWall wall(tiles, autoencoder.downscale, whole, memory);
  ChunkRounds rounds{.videos = samples.size(0),
                     .chunks = clips * tiles.count(),
                     .always_waits = true,
                     .are_independent = true};
  const double all = double(rounds.videos) * double(rounds.chunks);
  rounds.give = [&](std::int64_t item, std::int64_t chunk) {
    const std::int64_t begin = chunk / tiles.count() * kClipCells, tile = chunk % tiles.count();
    const Tensor part = cells_of_clip(ctx, samples.slice(0, item, item + 1), begin, once,
                                      tiles.row_of(tile), tiles.column_of(tile));
    return raw_of(ctx, part, latent, autoencoder);
  };
  rounds.read = [&](std::int64_t item, std::int64_t chunk, const Tensor& image, bool) {
    const bool is_whole = put_next(ctx, image, wall, clip);
    ctx.progress(double(item * rounds.chunks + chunk + 1) / all, "tiles");
    if (!is_whole) return;
    float* const video = pictures.data<float>() + item * frames * size;
    const std::int64_t number = chunk / tiles.count();
    join_clip(clip, number, frames, size, video);
    // No clip that comes has a share of these.
    const std::int64_t done =
        number + 1 < clips ? std::min(frames, (number + 1) * kClipFrames) : frames;
    for (std::int64_t i = number * kClipFrames * size; i < done * size; ++i)
      video[i] = std::clamp(video[i] * 0.5f + 0.5f, 0.0f, 1.0f);
    parts.made(item * frames + done);
  };
  code_chunks(
      ctx, [&](std::int64_t) { return std::make_unique<TileSide>(decoder, "z", "image"); }, rounds);
  parts.whole();
  return pictures;
}

namespace {

// What a side is given of all tiles of so many clips. shape: of one of rows and columns.
template <class ShapeOf>
std::vector<Shape> shapes_of_tiles(const ClipTiles& tiles, std::int64_t clips, ShapeOf&& shape) {
  std::vector<Shape> all;
  for (std::int64_t clip = 0; clip < clips; ++clip)
    for (const ClipTile& rows : tiles.rows)
      for (const ClipTile& columns : tiles.columns) all.push_back(shape(rows.size, columns.size));
  return all;
}

void tell_calls(Infer& question, const Value& side, const char* input,
                const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes)
    if (side.is(HEDDLE_KIND_MODEL))
      question.call(side, {{.constants = {{input, HEDDLE_F32, shape}}, .steps = {}}});
}

}  // namespace

void tell_decoded_clips(Infer& question, const Value& vae, const Shape& samples,
                        const Autoencoder& autoencoder, const ClipTiling& tiling) {
  const Shape all = with_time(samples);
  const std::optional<Shape> made = decoded_clips_shape(samples, autoencoder);
  if (!made || !have_steps(tiling, std::max(all[3], all[4]), autoencoder.downscale))
    return;  // the run says why
  const std::int64_t once = cells_at_once(all[2]), step = autoencoder.downscale;
  const ClipTiles tiles = tiles_of_clip(all[3], all[4], tiling, step);
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return Shape{1, all[1], once, rows, columns};
  };
  const std::vector<Shape> calls = shapes_of_tiles(tiles, all[0] * clips_of_cells(all[2]), shape);
  tell_calls(question, vae.field("decoder"), "z", calls);
  const double numbers = double(count_of(*made));
  const ClipShape whole{once * kStep - kStep + 1, (*made)[1], (*made)[2], autoencoder.colours};
  // While what is made of a tile is read, the next one is decoded. All tiles have one size.
  const Shape& tile = calls.front();
  const std::uint64_t waiting =
      sizeof(float) *
      std::uint64_t(2 * count_of(tile) +
                    count_of({whole.outer, tile[3] * step, tile[4] * step, autoencoder.colours}));
  question.cost(4 * numbers, 4 * double(sizeof(float)) * numbers, waiting);
  question.host_scratch(wall_bytes(tiles, step, whole) +
                        sizeof(float) * std::uint64_t(count_of(*made)));
}

Shape encoded_clips_shape(const Shape& pictures, const Autoencoder& autoencoder) {
  return {1, autoencoder.channels, cells_of_frames(pictures[0]), autoencoder.cells(pictures[1]),
          autoencoder.cells(pictures[2])};
}

Tensor encoded_clips(Context& ctx, const Value& vae, const Tensor& pictures,
                     const Autoencoder& autoencoder, const ClipTiling& tiling) {
  const auto part = [&](std::int64_t begin, std::int64_t count) {
    return pictures.slice(0, begin, begin + count);
  };
  return encoded_clips(ctx, vae, ClipPictures{pictures.shape(), part}, autoencoder, tiling);
}

Tensor encoded_clips(Context& ctx, const Value& vae, const ClipPictures& pictures,
                     const Autoencoder& autoencoder, const ClipTiling& tiling) {
  const std::int64_t given = pictures.shape[0];
  if (given < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "pixels: there are no pictures. Link at least one.");
  const Shape shape = encoded_clips_shape(pictures.shape, autoencoder);
  const Value encoder = model_of(vae, "encoder");
  const std::int64_t once = frames_at_once(given), clips = given == 1 ? 1 : clips_of_frames(given),
                     cells = given == 1 ? 1 : kClipCells, step = autoencoder.downscale,
                     area = shape[3] * shape[4];
  const ClipTiles tiles = tiles_of_clip(shape[3], shape[4], tiling, step);
  const ClipShape whole{shape[1] * cells, shape[3], shape[4], 1};
  HostMemory memory(ctx);
  ClipFloats clip(std::size_t(whole.count()), &memory),
      means(std::size_t(count_of(shape)), &memory);
  TileWall wall(tiles, 1, whole, memory);
  ChunkRounds rounds{.chunks = clips * tiles.count(), .are_independent = true};
  Tensor shown;  // the clip whose tiles are given
  std::int64_t shown_number = -1;
  rounds.give = [&](std::int64_t, std::int64_t chunk) {
    const std::int64_t number = chunk / tiles.count(), begin = number * kClipFrames,
                       there = std::min(once, given - begin);
    if (number != shown_number) {
      shown = {};
      shown = pictures.made(begin, there);
      shown_number = number;
    }
    const ClipTile &rows = tiles.row_of(chunk % tiles.count()),
                   &columns = tiles.column_of(chunk % tiles.count());
    const Tensor part = shown.slice(1, rows.begin * step, (rows.begin + rows.size) * step)
                            .slice(2, columns.begin * step, (columns.begin + columns.size) * step);
    const Tensor frames =
        ctx.make({once, rows.size * step, columns.size * step, autoencoder.colours}, HEDDLE_F32);
    ops::copy_into(ctx, part, frames.slice(0, 0, there));
    for (std::int64_t t = there; t < once; ++t)
      ops::copy_into(ctx, part.slice(0, there - 1, there), frames.slice(0, t, t + 1));
    return ops::scale_clamp(ctx, frames, {2, -1, -kClipUnbound, kClipUnbound});
  };
  rounds.read = [&](std::int64_t, std::int64_t chunk, const Tensor& mean, bool) {
    const bool is_whole = put_next(ctx, mean, wall, clip);
    ctx.progress(double(chunk + 1) / double(rounds.chunks), "tiles");
    if (!is_whole) return;
    const std::int64_t number = chunk / tiles.count();
    for (std::int64_t c = 0; c < shape[1]; ++c)
      for (std::int64_t t = 0; t < cells && number * kClipCells + t < shape[2]; ++t)
        std::copy_n(clip.data() + (c * cells + t) * area, area,
                    means.data() + (c * shape[2] + number * kClipCells + t) * area);
  };
  code_chunks(
      ctx, [&](std::int64_t) { return std::make_unique<TileSide>(encoder, "image", "mean"); },
      rounds);
  return ctx.upload(shape, HEDDLE_F32, means.data());
}

EncoderCalls encoder_calls(const Shape& pictures, const Autoencoder& autoencoder,
                           const ClipTiling& tiling) {
  const Shape shape = encoded_clips_shape(pictures, autoencoder);
  const std::int64_t step = autoencoder.downscale, clips = clips_of_frames(pictures[0]),
                     once = frames_at_once(pictures[0]), cells = once == 1 ? 1 : kClipCells;
  if (!have_steps(tiling, std::max(shape[3], shape[4]), step)) return {};
  const ClipTiles tiles = tiles_of_clip(shape[3], shape[4], tiling, step);
  const auto image = [&](std::int64_t rows, std::int64_t columns) {
    return Shape{once, rows * step, columns * step, autoencoder.colours};
  };
  EncoderCalls calls{shapes_of_tiles(tiles, clips, image)};
  calls.host_bytes = wall_bytes(tiles, 1, {shape[1] * cells, shape[3], shape[4], 1}) +
                     sizeof(float) * std::uint64_t(count_of(shape));
  return calls;
}

void tell_encoded_clips(Infer& question, const Value& vae, const Shape& pictures,
                        const Autoencoder& autoencoder, const ClipTiling& tiling) {
  const EncoderCalls calls = encoder_calls(pictures, autoencoder, tiling);
  if (calls.images.empty()) return;  // the run says why
  tell_calls(question, vae.field("encoder"), "image", calls.images);
  const double numbers = double(count_of(pictures));
  question.cost(4 * numbers, 4 * double(sizeof(float)) * numbers);
  question.host_scratch(calls.host_bytes);
}

}  // namespace heddle::vae
