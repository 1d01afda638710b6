#include "plugins/vae/video_tiles.h"

#include <algorithm>
#include <array>
#include <span>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/least_cost.hpp>
#include <heddle/ops.hpp>
#include <heddle/parts.hpp>

#include "plugins/blocks/decoder_noise.h"
#include "plugins/vae/video_chunks.h"
#include "plugins/vae/whole_videos.h"

namespace heddle::vae {
namespace {

// One of frames, rows and columns.
struct TileAxis {
  std::int64_t size = 0, tile = 0, overlap = 0;  // of what goes in
  std::int64_t in = 1, out = 1;                  // cells of what comes out for each of what goes in
  bool is_time = false;                          // the first frame stands for itself
  bool is_even = false;                          // all tiles have one size

  std::int64_t length_of(std::int64_t cells) const {
    if (!is_time) return cells * out / in;
    return out > in ? std::max<std::int64_t>(0, (cells - 1) * out + 1) : (cells - 1 + in) / in;
  }
  std::int64_t place_of(std::int64_t cell) const { return cell * out / in; }

  bool has_steps() const { return size <= tile || overlap < tile; }
  std::vector<Span> tiles() const {
    if (size <= tile) return {{0, size}};
    if (!has_steps())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "overlap: tiles of " + std::to_string(tile) + " that overlap by " +
                      std::to_string(overlap) +
                      " never get on. Ask for smaller overlaps, at most a quarter of the tiles.");
    std::vector<Span> spans;
    if (is_even) {
      const std::int64_t count = (size - overlap + tile - overlap - 1) / (tile - overlap),
                         length = (size + (count - 1) * overlap + count - 1) / count;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = i * (size - length) / (count - 1);
        spans.push_back({at, at + length});
      }
      return spans;
    }
    for (std::int64_t at = 0; at < size - overlap; at += tile - overlap)
      spans.push_back({at, std::min(at + tile, size)});
    return spans;
  }
  std::vector<float> weights(std::int64_t length) const {
    std::vector<float> weights(std::size_t(length), 1.0f);
    const std::int64_t feather = length_of(overlap);
    if (feather >= length) return weights;
    for (std::int64_t t = 0; t < feather; ++t) {
      const auto factor = float(double(t + 1) / double(feather));
      weights[std::size_t(t)] *= factor;
      weights[std::size_t(length - 1 - t)] *= factor;
    }
    return weights;
  }
};
using TileAxes = std::array<TileAxis, 3>;  // frames, rows, columns
using VideoTile = std::array<Span, 3>;

std::vector<VideoTile> tiles_of(const TileAxes& axes) {
  std::vector<VideoTile> tiles;
  for (const Span& frames : axes[0].tiles())
    for (const Span& rows : axes[1].tiles())
      for (const Span& columns : axes[2].tiles()) tiles.push_back({frames, rows, columns});
  return tiles;
}

// Whether a run gets from one tile to the next.
bool have_steps(const TileAxes& axes) {
  return std::ranges::all_of(axes, [](const TileAxis& axis) { return axis.has_steps(); });
}

// The videos of some autoencoders are tiled in space alone, as in ComfyUI.
VideoTiling tiling_for(const Value& vae, VideoTiling asked) {
  constexpr std::int64_t kNoEnd = std::int64_t{1} << 40;
  if (vae.get<bool>("no_temporal_tiles", false)) asked.length = kNoEnd;
  return asked;
}

TileAxes decoding_axes(const Shape& samples, const Value& vae, const Autoencoder& autoencoder,
                       const VideoTiling& given) {
  const VideoTiling asked = tiling_for(vae, given);
  const std::int64_t rate = video_length(vae).downscale, factor = autoencoder.downscale;
  const std::int64_t length = std::max<std::int64_t>(2, asked.length / rate);
  const std::int64_t shared =
      asked.length < 2 * asked.length_overlap ? asked.length_overlap / 2 : asked.length_overlap;
  const std::int64_t side = std::max<std::int64_t>(2, asked.side / factor),
                     overlap = std::min(asked.overlap, asked.side / 4) / factor;
  return {TileAxis{samples[2], length,
                   std::max<std::int64_t>(1, std::min(length / 2, shared / rate)), 1, rate, true},
          TileAxis{samples[3], side, overlap, 1, factor, false, asked.is_even},
          TileAxis{samples[4], side, overlap, 1, factor, false, asked.is_even}};
}

