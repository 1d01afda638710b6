#include "shown_latents.h"

#include <heddle/model.hpp>

#include "plugins/blocks/autoencoder.h"

namespace heddle::encoders {

Value shown_latent(Context& ctx, const Value& vae, const Tensor& pictures) {
  const vae::Autoencoder autoencoder(vae);
  const Tensor uploaded = ctx.upload(pictures.shape(), HEDDLE_F32, pictures.data<float>());
  const Tensor mean = vae::mean_of(ctx, vae::model_of(vae, "encoder"),
                                   vae::covered_by_cells(ctx, uploaded, autoencoder));
  return vae::latent_of(ctx, mean, autoencoder).value();
}

std::optional<Shape> infer_shown(Infer& question, const Value& vae, std::int64_t items,
                                 const blocks::GridSize& size) {
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(vae);
  if (!autoencoder || autoencoder->channels == 0) return {};
  const std::int64_t rows = autoencoder->cells(size.height),
                     columns = autoencoder->cells(size.width), factor = autoencoder->downscale;
  const Value encoder = vae.field("encoder");
  if (encoder.is(HEDDLE_KIND_MODEL))
    question.call(
        encoder,
        {{{{"image", HEDDLE_F32, {items, rows * factor, columns * factor, autoencoder->colours}}},
          {}}});
  return Shape{items, autoencoder->channels, rows, columns};
}

Value with_shown(const Value& list, const std::vector<Value>& shown) {
  if (shown.empty()) return list;
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value before = list.item(i).field("reference_latents");
    std::vector<Value> all;
    for (std::uint32_t k = 0; k < before.count(); ++k) all.push_back(before.item(k));
    all.insert(all.end(), shown.begin(), shown.end());
    entries.push_back(Record(list.item(i)).set("reference_latents", list_of(all)).value());
  }
  return list_of(entries);
}

}  // namespace heddle::encoders
