#include "concat_input.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "noised_picture.h"
#include "plugins/blocks/resample.h"
#include "video_concat.h"

namespace heddle::samplers {
namespace {

// Planes of one size, `count` of each row.
struct Planes {
  std::int64_t rows = 1, count = 1;
  blocks::GridSize size;
  std::pmr::vector<float> values;

  const float* of(std::int64_t row, std::int64_t plane) const {
    return values.data() + (row * count + plane) * size.height * size.width;
  }
};

Planes read_planes(Context& ctx, const Tensor& tensor, std::pmr::memory_resource& memory) {
  const Tensor floats = tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx, tensor, HEDDLE_F32);
  Planes planes{.rows = tensor.rank() > 2 ? tensor.size(0) : 1,
                .count = tensor.rank() > 3 ? tensor.size(1) : 1,
                .size = {tensor.size(-2), tensor.size(-1)},
                .values = std::pmr::vector<float>(std::size_t(tensor.count()), &memory)};
  read_to<float>(ctx, floats, planes.values);
  return planes;
}

void resize(Planes& planes, const blocks::GridSize& to, std::pmr::memory_resource& memory) {
  if (planes.size == to) return;
  const std::int64_t outer = planes.rows * planes.count;
  std::pmr::vector<float> resized(
      std::size_t(checked_product({outer, to.height, to.width}, "what the model reads")), &memory);
  const auto all = blocks::Source::of(planes.values.data(), {outer, planes.size, 1});
  blocks::resample(blocks::centre_cropped(all, to), to, blocks::Resampling::bilinear,
                   resized.data(), memory);
  planes.values = std::move(resized);
  planes.size = to;
}

// Planes of one number each.
Planes filled_planes(const blocks::GridSize& size, std::initializer_list<float> numbers,
                     std::pmr::memory_resource& memory) {
  Planes planes{.rows = 1,
                .count = std::int64_t(numbers.size()),
                .size = size,
                .values = std::pmr::vector<float>(&memory)};
  for (const float number : numbers)
    planes.values.insert(planes.values.end(), std::size_t(size.height * size.width), number);
  return planes;
}

// The latent of a grey picture in Stable Diffusion's units: ComfyUI's constants.
Planes grey_planes(const ConcatLayout& layout, const blocks::GridSize& size,
                   std::pmr::memory_resource& memory) {
  if (layout.image != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model reads a latent of " + std::to_string(layout.image) +
                    " channels of what is kept, and the conditioning has none. Link "
                    "InpaintModelConditioning.");
  return filled_planes(size, {0.8223f, -0.6876f, 0.6364f, 0.1380f}, memory);
}

Planes image_planes(Context& ctx, const Value& entry, const ConcatLayout& layout,
                    const LatentFormat& format, const blocks::GridSize& to,
                    std::pmr::memory_resource& memory) {
  if (entry.has("concat_latent_image")) {
    const Tensor image = entry.field("concat_latent_image").as<Tensor>();
    if (image.rank() != 4 || image.size(1) != layout.image || image.count() == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the conditioning's picture has " +
                      std::to_string(image.rank() > 1 ? image.size(1) : 0) +
                      " latent channels; the model reads " + std::to_string(layout.image) +
                      " of a picture. Encode it with the autoencoder that belongs to this model.");
    Planes planes = read_planes(ctx, image, memory);
    const std::int64_t plane = image.size(2) * image.size(3);
    for (std::size_t i = 0; !layout.is_raw && i < planes.values.size(); ++i) {
      const LatentFormat::Units& units = format.of(std::int64_t(i) / plane % layout.image);
      planes.values[i] = (planes.values[i] - float(units.shift)) * float(units.scale);
    }
    resize(planes, to, memory);
    return planes;
  }
  Planes nothing{
      .rows = 1, .count = layout.image, .size = to, .values = std::pmr::vector<float>(&memory)};
  for (std::int64_t channel = 0; channel < layout.image; ++channel) {
    const LatentFormat::Units& units = format.of(channel);
    nothing.values.insert(nothing.values.end(), std::size_t(to.height * to.width),
                          layout.is_raw ? 0.0f : (0.0f - float(units.shift)) * float(units.scale));
  }
  return nothing;
}

Tensor given_mask(const Value& entry) {
  return entry.has("concat_mask") ? entry.field("concat_mask").as<Tensor>() : Tensor();
}

// The mean of its channels, with a number for each pixel.
Planes mask_planes(Context& ctx, const Tensor& given, const blocks::GridSize& pixels,
                   std::pmr::memory_resource& memory) {
  if (!given) {
    const auto count = std::size_t(checked_product({pixels.height, pixels.width}, "the mask"));
    return {1, 1, pixels, std::pmr::vector<float>(count, 1.0f, &memory)};
  }
  if (given.rank() < 2 || given.rank() > 4 || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'concat_mask' is no tensor (batch, 1, height, width). Link a "
                "MASK to the node that sets it.");
  Planes planes = read_planes(ctx, given, memory);
  if (planes.count > 1) {
    Planes mean{.rows = planes.rows,
                .count = 1,
                .size = planes.size,
                .values = std::pmr::vector<float>(&memory)};
    const std::int64_t size = planes.size.height * planes.size.width;
    for (std::int64_t row = 0; row < planes.rows; ++row)
      for (std::int64_t i = 0; i < size; ++i) {
        double sum = 0;
        for (std::int64_t c = 0; c < planes.count; ++c) sum += double(planes.of(row, c)[i]);
        mean.values.push_back(float(sum / double(planes.count)));
      }
    planes = std::move(mean);
  }
  resize(planes, pixels, memory);
  return planes;
}

// The part of the grid that is wanted.
struct Window {
  std::int64_t y = 0, x = 0, height = 0, width = 0;
};
Window window_of(const ConcatPlace& place) {
  if (!place.box) return {0, 0, place.grid[0], place.grid[1]};
  return {place.box->begin[0], place.box->begin[1], place.box->size[0], place.box->size[1]};
}

// Copies every `step`-th number of every `step`-th row, from an offset on.
float* copy_cells(const float* plane, std::int64_t width, std::int64_t step, std::int64_t row,
                  std::int64_t column, const Window& window, float* to) {
  for (std::int64_t y = 0; y < window.height; ++y) {
    const float* from = plane + ((window.y + y) * step + row) * width + window.x * step + column;
    for (std::int64_t x = 0; x < window.width; ++x) *to++ = from[x * step];
  }
  return to;
}

}  // namespace

