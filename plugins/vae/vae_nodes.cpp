#include "plugins/vae/vae_nodes.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/vae/autoencoder.h"

namespace heddle::vae {
namespace {

// One call of a side of the autoencoder, with one pass over what goes in and one over what comes
// out; both are held while the model runs.
void infer_call(Infer& question, const Value& model, const Infer::Named& input,
                const Shape& result) {
  if (!model.is(HEDDLE_KIND_MODEL)) return;
  question.call(model, {{.constants = {input}, .steps = {}}});
  const std::int64_t elements =
      checked_sum({count_of(input.shape), count_of(result)}, "the pictures");
  const double bytes = double(sizeof(float)) * double(elements);
  question.cost(2 * double(elements), 2 * bytes, checked_cast<std::uint64_t>(bytes, "bytes"));
}

}  // namespace

void VaeDecode::execute(Context& ctx) {
  const Value value = ctx[vae], latent = ctx[samples];
  const Autoencoder autoencoder(value);
  Tensor z = samples_of(latent, autoencoder);
  if (latent.get<bool>("scaled", false)) z = raw_of(ctx, z, latent, autoencoder);
  ctx[image] = ops::scale_clamp(ctx, decoded(ctx, model_of(value, "decoder"), z), {0.5, 0.5, 0, 1});
}

void VaeDecode::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const std::optional<Value> value = question[vae];
  if (!shape || shape->size() != 4 || !value) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder) return;
  const std::int64_t factor = autoencoder->downscale;
  const Shape picture{(*shape)[0], checked_product({(*shape)[2], factor}, "the height"),
                      checked_product({(*shape)[3], factor}, "the width"), kColours};
  question.out(image, "", HEDDLE_F32, picture);
  infer_call(question, value->field("decoder"), {"z", HEDDLE_F32, *shape}, picture);
}

void VaeEncode::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor picture = covered_by_cells(ctx[pixels], autoencoder);
  const Tensor mean = mean_of(ctx, model_of(value, "encoder"), picture);
  ctx[latent] = latent_of(ctx, mean, autoencoder).value();
}

void VaeEncode::infer(Infer& question) {
  const auto shape = question.shape(pixels);
  const std::optional<Value> value = question[vae];
  if (!shape || shape->size() != 4 || !value) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder || autoencoder->channels == 0) return;
  const std::int64_t factor = autoencoder->downscale;
  const std::int64_t rows = (*shape)[1] / factor, columns = (*shape)[2] / factor;
  if (rows == 0 || columns == 0) return;
  const Shape samples{(*shape)[0], autoencoder->channels, rows, columns};
  question.out(latent, "samples", HEDDLE_F32, samples);
  const Shape picture{(*shape)[0], rows * factor, columns * factor, kColours};
  infer_call(question, value->field("encoder"), {"image", HEDDLE_F32, picture}, samples);
}

}  // namespace heddle::vae