TileAxes encoding_axes(const Shape& pictures, const Value& vae, const Autoencoder& autoencoder,
                       const VideoTiling& given) {
  const VideoTiling asked = tiling_for(vae, given);
  const VideoLength length = video_length(vae);
  const std::int64_t factor = autoencoder.downscale,
                     tile = std::max<std::int64_t>(2, length.cells_of(asked.length)),
                     shared = std::max<std::int64_t>(
                         1, std::min(tile / 2, length.cells_of(asked.length_overlap)));
  const std::int64_t frames = length.frames_of(length.cells_of(pictures[0]));
  return {
      TileAxis{frames, length.frames_of(tile), length.frames_of(shared), length.downscale, 1, true},
      TileAxis{pictures[1], asked.side, asked.overlap, factor, 1},
      TileAxis{pictures[2], asked.side, asked.overlap, factor, 1}};
}

// The sum of tiles and of their weights: outer x frames x rows x columns x inner numbers, where
// those of a tile lie likewise.
class VideoSum {
 public:
  VideoSum(const TileAxes& axes, std::int64_t outer, std::int64_t inner, float* out,
           std::pmr::memory_resource& memory)
      : axes_(axes), outer_(outer), inner_(inner), out_(out), weights_(&memory) {
    for (std::size_t a = 0; a < 3; ++a) sizes_[a] = axes[a].length_of(axes[a].size);
    weights_.resize(std::size_t(sizes_[0] * sizes_[1] * sizes_[2]));
    std::fill(out_, out_ + outer_ * sizes_[0] * sizes_[1] * sizes_[2] * inner_, 0.0f);
  }

  void add(const VideoTile& tile, const float* made) {
    std::array<std::vector<float>, 3> along;
    std::array<std::int64_t, 3> begin{}, size{};
    for (std::size_t a = 0; a < 3; ++a) {
      begin[a] = axes_[a].place_of(tile[a].begin);
      size[a] = axes_[a].length_of(tile[a].size());
      along[a] = axes_[a].weights(size[a]);
      if (begin[a] + size[a] > sizes_[a])
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    "tile_size: a tile leaves the result. Ask for tiles and overlaps in multiples "
                    "of 64, and of 8 frames.");
    }
    std::vector<float> each;  // of every number of a row
    for (const float weight : along[2]) each.insert(each.end(), std::size_t(inner_), weight);
    for (std::int64_t o = 0; o < outer_; ++o)
      for (std::int64_t t = 0; t < size[0]; ++t)
        for (std::int64_t y = 0; y < size[1]; ++y) {
          const float weight = along[0][std::size_t(t)] * along[1][std::size_t(y)];
          const std::int64_t cell =
              ((begin[0] + t) * sizes_[1] + begin[1] + y) * sizes_[2] + begin[2];
          add_row(o, cell, weight, along[2], each, made);
          made += size[2] * inner_;
        }
  }
  std::int64_t frames() const { return sizes_[0]; }
  // Frames before this one get nothing more: their means stand there now. Gives where the numbers
  // of those begin that were not finished before; of outer 0, for each.
  std::int64_t finish(std::int64_t frame) {
    const std::int64_t cells = std::int64_t(weights_.size()), each = sizes_[1] * sizes_[2],
                       begin = finished_ * each;
    finished_ = std::max(finished_, frame);
    for (std::int64_t o = 0; o < outer_; ++o)
      for (std::int64_t cell = begin; cell < finished_ * each; ++cell)
        for (std::int64_t c = 0; c < inner_; ++c)
          out_[(o * cells + cell) * inner_ + c] /= weights_[std::size_t(cell)];
    return begin * inner_;
  }

 private:
  void add_row(std::int64_t outer, std::int64_t cell, float weight, const std::vector<float>& along,
               const std::vector<float>& each, const float* made) {
    float* const to = out_ + (outer * std::int64_t(weights_.size()) + cell) * inner_;
    for (std::size_t i = 0; i < each.size(); ++i) to[i] += made[i] * (weight * each[i]);
    if (outer > 0) return;
    for (std::size_t x = 0; x < along.size(); ++x)
      weights_[std::size_t(cell) + x] += weight * along[x];
  }

  const TileAxes& axes_;
  std::int64_t outer_, inner_;
  float* out_;
  std::array<std::int64_t, 3> sizes_{};
  std::int64_t finished_ = 0;  // frames
  std::pmr::vector<float> weights_;
};

void check_going_on(Context& ctx) {
  if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
}

