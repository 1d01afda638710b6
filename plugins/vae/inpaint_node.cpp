#include "plugins/vae/inpaint_node.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>
#include <memory>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {
namespace {

// The mask of the part of a picture that is encoded: `items` planes.
struct CutMask {
  std::int64_t items = 0;
  blocks::GridSize size;
  std::pmr::vector<float> numbers;

  std::int64_t plane() const { return size.height * size.width; }
};

// The size of a MASK, of which the batch may be missing.
struct MaskShape {
  std::int64_t items = 0;
  blocks::GridSize size;
};
std::optional<MaskShape> mask_shape(const Shape& shape) {
  if (shape.size() < 2) return {};
  const blocks::GridSize size{shape[shape.size() - 2], shape.back()};
  if (size.height < 1 || size.width < 1) return {};
  const std::int64_t items = count_of(shape) / (size.height * size.width);
  return items < 1 ? std::nullopt : std::optional(MaskShape{items, size});
}

CutMask cut_mask(Context& ctx, const Tensor& mask, const blocks::GridSize& picture,
                 const CoveredPart& part, std::pmr::memory_resource& memory) {
  const std::optional<MaskShape> given = mask_shape(mask.shape());
  if (!given)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "mask: a MASK is (batch, height, width) with at least one pixel, this has " +
                    std::to_string(mask.rank()) + " axes and " + std::to_string(mask.count()) +
                    " numbers. Link a MASK.");
  const HostFloats floats(ctx, mask);
  std::pmr::vector<float> resized(&memory);
  const float* planes = floats.data();
  if (given->size != picture) {
    resized.resize(
        std::size_t(checked_product({given->items, picture.height, picture.width}, "the mask")));
    blocks::resample(blocks::Source::of(planes, {given->items, given->size, 1}), picture,
                     blocks::Resampling::bilinear, resized.data(), memory);
    planes = resized.data();
  }
  CutMask result{
      given->items, {part.rows.size(), part.columns.size()}, std::pmr::vector<float>(&memory)};
  result.numbers.reserve(std::size_t(result.items * result.plane()));
  for (std::int64_t i = 0; i < result.items; ++i)
    for (std::int64_t y = part.rows.begin; y < part.rows.end; ++y) {
      const float* row = planes + (i * picture.height + y) * picture.width;
      for (std::int64_t x = part.columns.begin; x < part.columns.end; ++x)
        result.numbers.push_back(row[x]);
    }
  return result;
}

// To whole numbers, 0 or 1 for what a MASK should hold; half to even, as torch.round.
void round_to_whole(CutMask& mask) {
  for (float& number : mask.numbers) number = std::nearbyint(number);
}

// (items, 1, height, width), in host memory.
Tensor tensor_of(Context& ctx, const CutMask& mask) {
  const Tensor tensor =
      ctx.make_host({mask.items, 1, mask.size.height, mask.size.width}, HEDDLE_F32);
  std::copy(mask.numbers.begin(), mask.numbers.end(), tensor.data<float>());
  return tensor;
}

// The sum of `count` numbers from i - before on, at every place i of a line: what lies outside is
// 0.
void window_sums(const float* from, float* to, std::int64_t length, std::int64_t step,
                 std::int64_t before, std::int64_t count) {
  double sum = 0;  // of whole numbers: exact
  for (std::int64_t i = 0; i < std::min(count - before - 1, length); ++i) sum += from[i * step];
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t last = i - before + count - 1, gone = i - before - 1;
    if (last >= 0 && last < length) sum += from[last * step];
    if (gone >= 0) sum -= from[gone * step];
    to[i * step] = float(sum);
  }
}

// 1 where a square of by x by around it holds a 1; for even sides it reaches one further up and
// left.
void grow(CutMask& mask, std::int64_t by, std::pmr::memory_resource& memory) {
  if (by == 0) return;
  const std::int64_t before = by / 2;  // (by - 1) / 2, rounded up
  std::pmr::vector<float> rows(std::size_t(mask.plane()), &memory);
  for (std::int64_t i = 0; i < mask.items; ++i) {
    float* const plane = mask.numbers.data() + i * mask.plane();
    const std::int64_t width = mask.size.width;
    for (std::int64_t y = 0; y < mask.size.height; ++y)
      window_sums(plane + y * width, rows.data() + y * width, width, 1, before, by);
    for (std::int64_t x = 0; x < width; ++x)
      window_sums(rows.data() + x, plane + x, mask.size.height, width, before, by);
    for (std::int64_t j = 0; j < mask.plane(); ++j) plane[j] = std::clamp(plane[j], 0.0f, 1.0f);
  }
}

