#include "reference_input.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "latent.h"
#include "plugins/blocks/minimax_latents.h"

namespace heddle::samplers {
namespace {

// Writes the tokens of one row; a side that lacks cells has its first ones there, as in ComfyUI.
float* pack(const Reference& from, std::int64_t row, const ReferenceLayout& layout, float* to) {
  const std::int64_t height = from.shape[2], width = from.shape[3], patch = layout.patch;
  const float* const item = from.values.data() + row * layout.channels * height * width;
  for (std::int64_t y = 0; y < layout.tokens_along(height); ++y)
    for (std::int64_t x = 0; x < layout.tokens_along(width); ++x)
      for (std::int64_t channel = 0; channel < layout.channels; ++channel)
        for (std::int64_t i = 0; i < patch * patch; ++i) {
          const std::int64_t cell_y = (y * patch + i / patch) % height;
          const std::int64_t cell_x = (x * patch + i % patch) % width;
          *to++ = item[(channel * height + cell_y) * width + cell_x];
        }
  return to;
}

// As ComfyUI names it: places as of "index".
constexpr const char* kTimestepZero = "index_timestep_zero";
// Before the pictures that are drawn, of models that draw several.
constexpr const char* kBefore = "negative_index";

// Of a side, the tokens before its middle, where that is the origin.
std::int64_t before_middle(std::int64_t cells, const ReferenceLayout& layout) {
  const std::int64_t tokens = layout.tokens_along(cells);
  return layout.centred ? tokens - tokens / 2 : 0;
}

void write_positions(const std::vector<ReferencePlace>& places,
                     const std::vector<ReferenceSize>& sizes, const ReferenceLayout& layout,
                     float* to) {
  for (std::size_t k = 0; k < places.size(); ++k)
    for (std::int64_t y = 0; y < layout.tokens_along(sizes[k].height); ++y)
      for (std::int64_t x = 0; x < layout.tokens_along(sizes[k].width); ++x) {
        *to++ = float(places[k].index);
        *to++ = float(places[k].row + y - before_middle(sizes[k].height, layout));
        *to++ = float(places[k].column + x - before_middle(sizes[k].width, layout));
      }
}

// Behind the largest half side of all pictures, and behind all `frames` that are drawn; 0: one.
std::int64_t text_start(const std::vector<ReferenceSize>& sizes, const ReferenceSize& point,
                        std::int64_t frames, const ReferenceLayout& layout) {
  std::int64_t start = frames;
  const auto reach = [&](const ReferenceSize& size) {
    for (const std::int64_t cells : {size.height, size.width})
      start = std::max(start, layout.tokens_along(cells) / 2);
  };
  reach(point);
  for (const ReferenceSize& size : sizes) reach(size);
  return start;
}

bool has_timestep_zero(const ReferenceLayout& layout, const Value& entry) {
  return entry.get<std::string>("reference_latents_method", layout.method) == kTimestepZero;
}

Tensor one_number(Context& ctx, double number) {
  const Tensor tensor = ctx.make_host({1}, HEDDLE_F32);
  *tensor.data<float>() = float(number);
  return tensor;
}

}  // namespace

Reference read_reference(Context& ctx, const Value& record, const ReferenceLayout& layout,
                         const LatentFormat& format, std::pmr::memory_resource& memory) {
  Tensor samples = record.field("samples").as<Tensor>();
  const Shape shape = with_frames(samples.shape(), false);
  if (shape.size() != samples.rank()) samples = ops::contiguous(ctx, samples).reshape(shape);
  if (samples.rank() != 4 || samples.size(1) != layout.channels || samples.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a reference picture has " +
                    std::to_string(samples.rank() > 1 ? samples.size(1) : 0) +
                    " latent channels on " + std::to_string(samples.rank() - 2) +
                    " axes; the model reads pictures of " + std::to_string(layout.channels) +
                    " channels. Encode it with the autoencoder that belongs to this model.");
  Reference read{samples.shape(), std::pmr::vector<float>(std::size_t(samples.count()), &memory)};
  read_to<float>(ctx, samples.dtype() == HEDDLE_F32 ? samples : ops::cast(ctx, samples, HEDDLE_F32),
                 read.values);
  if (record.get<bool>("scaled", false)) return read;
  const std::int64_t plane = samples.size(2) * samples.size(3);
  for (std::size_t i = 0; i < read.values.size(); ++i) {
    const LatentFormat::Units& units = format.of(std::int64_t(i) / plane % layout.channels);
    read.values[i] = (read.values[i] - float(units.shift)) * float(units.scale);
  }
  return read;
}

void refuse_references(const Value& entry, const Value& model) {
  if (entry.field(blocks::kMinimaxSounds).count() > 0 && !model_takes(model, kSoundReferences) &&
      !model_takes(model, kHint))
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning carries sounds ('reference_sounds'), which the model '" +
                    model_family(model) + "' is not shown. Leave out the node that sets them.");
  if (entry.field("reference_latents").count() == 0 || reference_layout(model_settings(model)) ||
      model_settings(model).has("reference_frame") ||
      model_takes(model, kHint))  // a ControlNet sees the picture that is drawn alone
    return;
  throw Error(
      HEDDLE_UNSUPPORTED,
      "the conditioning carries reference pictures ('reference_latents'), which the model '" +
          model_family(model) + "' is not shown yet. Leave out the node that sets them.");
}