bool decodes_whole_videos(const Value& vae) {
  return codes_whole_videos(vae.field("decoder"), vae.has("decoder_chunks"));
}

// A tile as a decoder that decodes it at once is given it.
Infer::Set tile_set(const Value& decoder, const VideoTile& tile, std::int64_t channels) {
  const Shape z{1, channels, tile[0].size(), tile[1].size(), tile[2].size()};
  Infer::Set set{.constants = {{"z", HEDDLE_F32, z}}, .steps = {}};
  tell_decoder_noise(decoder, z, set.constants);
  return set;
}

// Of a tile, in bytes: as the last stage has made them, from 0 to 1, and on their way to the host.
std::uint64_t pictures_of_a_chunk(const Value& vae, const Autoencoder& autoencoder,
                                  const VideoTile& tile) {
  return 3 * sizeof(float) *
         std::uint64_t(
             count_of({video_length(vae).downscale, tile[1].size() * autoencoder.downscale,
                       tile[2].size() * autoencoder.downscale, autoencoder.colours}));
}

// All or nothing: who finds no room for it tries once more.
void append_frames(Context& ctx, const Tensor& pictures, std::pmr::vector<float>& made) {
  const std::size_t before = made.size();
  made.resize(before + std::size_t(pictures.count()));
  try {
    read_to<float>(ctx, pictures, std::span<float>(made).subspan(before));
  } catch (...) {
    made.resize(before);
    throw;
  }
}

// What the decoder makes of a tile (1, C, F, h, w) of samples, behind what there is.
void append_tile(Context& ctx, const Value& vae, const Value& latent,
                 const Autoencoder& autoencoder, const Tensor& tile,
                 std::pmr::vector<float>& made) {
  const auto raw = [&](const Tensor& cells) {
    return raw_of(ctx, ops::contiguous(ctx, cells), latent, autoencoder);
  };
  check_going_on(ctx);
  if (decodes_whole_videos(vae))
    return append_frames(ctx, decoded(ctx, model_of(vae, "decoder"), raw(tile)), made);
  ChunkRounds rounds{.chunks = tile.size(2), .always_waits = true};
  rounds.give = [&](std::int64_t, std::int64_t t) {
    return raw(tile.slice(2, t, t + 1)).reshape({1, tile.size(1), tile.size(3), tile.size(4)});
  };
  rounds.read = [&](std::int64_t, std::int64_t, const Tensor& pictures, bool) {
    append_frames(ctx, pictures, made);
  };
  code_chunks(ctx, vae.field("decoder_chunks"), rounds);
}

}  // namespace

Tensor decoded_frames_in_tiles(Context& ctx, const Value& vae, const Value& latent,
                               const VideoTiling& tiling, heddle_port_index output) {
  const Autoencoder autoencoder(vae);
  const Tensor samples = latent.get<Tensor>("samples", {});
  check_channels(samples.size(1), autoencoder);
  const TileAxes axes = decoding_axes(samples.shape(), vae, autoencoder, tiling);
  const std::vector<VideoTile> tiles = tiles_of(axes);
  const Tensor frames = ctx.make_host(frames_shape(samples.shape(), vae, autoencoder), HEDDLE_F32);
  PartsOfOutput parts(ctx, output, frames);
  const std::int64_t numbers = frames.count() / samples.size(0);
  HostMemory memory(ctx);
  std::pmr::vector<float> made(&memory);
  double done = 0;
  for (std::int64_t item = 0; item < samples.size(0); ++item) {
    float* const all = frames.data<float>() + item * numbers;
    VideoSum sum(axes, 1, autoencoder.colours, all, memory);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const VideoTile& tile = tiles[i];
      made.clear();
      append_tile(ctx, vae, latent, autoencoder,
                  samples.slice(0, item, item + 1)
                      .slice(2, tile[0].begin, tile[0].end)
                      .slice(3, tile[1].begin, tile[1].end)
                      .slice(4, tile[2].begin, tile[2].end),
                  made);
      sum.add(tile, made.data());
      // Tiles go on in time: none that comes begins before the next one.
      const std::int64_t whole =
          i + 1 < tiles.size() ? axes[0].place_of(tiles[i + 1][0].begin) : sum.frames();
      const std::int64_t each = numbers / sum.frames();
      for (std::int64_t n = sum.finish(whole); n < whole * each; ++n)
        all[n] = std::clamp(all[n] * 0.5f + 0.5f, 0.0f, 1.0f);
      parts.made(item * sum.frames() + whole);
      ctx.progress(++done / (double(tiles.size()) * double(samples.size(0))), "tiles");
    }
  }
  parts.whole();
  return frames;
}