std::int64_t spread_row(std::int64_t item, std::int64_t items, std::int64_t rows) {
  if (items == rows || rows == 1) return rows == 1 ? 0 : item;
  if (items > rows) return std::int64_t((double(item) + 0.5) * double(rows) / double(items));
  if (items == 1) return 0;
  return blocks::rounded(double(item) * double(rows - 1) / double(items - 1));
}

std::optional<ConcatLayout> concat_layout(const Value& settings) {
  const auto channels = settings.get<std::int64_t>("concat_channels", 0);
  if (channels == 0) return {};
  ConcatLayout layout{.image = settings.get<std::int64_t>("latent_channels", 0),
                      .is_raw = settings.get<bool>("concat_raw", false)};
  if (const auto levels = settings.get<std::int64_t>("concat_levels", 0); levels > 0) {
    layout.image = channels;
    layout.levels = levels;
    layout.betas.first = settings.get<double>("noise_first", layout.betas.first);
    layout.betas.last = settings.get<double>("noise_last", layout.betas.last);
    return layout;
  }
  if (settings.get<bool>("latent_frames", false)) {
    layout.video = channels;
    layout.video_masks = settings.get<std::int64_t>("concat_masks", layout.video_masks);
    layout.mask_last = settings.get<bool>("concat_mask_last", false);
    layout.noised = settings.get<std::int64_t>("concat_noised", 0);
    layout.kept = settings.get<bool>("concat_kept", false);
    layout.node = settings.get<std::string>("concat_node", "");
    const Value always = settings.field("concat_always");
    for (std::uint32_t i = 0; i < always.count(); ++i) {
      std::vector<float> numbers;
      for (std::uint32_t c = 0; c < always.item(i).count(); ++c)
        numbers.push_back(float(always.item(i).item(c).as<double>()));
      layout.always.push_back(numbers);
    }
    return layout;
  }
  if (channels == layout.image) return layout;
  if (channels == layout.image + 1) {
    layout.mask_first = true;
    return layout;
  }
  layout.downscale = settings.get<std::int64_t>("latent_downscale", 0);
  if (channels == layout.channels()) return layout;
  throw Error(HEDDLE_UNSUPPORTED,
              "the model reads " + std::to_string(channels) +
                  " channels beside the picture that it draws. Those of a picture are " +
                  std::to_string(layout.image) + ", with a mask " +
                  std::to_string(layout.image + 1) + " or " + std::to_string(layout.channels()) +
                  ". Use a model that reads one of these.");
}