// The pictures as they are, on the device of the call, with as many `colours`: alpha 1 where they
// have none.
Tensor uploaded(Context& ctx, const Tensor& pictures, const CoveredPart& part,
                std::int64_t colours) {
  const Shape whole = pictures.shape();
  const HostFloats floats(ctx, pictures);
  const std::int64_t given = std::min(whole[3], colours);
  const Tensor result =
      ctx.make_host({whole[0], part.rows.size(), part.columns.size(), colours}, HEDDLE_F32);
  float* to = result.data<float>();
  for (std::int64_t i = 0; i < whole[0]; ++i)
    for (std::int64_t y = part.rows.begin; y < part.rows.end; ++y)
      for (std::int64_t x = part.columns.begin; x < part.columns.end; ++x)
        to = std::fill_n(
            std::copy_n(floats.data() + ((i * whole[1] + y) * whole[2] + x) * whole[3], given, to),
            colours - given, 1.0f);
  return ctx.upload(result.shape(), HEDDLE_F32, result.data<float>());
}

// The pictures, grey where the mask is 1, on the device of the call.
Tensor blanked(Context& ctx, const Tensor& pictures, const CoveredPart& part, const CutMask& mask,
               std::int64_t colours) {
  const Shape whole = pictures.shape();
  if (mask.items != 1 && mask.items != whole[0])
    throw Error(HEDDLE_INVALID_ARGUMENT, "mask: there are " + std::to_string(mask.items) +
                                             " masks for " + std::to_string(whole[0]) +
                                             " pictures. Give one mask, or one for each.");
  const HostFloats floats(ctx, pictures);
  const std::int64_t given = std::min(whole[3], colours);
  const Tensor result =
      ctx.make_host({whole[0], part.rows.size(), part.columns.size(), colours}, HEDDLE_F32);
  float* to = result.data<float>();
  for (std::int64_t i = 0; i < whole[0]; ++i) {
    const float* selected = mask.numbers.data() + (mask.items == 1 ? 0 : i) * mask.plane();
    for (std::int64_t y = part.rows.begin; y < part.rows.end; ++y)
      for (std::int64_t x = part.columns.begin; x < part.columns.end; ++x, ++selected) {
        const float* from = floats.data() + ((i * whole[1] + y) * whole[2] + x) * whole[3];
        for (std::int64_t c = 0; c < kColours; ++c)
          *to++ = (from[c] - 0.5f) * (1.0f - *selected) + 0.5f;
        to = std::fill_n(std::copy_n(from + kColours, given - kColours, to), colours - given, 1.0f);
      }
  }
  return ctx.upload(result.shape(), HEDDLE_F32, result.data<float>());
}

// What the encoder makes of pictures, in its own units.
Tensor encoded(Context& ctx, const Value& encoder, const Tensor& pictures) {
  const Tensor mean = mean_of(ctx, encoder, pictures);
  return mean.dtype() == HEDDLE_F32 ? mean : ops::cast(ctx, mean, HEDDLE_F32);
}

Value each_with(const Value& list, const std::vector<std::pair<const char*, Value>>& fields) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    for (const auto& [name, value] : fields) entry.set(name, value);
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

// What is known of pictures that are encoded before they are.
struct EncodedShapes {
  Shape picture, samples;  // of the part that whole cells cover
  Value encoder;
};
template <class Pixels, class Vae>
std::optional<EncodedShapes> encoded_shapes(const Infer& question, const Pixels& pixels,
                                            const Vae& vae) {
  const auto shape = question.shape(pixels);
  const std::optional<Value> value = question[vae];
  if (!shape || shape->size() != 4 || !value) return {};
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder || autoencoder->channels == 0) return {};
  const std::int64_t rows = autoencoder->cells((*shape)[1]);
  const std::int64_t columns = autoencoder->cells((*shape)[2]);
  if (rows == 0 || columns == 0) return {};
  const std::int64_t factor = autoencoder->downscale;
  return EncodedShapes{{(*shape)[0], rows * factor, columns * factor, autoencoder->colours},
                       {(*shape)[0], autoencoder->channels, rows, columns},
                       value->field("encoder")};
}

void infer_encoding(Infer& question, const EncodedShapes& encoded, std::int64_t times) {
  if (encoded.encoder.is(HEDDLE_KIND_MODEL))
    for (std::int64_t i = 0; i < times; ++i)
      question.call(encoded.encoder,
                    {{.constants = {{"image", HEDDLE_F32, encoded.picture}}, .steps = {}}});
  const std::int64_t numbers =
      checked_sum({count_of(encoded.picture), count_of(encoded.samples)}, "the pictures");
  const auto bytes = checked_cast<std::uint64_t>(double(sizeof(float)) * double(numbers), "bytes");
  question.cost(8 * double(times * numbers), 4 * double(times) * double(bytes), bytes);
}

// Of the pictures, and of some masks of their size before they are cut.
std::uint64_t mask_bytes(const Shape& pixels, const Shape& picture, std::int64_t items) {
  const std::int64_t masks = checked_product({items, pixels[1], pixels[2]}, "the mask");
  return checked_cast<std::uint64_t>(
      double(sizeof(float)) * (double(count_of(picture)) + 3 * double(masks)), "bytes");
}

// Entries that also have a picture, and perhaps a mask of its size.
template <class In, class Out>
void infer_with_picture(Infer& question, const In& in, const Out& out, const EncodedShapes& encoded,
                        const std::optional<Shape>& mask) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
  for (blocks::EntryShapes& entry : entries) {
    entry.concat_image = tensor_info(HEDDLE_F32, encoded.samples);
    if (mask) entry.concat_mask = tensor_info(HEDDLE_F32, *mask);
  }
  blocks::infer_entries(question, out, entries);
}

}  // namespace