std::optional<ReferenceLayout> reference_layout(const Value& settings) {
  const auto has_clips = settings.get<bool>("reference_clips", false);
  if (!settings.has("reference_method") && !settings.has("reference_slots") && !has_clips)
    return {};
  return ReferenceLayout{.channels = settings.get<std::int64_t>("latent_channels", 0),
                         .patch = settings.get<std::int64_t>("patch", 1),
                         .method = settings.get<std::string>("reference_method", ""),
                         .step = settings.get<std::int64_t>("reference_step", 1),
                         .centred = settings.get<bool>("reference_centred", false),
                         .timed = settings.get<bool>("reference_timestep", false),
                         .has_frames = settings.get<bool>("latent_frames", false),
                         .slots = settings.get<std::int64_t>("reference_slots", 0),
                         .has_clips = has_clips};
}

std::vector<ReferencePlace> reference_places(const std::vector<ReferenceSize>& sizes,
                                             const ReferenceSize& point, const std::string& method,
                                             const ReferenceLayout& layout) {
  const auto in_tokens = [&](std::int64_t cells) {
    return (cells + layout.patch / 2) / layout.patch;
  };
  const auto of_point = [&](std::int64_t cells) {
    return layout.tokens_along(cells) * layout.patch;
  };
  std::vector<ReferencePlace> places;
  std::int64_t height = 0, width = 0;  // what they take so far
  for (const ReferenceSize& size : sizes) {
    std::int64_t down = 0, right = 0, index = 1;
    if (method == "index" || (layout.timed && method == kTimestepZero)) {
      index = layout.step * (std::int64_t(places.size()) + 1);
    } else if (method == kBefore && layout.has_frames) {
      index = -layout.step * (std::int64_t(places.size()) + 1);
    } else if (method == "offset") {
      if (size.height + height > size.width + width)
        right = width;
      else
        down = height;
      height = std::max(height, size.height + down);
      width = std::max(width, size.width + right);
    } else if (method == "uxo") {
      index = 0;
      down = of_point(point.height) + height;
      right = of_point(point.width) + width;
      height += size.height;
      width += size.width;
    } else {
      throw Error(HEDDLE_UNSUPPORTED,
                  "reference pictures are to lie as '" + method +
                      "' says, which this model does not do. Choose offset, index" +
                      (layout.timed ? ", index_timestep_zero" : "") + " or uxo/uno.");
    }
    places.push_back({index, in_tokens(down), in_tokens(right)});
  }
  return places;
}

std::optional<ReferenceTokenShapes> reference_shapes(const blocks::EntryShapes& entry,
                                                     const ReferenceLayout& layout,
                                                     std::int64_t items) {
  if (layout.has_clips) return clip_reference_shapes(entry, layout);
  std::int64_t tokens = 0, rows = 1;
  for (const heddle_tensor_info& info : entry.references) {
    if (info.rank != 4) return {};
    if (info.shape[0] > 1) rows = items;
    tokens += layout.tokens_along(info.shape[2]) * layout.tokens_along(info.shape[3]);
  }
  return ReferenceTokenShapes{{rows, tokens, layout.channels * layout.patch * layout.patch},
                              {tokens, 3},
                              layout.centred,
                              has_timestep_zero(layout, entry.scope)};
}

ReferenceTokens reference_tokens(Context& ctx, const Value& entry, const ReferenceLayout& layout,
                                 const LatentFormat& format, const Shape& grid,
                                 std::int64_t items) {
  if (layout.has_clips) return clip_reference_tokens(ctx, entry, layout, format);
  const bool is_many = layout.has_frames && grid.size() == 3;
  if (grid.size() != 2 && !is_many)
    throw Error(HEDDLE_UNSUPPORTED,
                "the model is shown reference pictures, and the latent is a video's. Give it the "
                "latent of a picture.");
  HostMemory memory(ctx);
  const Value list = entry.field("reference_latents");
  std::vector<Reference> references;
  std::vector<ReferenceSize> sizes;
  std::int64_t tokens = 0, rows = 1;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    references.push_back(read_reference(ctx, list.item(i), layout, format, memory));
    const Shape& shape = references.back().shape;
    sizes.push_back({shape[2], shape[3]});
    if (shape[0] > 1) rows = items;
    tokens += layout.tokens_along(shape[2]) * layout.tokens_along(shape[3]);
  }
  const ReferenceSize point{grid[grid.size() - 2], grid.back()};
  const std::vector<ReferencePlace> places = reference_places(
      sizes, point, entry.get<std::string>("reference_latents_method", layout.method), layout);
  const Shape shape{rows, tokens, layout.channels * layout.patch * layout.patch};
  const Tensor packed = ctx.make_host(shape, HEDDLE_F32);
  const Tensor positions = ctx.make_host({tokens, 3}, HEDDLE_F32);
  float* to = packed.data<float>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (const Reference& reference : references)
      to = pack(reference, row % reference.shape[0], layout, to);
  write_positions(places, sizes, layout, positions.data<float>());
  ReferenceTokens made{ctx.upload(shape, HEDDLE_F32, packed.data<float>()),
                       ctx.upload({tokens, 3}, HEDDLE_F32, positions.data<float>()),
                       {},
                       {}};
  if (layout.centred)
    made.text_start =
        one_number(ctx, double(text_start(sizes, point, is_many ? grid[0] : 0, layout)));
  if (has_timestep_zero(layout, entry)) made.timestep = one_number(ctx, 0);
  return made;
}

}  // namespace heddle::samplers