bool has_noise_mask(const ConcatPlace& place) {
  return place.latent && place.latent.has("noise_mask");
}

Shape concat_shape(const blocks::EntryShapes& entry, const ConcatLayout& layout,
                   const ConcatPlace& place) {
  const auto has_rows = [&](const std::optional<heddle_tensor_info>& info) {
    return info && info->rank > 2 && info->shape[0] > 1;
  };
  const bool has_mask =
      layout.downscale > 0 || layout.kept || (layout.video > 0 && entry.concat_image);
  const bool is_batch = layout.always.empty() && ((!layout.kept && has_rows(entry.concat_image)) ||
                                                  (has_mask && has_rows(entry.concat_mask)));
  const bool is_each = is_batch || layout.mask_first || layout.levels > 0 ||
                       (layout.noised > 0 && entry.concat_image) ||
                       (layout.kept && has_noise_mask(place));
  Shape shape{is_each ? place.items : 1, layout.channels()};
  const Shape& cells = place.box ? place.box->size : place.grid;
  shape.insert(shape.end(), cells.begin(), cells.end());
  return shape;
}

namespace {

// The mask in whole numbers, then the picture, for each item of the batch.
Tensor mask_first_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                     const LatentFormat& format, const ConcatPlace& place) {
  HostMemory memory(ctx);
  const blocks::GridSize cells{place.grid[0], place.grid[1]};
  Tensor given = given_mask(entry);
  if (!given && place.latent && place.latent.has("noise_mask"))
    given = place.latent.field("noise_mask").as<Tensor>();
  Planes mask = mask_planes(ctx, given, cells, memory);
  for (float& number : mask.values) number = std::nearbyint(number);
  Planes image = grey_planes(layout, cells, memory);
  if (given && entry.has("concat_latent_image")) {
    image = image_planes(ctx, entry, layout, format, cells, memory);
  } else if (given && place.latent && place.latent.has("samples")) {
    image = read_planes(ctx, place.latent.field("samples").as<Tensor>(), memory);
    resize(image, cells, memory);
  }
  const Window window = window_of(place);
  const Shape shape{place.items, layout.channels(), window.height, window.width};
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t item = 0; item < place.items; ++item) {
    to = copy_cells(mask.of(spread_row(item, place.items, mask.rows), 0), cells.width, 1, 0, 0,
                    window, to);
    const std::int64_t shown = spread_row(item, place.items, image.rows);
    for (std::int64_t channel = 0; channel < layout.image; ++channel)
      to = copy_cells(image.of(shown, channel), cells.width, 1, 0, 0, window, to);
  }
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

}  // namespace

Tensor concat_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                 const LatentFormat& format, const ConcatPlace& place) {
  if (layout.video > 0) return video_concat_of(ctx, entry, layout, format, place);
  if (place.grid.size() != 2)
    throw Error(HEDDLE_UNSUPPORTED,
                "the model reads a picture beside the one that it draws, and the latent is a "
                "video's. Give it the latent of a picture.");
  if (layout.levels > 0) return noised_picture_of(ctx, entry, layout, place);
  if (layout.mask_first) return mask_first_of(ctx, entry, layout, format, place);
  HostMemory memory(ctx);
  const blocks::GridSize cells{place.grid[0], place.grid[1]};
  const Planes image = image_planes(ctx, entry, layout, format, cells, memory);
  const Window window = window_of(place);
  const std::int64_t step = layout.downscale;
  std::optional<Planes> mask;
  if (step > 0)
    mask = mask_planes(ctx, given_mask(entry), {cells.height * step, cells.width * step}, memory);
  const bool is_batch = image.rows > 1 || (mask && mask->rows > 1);
  const Shape shape{is_batch ? place.items : 1, layout.channels(), window.height, window.width};
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t item = 0; item < shape[0]; ++item) {
    const std::int64_t shown = spread_row(item, shape[0], image.rows);
    for (std::int64_t channel = 0; channel < layout.image; ++channel)
      to = copy_cells(image.of(shown, channel), cells.width, 1, 0, 0, window, to);
    const std::int64_t masked = mask ? spread_row(item, shape[0], mask->rows) : 0;
    for (std::int64_t row = 0; row < step; ++row)
      for (std::int64_t column = 0; column < step; ++column)
        to = copy_cells(mask->of(masked, 0), mask->size.width, step, row, column, window, to);
  }
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

}  // namespace heddle::samplers
