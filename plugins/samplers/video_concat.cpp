#include "video_concat.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/resample.h"
#include "random.h"

namespace heddle::samplers {
namespace {

// Frames of so many channels, in host memory.
struct Clip {
  std::int64_t rows = 0, channels = 0, frames = 0;
  blocks::GridSize size;
  std::pmr::vector<float> values;

  std::int64_t plane() const { return size.height * size.width; }
  std::int64_t planes() const { return rows * channels * frames; }
  const float* of(std::int64_t row, std::int64_t channel, std::int64_t frame) const {
    return values.data() + ((row * channels + channel) * frames + frame) * plane();
  }
};

// (B, C, T, h, w), or (B, C, h, w), which is one frame.
Clip read_clip(Context& ctx, const Tensor& tensor, const char* name,
               std::pmr::memory_resource& memory) {
  if (tensor.rank() < 4 || tensor.rank() > 5 || tensor.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the conditioning's '") + name + "' has " +
                    std::to_string(tensor.rank()) + " axes and " + std::to_string(tensor.count()) +
                    " numbers; a video's is (batch, channels, frames, height, width). Link a node "
                    "for videos, such as WanImageToVideo.");
  const Tensor floats = tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx, tensor, HEDDLE_F32);
  Clip clip{.rows = tensor.size(0),
            .channels = tensor.size(1),
            .frames = tensor.rank() == 5 ? tensor.size(2) : 1,
            .size = {tensor.size(-2), tensor.size(-1)},
            .values = std::pmr::vector<float>(std::size_t(tensor.count()), &memory)};
  read_to<float>(ctx, floats, clip.values);
  return clip;
}

void resize_clip(Clip& clip, const blocks::GridSize& to, std::pmr::memory_resource& memory) {
  if (clip.size == to) return;
  std::pmr::vector<float> resized(
      std::size_t(checked_product({clip.planes(), to.height, to.width}, "what the model reads")),
      &memory);
  const auto all = blocks::Source::of(clip.values.data(), {clip.planes(), clip.size, 1});
  blocks::resample(blocks::centre_cropped(all, to), to, blocks::Resampling::bilinear,
                   resized.data(), memory);
  clip.values = std::move(resized);
  clip.size = to;
}

// How many of its channels the model is shown, with a mask beside them or without.
struct ShownChannels {
  std::int64_t channels = 0, masks = 0;
};
ShownChannels shown_channels(const Clip& clip, const ConcatLayout& layout) {
  const std::int64_t beside_mask = layout.video - layout.video_masks;
  if (clip.channels == layout.video) return {clip.channels, 0};
  if (layout.node.empty() && clip.channels >= beside_mask && beside_mask > 0)
    return {beside_mask, layout.video_masks};
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the conditioning's video has " + std::to_string(clip.channels) +
                  " latent channels; the model reads " + std::to_string(layout.video) +
                  " beside the point, or " + std::to_string(beside_mask) + " with a mask of " +
                  std::to_string(layout.video_masks) +
                  ". Take the node and the autoencoder that belong to this model" +
                  (layout.node.empty() ? "." : ": " + layout.node + "."));
}

Clip read_video(Context& ctx, const Value& entry, const ConcatLayout& layout,
                const LatentFormat& format, const Shape& grid, std::pmr::memory_resource& memory) {
  Clip clip = read_clip(ctx, entry.field("concat_latent_image").as<Tensor>(), "concat_latent_image",
                        memory);
  if (clip.frames != grid[0])
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's video has " + std::to_string(clip.frames) +
                    " latent frames, the latent that is drawn has " + std::to_string(grid[0]) +
                    ". Take both from the same node, or give both the same length.");
  for (std::int64_t i = 0; !layout.is_raw && i < clip.rows * clip.channels; ++i) {
    const LatentFormat::Units& units = format.of(i % clip.channels % layout.image);
    float* const first = clip.values.data() + i * clip.frames * clip.plane();
    std::transform(first, first + clip.frames * clip.plane(), first, [&](float number) {
      return (number - float(units.shift)) * float(units.scale);
    });
  }
  if (!layout.node.empty() && clip.size != blocks::GridSize{grid[1], grid[2]})
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's video has " + std::to_string(clip.size.height) + " x " +
                    std::to_string(clip.size.width) + " cells, the latent that is drawn has " +
                    std::to_string(grid[1]) + " x " + std::to_string(grid[2]) + ". " + layout.node +
                    " and the sampler have to be given the same latent.");
  resize_clip(clip, {grid[1], grid[2]}, memory);
  return clip;
}

