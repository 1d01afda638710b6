#include "plugins/vae/latent_upsampler_nodes.h"

#include <optional>
#include <string>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::vae {
namespace {

// The units of an autoencoder, as numbers for each channel of (B, C, F, h, w). Throws where its
// decoder does not tell them.
struct LatentUnits {
  LatentUnits(const Value& vae, std::int64_t channels) {
    const Value decoder = vae.field("decoder");
    const Value settings = decoder.is(HEDDLE_KIND_MODEL) ? model_settings(decoder) : Value();
    const Value told_means = settings.field("statistics_means"),
                told_deviations = settings.field("statistics_deviations");
    for (std::uint32_t i = 0; i < told_means.count() && i < told_deviations.count(); ++i) {
      means.push_back(float(told_means.item(i).as<double>()));
      deviations.push_back(float(told_deviations.item(i).as<double>()));
    }
    if (std::int64_t(means.size()) == channels) return;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: it tells the units of " + std::to_string(means.size()) +
                    " channels, the latent has " + std::to_string(channels) +
                    ". Link the autoencoder of LTX-Video that belongs to the model.");
  }
  std::vector<float> means, deviations;
};

// x * factors + offsets, for each channel.
Tensor in_units(Context& ctx, const Tensor& x, const std::vector<float>& factors,
                const std::vector<float>& offsets) {
  const Shape shape{1, std::int64_t(factors.size()), 1, 1, 1};
  return ops::add(ctx, ops::mul(ctx, x, ctx.upload(shape, HEDDLE_F32, factors.data())),
                  ctx.upload(shape, HEDDLE_F32, offsets.data()));
}

Shape upsampled(const Shape& latent, const Value& model) {
  const Value settings = model_settings(model);
  const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 1); };
  const auto side = [&](std::int64_t cells) {
    return (checked_product({cells, number("times")}, "a side") - 1) / number("step") + 1;
  };
  return {latent[0], latent[1],
          checked_product({latent[2] - 1, number("frame_times")}, "the frames") + 1,
          side(latent[3]), side(latent[4])};
}

Value upscaler_of(const Value& value) {
  const Value model = value.field("model");
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "upscale_model: it holds no model. Link a LatentUpscaleModelLoader.");
}

}  // namespace

void LTXVLatentUpsampler::execute(Context& ctx) {
  const Value given = ctx[samples], model = upscaler_of(ctx[upscale_model]);
  const Value field = given.field("samples");
  if (!field.is(HEDDLE_KIND_TENSOR) || field.as<Tensor>().rank() != 5 ||
      field.as<Tensor>().count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: these are not (batch, channels, frames, height, width). Link a latent of "
                "a video; of one of pictures and sound the pictures' (LTXVSeparateAVLatent).");
  const Tensor x = field.as<Tensor>();
  const LatentUnits units(ctx[vae], x.size(1));
  const Tensor raw = in_units(ctx, x, units.deviations, units.means);
  const Tensor larger =
      call_model(ctx, model, Record().set("z", value_of(raw)).value()).get<Tensor>("larger", {});
  std::vector<float> factors, offsets;
  for (std::size_t i = 0; i < units.means.size(); ++i) {
    factors.push_back(1 / units.deviations[i]);
    offsets.push_back(-units.means[i] / units.deviations[i]);
  }
  Record made;
  for (std::uint32_t i = 0; i < given.count(); ++i)
    if (given.key(i) != "noise_mask") made.set(given.key(i), given.item(i));
  made.set("samples", value_of(in_units(ctx, larger, factors, offsets)));
  ctx[latent] = made.value();
}

void LTXVLatentUpsampler::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const std::optional<Value> value = question[upscale_model];
  if (!shape || shape->size() != 5 || !value) return;
  const Value model = value->field("model");
  if (!model.is(HEDDLE_KIND_MODEL)) return;
  question.call(model, {{.constants = {{"z", HEDDLE_F32, *shape}}, .steps = {}}});
  question.out(latent, "samples", HEDDLE_F32, upsampled(*shape, model));
}

}  // namespace heddle::vae
