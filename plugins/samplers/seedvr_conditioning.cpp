#include "seedvr_conditioning.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/session.hpp>

#include "latent.h"

namespace heddle::samplers {
namespace {

// The setting of models that bring their texts: how many tokens the two have.
Value file_texts(const Value& settings) { return settings.field("file_texts"); }

// (B, C, F, h, w): with the mask behind the latent's channels.
Shape shown_shape(const Shape& latent) {
  Shape shape = with_frames(latent, true);
  shape[1] = checked_sum({shape[1], std::int64_t{1}}, "channels");
  return shape;
}

// The latent in the model's units, and ones, which say that all of it is given.
Tensor shown_latent(Context& ctx, const Value& record, const LatentFormat& format) {
  HostMemory memory(ctx);
  const Latent latent = read_latent(ctx, record, format, memory);
  const Shape shape = shown_shape(latent.shape);
  if (shape.size() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae_conditioning has " + std::to_string(latent.shape.size()) +
                    " axes; a video's latent is (batch, channels, frames, height, width). Encode "
                    "pictures with SeedVR2's autoencoder.");
  const Tensor shown = ctx.make_host(shape, HEDDLE_F32);
  float* to = shown.data<float>();
  const std::int64_t cells = shape[2] * shape[3] * shape[4];
  for (std::int64_t item = 0; item < shape[0]; ++item) {
    to = std::copy_n(latent.values.data() + item * (shape[1] - 1) * cells, (shape[1] - 1) * cells,
                     to);
    to = std::fill_n(to, cells, 1.0f);
  }
  return shown;
}

Value told_of(const Tensor& text, const Tensor& shown) {
  return list_of({Record()
                      .set("cross_attn", value_of(text))
                      .set("concat_latent_image", value_of(shown))
                      .value()});
}

}  // namespace

void SeedVR2Conditioning::execute(Context& ctx) {
  const Value drawn = ctx[model], settings = model_settings(drawn);
  if (!file_texts(settings))
    throw Error(HEDDLE_INVALID_ARGUMENT, "model is of the family '" + model_family(drawn) +
                                             "', which brings no texts. Link SeedVR2's, by "
                                             "UNETLoader.");
  const Tensor shown = shown_latent(ctx, ctx[vae_conditioning], latent_format(settings));
  const Value texts_model = rebuilt_model(ctx, drawn, settings.field("texts_model"));
  // The texts depend on nothing; the graph asks for a point all the same.
  const std::vector<Value> nothing{Record().value()};
  Session session(ctx, texts_model, nothing, Value(), 1);
  const Value texts =
      session
          .step(0,
                {Record()
                     .set("x", value_of(ctx.make(
                                   {1, settings.get<std::int64_t>("latent_channels", 1), 1, 1, 1},
                                   HEDDLE_F32)))
                     .value()})
          .front();
  ctx[positive] = told_of(texts.field("positive").as<Tensor>(), shown);
  ctx[negative] = told_of(texts.field("negative").as<Tensor>(), shown);
}

void SeedVR2Conditioning::infer(Infer& question) {
  const auto drawn = question[model];
  const auto latent = question.shape(vae_conditioning, "samples");
  if (!drawn || !drawn->is(HEDDLE_KIND_MODEL) || !latent) return;
  const Value settings = model_settings(*drawn), tokens = file_texts(settings);
  const Shape shown = shown_shape(*latent);
  if (tokens.count() != 2 || shown.size() != 5 ||
      (*latent)[1] != settings.get<std::int64_t>("latent_channels", 0))
    return;
  const auto tell = [&](const Output<Value>& output, std::uint32_t text) {
    question.out(
        output, "0.cross_attn", HEDDLE_F32,
        {1, tokens.item(text).as<std::int64_t>(), settings.get<std::int64_t>("context_width", 0)});
    question.out(output, "0.concat_latent_image", HEDDLE_F32, shown);
  };
  tell(positive, 0);
  tell(negative, 1);
}

}  // namespace heddle::samplers