// A row for each item, and its own noise. Source: ComfyUI's super resolution of HunyuanVideo 1.5.
Clip noised(Clip clip, const Value& entry, const ConcatLayout& layout, const ConcatPlace& place,
            std::pmr::memory_resource& memory) {
  constexpr double kMost = 0.75;
  constexpr std::uint64_t kSeedBefore = 10;
  const std::int64_t each = clip.channels * clip.frames * clip.plane(),
                     numbers = layout.image * clip.frames * clip.plane();
  if (layout.noised + layout.image > clip.channels) return clip;  // refused by its channels
  const double told = entry.get<double>("noise_augmentation", 0.0);
  const auto share = float(told), kept = float(std::min(1.0 - told, kMost));
  std::pmr::vector<float> values(
      std::size_t(checked_product({place.items, each}, "what the model reads")), &memory);
  std::pmr::vector<float> noise(&memory);
  if (share > 0)
    noise = initial_noise(place.seed - kSeedBefore, std::size_t(place.items * numbers), memory);
  for (std::int64_t item = 0; item < place.items; ++item) {
    float* const to = values.data() + item * each;
    std::copy_n(clip.of(spread_row(item, place.items, clip.rows), 0, 0), each, to);
    float* const mixed = to + layout.noised * clip.frames * clip.plane();
    for (std::int64_t i = 0; i < numbers; ++i) {
      mixed[i] *= kept;
      if (share > 0) mixed[i] += share * noise[std::size_t(item * numbers + i)];
    }
  }
  clip.values = std::move(values);
  clip.rows = place.items;
  return clip;
}

// 1 where it is given: of one channel or of four. field: of the record that has the mask.
Clip read_given(Context& ctx, const Value& record, const char* field, const ConcatLayout& layout,
                const Shape& grid, std::pmr::memory_resource& memory) {
  Clip mask = read_clip(ctx, record.field(field).as<Tensor>(), field, memory);
  if (mask.frames > grid[0])
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the conditioning's '") + field + "' has " +
                    std::to_string(mask.frames) + " frames, the latent that is drawn has " +
                    std::to_string(grid[0]) + ". Take both from the same node.");
  if (mask.channels != layout.video_masks && mask.channels != 1) {
    Clip mean{mask.rows, 1, mask.frames, mask.size, std::pmr::vector<float>(&memory)};
    const std::int64_t numbers = mask.frames * mask.plane();
    for (std::int64_t row = 0; row < mask.rows; ++row)
      for (std::int64_t i = 0; i < numbers; ++i) {
        double sum = 0;
        for (std::int64_t c = 0; c < mask.channels; ++c) sum += double(mask.of(row, c, 0)[i]);
        mean.values.push_back(float(sum / double(mask.channels)));
      }
    mask = std::move(mean);
  }
  for (float& number : mask.values) number = 1.0f - number;
  resize_clip(mask, {grid[1], grid[2]}, memory);
  return mask;
}

// The part of the grid that is wanted.
struct ClipPart {
  Shape begin, size;
};
ClipPart clip_part(const ConcatPlace& place) {
  if (!place.box) return {{0, 0, 0}, place.grid};
  return {place.box->begin, place.box->size};
}

// A channel of an item; frames that the clip has not are zeros.
float* copy_channel(const Clip& clip, std::int64_t row, std::int64_t channel, const ClipPart& part,
                    float* to) {
  for (std::int64_t t = part.begin[0]; t < part.begin[0] + part.size[0]; ++t) {
    if (t >= clip.frames) {
      to = std::fill_n(to, part.size[1] * part.size[2], 0.0f);
      continue;
    }
    const float* const plane = clip.of(row, channel, t);
    for (std::int64_t y = part.begin[1]; y < part.begin[1] + part.size[1]; ++y)
      to = std::copy_n(plane + y * clip.size.width + part.begin[2], part.size[2], to);
  }
  return to;
}