void tell_decoded_tiles(Infer& question, const Value& vae, const Shape& samples,
                        const Autoencoder& autoencoder, const VideoTiling& tiling) {
  const TileAxes axes = decoding_axes(samples, vae, autoencoder, tiling);
  if (!have_steps(axes)) return;  // the run says why
  const bool at_once = decodes_whole_videos(vae);
  std::uint64_t kept = 0;
  for (std::int64_t item = 0; item < samples[0]; ++item)
    for (const VideoTile& tile : tiles_of(axes)) {
      if (at_once) {
        question.call(vae.field("decoder"), {tile_set(vae.field("decoder"), tile, samples[1])});
        continue;
      }
      kept = std::max(kept, pictures_of_a_chunk(vae, autoencoder, tile) +
                                tell_chunks(question, vae.field("decoder_chunks"),
                                            {tile[1].size(), tile[2].size()}, autoencoder.downscale,
                                            tile[0].size()));
    }
  const double numbers = double(count_of(frames_shape(samples, vae, autoencoder)));
  question.cost(4 * numbers, 4 * double(sizeof(float)) * numbers, kept);
  question.host_scratch(2 * sizeof(float) * std::uint64_t(numbers));
}

void tell_least_decoded_tile(Infer& question, const Value& vae, const Shape& samples,
                             const Autoencoder& autoencoder, const VideoTiling& tiling) {
  const VideoTile tile = tiles_of(decoding_axes(samples, vae, autoencoder, tiling)).front();
  if (decodes_whole_videos(vae)) {
    question.least_call(vae.field("decoder"), {tile_set(vae.field("decoder"), tile, samples[1])});
    return tell_least_scratch(question, 0);
  }
  tell_least_scratch(question, pictures_of_a_chunk(vae, autoencoder, tile) +
                                   tell_least_chunks(question, vae.field("decoder_chunks"),
                                                     {tile[1].size(), tile[2].size()},
                                                     autoencoder.downscale, tile[0].size()));
}

Tensor encoded_frames_in_tiles(Context& ctx, const Value& vae, const Tensor& pictures,
                               const Autoencoder& autoencoder, const VideoTiling& tiling) {
  const TileAxes axes = encoding_axes(pictures.shape(), vae, autoencoder, tiling);
  const std::vector<VideoTile> tiles = tiles_of(axes);
  const Shape shape = latent_frames_shape(pictures.shape(), vae, autoencoder);
  HostMemory memory(ctx);
  std::pmr::vector<float> means(std::size_t(count_of(shape)), &memory), made(&memory);
  VideoSum sum(axes, shape[1], 1, means.data(), memory);
  double done = 0;
  for (const VideoTile& tile : tiles) {
    check_going_on(ctx);
    const Tensor part = pictures.slice(0, tile[0].begin, tile[0].end)
                            .slice(1, tile[1].begin, tile[1].end)
                            .slice(2, tile[2].begin, tile[2].end);
    const double all = double(tiles.size());
    const Tensor mean = encoded_frames(ctx, vae, part, autoencoder, {done / all, (done + 1) / all});
    ++done;
    made.resize(std::size_t(mean.count()));
    read_to<float>(ctx, mean, made);
    sum.add(tile, made.data());
  }
  sum.finish(sum.frames());
  return ctx.upload(shape, HEDDLE_F32, means.data());
}

void tell_encoded_tiles(Infer& question, const Value& vae, const Shape& pictures,
                        const Autoencoder& autoencoder, const VideoTiling& tiling) {
  const TileAxes axes = encoding_axes(pictures, vae, autoencoder, tiling);
  if (!have_steps(axes)) return;  // the run says why
  std::uint64_t kept = 0;
  for (const VideoTile& tile : tiles_of(axes))
    kept = std::max(
        kept, tell_chunks(question, vae.field("encoder_chunks"),
                          {axes[1].length_of(tile[1].size()), axes[2].length_of(tile[2].size())},
                          autoencoder.downscale, axes[0].length_of(tile[0].size())));
  const double numbers = double(count_of(pictures));
  question.cost(2 * numbers, 2 * double(sizeof(float)) * numbers, kept);
  question.host_scratch(3 * sizeof(float) *
                        std::uint64_t(count_of(latent_frames_shape(pictures, vae, autoencoder))));
}

}  // namespace heddle::vae
