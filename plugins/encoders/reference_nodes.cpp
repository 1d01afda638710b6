#include "reference_nodes.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "pictures.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/entry_shapes.h"
#include "shown_latents.h"

namespace heddle::encoders {
namespace {

using blocks::EntryShapes;
using blocks::GridSize;
using MultiReference = ReferenceMultiLatent;

constexpr double kMegapixel = 1024.0 * 1024.0;

// None: pictures keep their sizes.
using Megapixels = std::optional<double>;

// As ImageScaleToTotalPixels rounds.
GridSize resized(const GridSize& from, const Megapixels& megapixels) {
  if (!megapixels) return from;
  const double factor =
      std::sqrt(*megapixels * kMegapixel / (double(from.width) * double(from.height)));
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, blocks::rounded(double(length) * factor));
  };
  return {side(from.height), side(from.width)};
}

// Of FLUX.2 and FLUX 3: what is drawn where nothing is shown.
Shape square_latent(const Megapixels& megapixels) {
  constexpr std::int64_t kChannels = 128;
  constexpr double kCell = 16;
  const double side = std::sqrt(megapixels.value_or(1) * kMegapixel);
  const std::int64_t cells = std::max<std::int64_t>(1, std::int64_t(side / kCell));
  return {1, kChannels, cells, cells};
}

// In host memory: what is linked to an input that grows may be on a device.
Tensor on_host(Context& ctx, const Tensor& image) {
  const Tensor made = ctx.make_host(image.shape(), HEDDLE_F32);
  read_to<float>(ctx, image, std::span<float>(made.data<float>(), std::size_t(made.count())));
  return made;
}

// What a workflow gave, or the default; none: it is not known yet.
std::optional<Megapixels> told_megapixels(const Infer& question) {
  const Value key = question.part(MultiReference::resolution, "");
  if (!key.is(HEDDLE_KIND_STR)) return {};
  if (key.text() != "resize") return Megapixels();
  const Value given = question.part(MultiReference::resolution, "megapixels");
  if (given.is(HEDDLE_KIND_FLOAT) || given.is(HEDDLE_KIND_INT) || given.is(HEDDLE_KIND_UINT))
    return Megapixels(given.as<double>());
  return {};
}

void tell_conditioning(Infer& question, const Input<Value>& from, const Output<Value>& to,
                       const std::vector<Shape>& shown) {
  std::vector<EntryShapes> entries = blocks::entry_shapes(question, from);
  for (EntryShapes& entry : entries)
    for (const Shape& shape : shown) entry.references.push_back(tensor_info(HEDDLE_F32, shape));
  blocks::infer_entries(question, to, entries);
}

}  // namespace

void ReferenceMultiLatent::execute(Context& ctx) {
  const blocks::ChosenVariant chosen(ctx, resolution);
  const Megapixels megapixels =
      chosen.key() == "resize" ? Megapixels(chosen.real("megapixels")) : Megapixels();
  std::vector<Value> shown;
  if (ctx.has(vae))
    for (const blocks::GrownInput& given : blocks::grown_inputs(ctx, images.port)) {
      const Tensor image = given.value.as<Tensor>();
      const GridSize size =
          resized(picture_size(image.shape(), "images." + given.name), megapixels);
      shown.push_back(shown_latent(ctx, ctx[vae], scaled_by_area(ctx, on_host(ctx, image), size)));
    }
  const Value with = with_shown(ctx[positive_in], shown);
  ctx[positive] = with;
  ctx[negative] = ctx.has(negative_in) ? with_shown(ctx[negative_in], shown) : with;
  const Shape shape =
      shown.empty() ? square_latent(megapixels) : shown.front().get<Tensor>("samples", {}).shape();
  const Tensor empty = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(empty.data<float>(), empty.count(), 0.0f);
  ctx[empty_latent] = Record().set("samples", value_of(empty)).value();
}

void ReferenceMultiLatent::infer(Infer& question) {
  const std::optional<Megapixels> megapixels = told_megapixels(question);
  if (!megapixels) return;
  const std::optional<Value> autoencoder = question[vae];
  std::vector<Shape> shown;
  std::uint64_t bytes = 0;
  for (const blocks::ToldInput& told : blocks::told_inputs(question, images)) {
    // A VAE that is not known is not one that is not there.
    if (!told.tensor || !autoencoder) return;
    const Shape shape = blocks::shape_of(*told.tensor);
    const GridSize size = resized(picture_size(shape, "images." + told.name), *megapixels);
    const std::int64_t copied = checked_product(
        {shape[0], shape[1], shape[2], shape[3], std::int64_t(sizeof(float))}, "the picture");
    bytes = std::max(bytes, scaling_bytes(shape, size) + std::uint64_t(copied));
    const std::optional<Shape> latent = infer_shown(question, *autoencoder, shape[0], size);
    if (!latent) return;
    shown.push_back(*latent);
  }
  question.host_scratch(bytes);
  question.out(empty_latent, "samples", HEDDLE_F32,
               shown.empty() ? square_latent(*megapixels) : shown.front());
  tell_conditioning(question, positive_in, positive, shown);
  // Nor is a CONDITIONING: of one that is missing nothing is told.
  tell_conditioning(question, negative_in, negative, shown);
}

}  // namespace heddle::encoders