void VaeEncodeForInpaint::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor pictures = ctx[pixels];
  const CoveredPart part = covered_part(pictures.shape(), autoencoder);
  HostMemory memory(ctx);
  CutMask selected = cut_mask(ctx, ctx[mask], {pictures.size(1), pictures.size(2)}, part, memory);
  round_to_whole(selected);
  const Tensor rest = blanked(ctx, pictures, part, selected, autoencoder.colours);
  const Tensor mean = mean_of(ctx, model_of(value, "encoder"), rest);
  grow(selected, ctx[grow_mask_by], memory);
  ctx[latent] = latent_of(ctx, mean, autoencoder)
                    .set("noise_mask", value_of(tensor_of(ctx, selected)))
                    .value();
}

void VaeEncodeForInpaint::infer(Infer& question) {
  const auto drawn = question.shape(mask);
  const std::optional<EncodedShapes> encoded = encoded_shapes(question, pixels, vae);
  const std::optional<MaskShape> given = drawn ? mask_shape(*drawn) : std::nullopt;
  if (!encoded || !given) return;
  const Shape& picture = encoded->picture;
  question.out(latent, "samples", HEDDLE_F32, encoded->samples);
  question.out(latent, "noise_mask", HEDDLE_F32, {given->items, 1, picture[1], picture[2]});
  infer_encoding(question, *encoded, 1);
  question.host_scratch(mask_bytes(*question.shape(pixels), picture, given->items));
}

void InpaintModelConditioning::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor pictures = ctx[pixels];
  const CoveredPart part = covered_part(pictures.shape(), autoencoder);
  HostMemory memory(ctx);
  CutMask selected = cut_mask(ctx, ctx[mask], {pictures.size(1), pictures.size(2)}, part, memory);
  const Value drawn = value_of(tensor_of(ctx, selected));
  round_to_whole(selected);
  const Value encoder = model_of(value, "encoder");
  const Value kept =
      value_of(encoded(ctx, encoder, blanked(ctx, pictures, part, selected, autoencoder.colours)));
  const std::vector<std::pair<const char*, Value>> fields{{"concat_latent_image", kept},
                                                          {"concat_mask", drawn}};
  ctx[positive_out] = each_with(ctx[positive], fields);
  ctx[negative_out] = each_with(ctx[negative], fields);
  Record whole = latent_of(
      ctx, mean_of(ctx, encoder, uploaded(ctx, pictures, part, autoencoder.colours)), autoencoder);
  if (ctx[noise_mask]) whole.set("noise_mask", drawn);
  ctx[latent] = whole.value();
}

void InpaintModelConditioning::infer(Infer& question) {
  const auto drawn = question.shape(mask);
  const std::optional<EncodedShapes> encoded = encoded_shapes(question, pixels, vae);
  const std::optional<MaskShape> given = drawn ? mask_shape(*drawn) : std::nullopt;
  if (!encoded || !given) return;
  const Shape planes{given->items, 1, encoded->picture[1], encoded->picture[2]};
  infer_with_picture(question, positive, positive_out, *encoded, planes);
  infer_with_picture(question, negative, negative_out, *encoded, planes);
  question.out(latent, "samples", HEDDLE_F32, encoded->samples);
  if (question[noise_mask].value_or(true)) question.out(latent, "noise_mask", HEDDLE_F32, planes);
  infer_encoding(question, *encoded, 2);
  question.host_scratch(mask_bytes(*question.shape(pixels), encoded->picture, given->items));
}

void InstructPixToPixConditioning::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor pictures = ctx[pixels];
  const CoveredPart part = covered_part(pictures.shape(), autoencoder);
  const Value shown = value_of(
      encoded(ctx, model_of(value, "encoder"), uploaded(ctx, pictures, part, autoencoder.colours)));
  ctx[positive_out] = each_with(ctx[positive], {{"concat_latent_image", shown}});
  ctx[negative_out] = each_with(ctx[negative], {{"concat_latent_image", shown}});
  const Shape shape = shown.as<Tensor>().shape();
  const std::vector<float> zeros(std::size_t(count_of(shape)), 0.0f);
  ctx[latent] =
      Record().set("samples", value_of(ctx.upload(shape, HEDDLE_F32, zeros.data()))).value();
}

void InstructPixToPixConditioning::infer(Infer& question) {
  const std::optional<EncodedShapes> encoded = encoded_shapes(question, pixels, vae);
  if (!encoded) return;
  infer_with_picture(question, positive, positive_out, *encoded, {});
  infer_with_picture(question, negative, negative_out, *encoded, {});
  question.out(latent, "samples", HEDDLE_F32, encoded->samples);
  infer_encoding(question, *encoded, 1);
  question.host_scratch(mask_bytes(*question.shape(pixels), encoded->picture, 0));
}

}  // namespace heddle::vae