// Zeros for the masks, then what each frame always has.
Tensor always_beside(Context& ctx, const ConcatLayout& layout, const ClipPart& part) {
  const Shape shape{1, layout.video, part.size[0], part.size[1], part.size[2]};
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  const std::int64_t plane = part.size[1] * part.size[2];
  float* to = made.data<float>();
  for (std::int64_t c = 0; c < layout.video; ++c)
    for (std::int64_t t = part.begin[0]; t < part.begin[0] + part.size[0]; ++t) {
      const auto& frame = layout.always[std::min(std::size_t(t), layout.always.size() - 1)];
      const std::int64_t own = c - layout.video_masks;
      const bool is_told = own >= 0 && own < std::int64_t(frame.size());
      to = std::fill_n(to, plane, is_told ? frame[std::size_t(own)] : 0.0f);
    }
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

// Masks alone: 1 where frames are kept.
Tensor kept_beside(Context& ctx, const Value& entry, const ConcatLayout& layout,
                   const ConcatPlace& place, const ClipPart& part) {
  HostMemory memory(ctx);
  std::optional<Clip> mask;
  if (entry.has("concat_mask"))
    mask = read_given(ctx, entry, "concat_mask", layout, place.grid, memory);
  else if (has_noise_mask(place))
    mask = read_given(ctx, place.latent, "noise_mask", layout, place.grid, memory);
  const bool is_each = has_noise_mask(place) || (mask && mask->rows > 1);
  const Shape shape{is_each ? place.items : 1, layout.video, part.size[0], part.size[1],
                    part.size[2]};
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  if (!mask) std::fill_n(to, made.count(), 0.0f);
  for (std::int64_t item = 0; mask && item < shape[0]; ++item)
    for (std::int64_t c = 0; c < layout.video; ++c)
      to =
          copy_channel(*mask, spread_row(item, shape[0], mask->rows), c % mask->channels, part, to);
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

}  // namespace

Tensor video_concat_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                       const LatentFormat& format, const ConcatPlace& place) {
  if (place.grid.size() != 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model reads a video beside the one that it draws, and the latent has no "
                "frames. Give it the latent of a video.");
  const ClipPart part = clip_part(place);
  if (!layout.always.empty()) return always_beside(ctx, layout, part);
  if (layout.kept) return kept_beside(ctx, entry, layout, place, part);
  if (!layout.node.empty() && !entry.has("concat_latent_image"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a conditioning has no latent that the model works on. Take both conditionings "
                "from " +
                    layout.node + ".");
  Shape shape{1, layout.video, part.size[0], part.size[1], part.size[2]};
  HostMemory memory(ctx);
  std::optional<Clip> video, mask;
  ShownChannels shown;
  if (entry.has("concat_latent_image")) {
    video = read_video(ctx, entry, layout, format, place.grid, memory);
    shown = shown_channels(*video, layout);
    if (layout.noised > 0) video = noised(std::move(*video), entry, layout, place, memory);
    if (entry.has("concat_mask"))
      mask = read_given(ctx, entry, "concat_mask", layout, place.grid, memory);
  }
  const auto has_rows = [](const std::optional<Clip>& clip) { return clip && clip->rows > 1; };
  if (has_rows(video) || has_rows(mask) || (video && layout.noised > 0)) shape[0] = place.items;
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  if (!video) std::fill_n(to, made.count(), 0.0f);
  const std::int64_t before =
      std::clamp<std::int64_t>(entry.get<std::int64_t>("concat_mask_index", 0), 0, shown.channels);
  for (std::int64_t item = 0; video && item < shape[0]; ++item) {
    const std::int64_t row = spread_row(item, shape[0], video->rows);
    for (std::int64_t c = 0; c < before; ++c) to = copy_channel(*video, row, c, part, to);
    const auto copy_masks = [&] {
      for (std::int64_t c = 0; c < shown.masks; ++c) {
        if (mask)
          to = copy_channel(*mask, spread_row(item, shape[0], mask->rows), c % mask->channels, part,
                            to);
        else
          to = std::fill_n(to, part.size[0] * part.size[1] * part.size[2], 0.0f);
      }
    };
    if (!layout.mask_last) copy_masks();
    for (std::int64_t c = before; c < shown.channels; ++c)
      to = copy_channel(*video, row, c, part, to);
    if (layout.mask_last) copy_masks();
  }
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

}  // namespace heddle::samplers
