#include "hunyuan_upscale_node.h"

#include <limits>
#include <optional>
#include <string>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "latent.h"
#include "plugins/blocks/slots.h"
#include "resize_latent.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kHunyuan15Downscale = 16;
constexpr double kUnbound = std::numeric_limits<double>::infinity();

void check_upscaler(const Value& model, const Shape& shape) {
  if (!model.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "model: it holds no model. Link a LatentUpscaleModelLoader.");
  const Value settings = model_settings(model);
  const auto family = settings.get<std::string>("family", "");
  if (family != "hunyuan15_latent_upsampler")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "model: this upscale model (" + family +
                    ") is not one of HunyuanVideo 1.5. Load one that is, or use "
                    "LTXVLatentUpsampler for those of LTX.");
  const auto channels = settings.get<std::int64_t>("latent_channels", 0);
  if (shape.size() == 5 && shape[1] == channels) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "samples: the latent is " + blocks::shape_text(shape) + "; the model takes (batch, " +
                  std::to_string(channels) +
                  ", frames, height, width), a video of HunyuanVideo 1.5.");
}

// By what the latent's numbers are divided to be the autoencoder's, and what is added then.
struct UpscaledUnits {
  double scale = 1, shift = 0;
};
UpscaledUnits upscaled_units(const Value& latent, const Value& settings) {
  if (!latent.get<bool>("scaled", false)) return {};
  return {latent.get<double>("scale", settings.get<double>("latent_scale", 1)),
          latent.get<double>("shift", 0)};
}

Shape sized(Shape shape, std::int64_t width, std::int64_t height) {
  const blocks::GridSize from = grids_of(shape).size;
  return resized_shape(std::move(shape), size_for(from, width, height, kHunyuan15Downscale));
}

}  // namespace

void HunyuanVideo15LatentUpscaleWithModel::execute(Context& ctx) {
  const Value given = ctx[samples], upscaler = ctx[model].field("model");
  const std::int64_t w = ctx[width], h = ctx[height];
  if (w == 0 && h == 0) {
    ctx[latent] = given;
    return;
  }
  const Tensor cells = samples_of(given);
  check_upscaler(upscaler, cells.shape());
  const UpscaledUnits units = upscaled_units(given, model_settings(upscaler));
  const HostFloats values(ctx, cells);
  HostMemory memory(ctx);
  const Shape shape = sized(cells.shape(), w, h);
  const Tensor resized = ctx.make_host(shape, HEDDLE_F32);
  resize_latent(ctx, values.data(), cells.shape(),
                {ctx[upscale_method], grids_of(shape).size, ctx[crop] == "center"},
                resized.data<float>(), memory);
  const double factor = 1 / units.scale;
  const Tensor made = ctx.make(shape, HEDDLE_F32);
  for (std::int64_t item = 0; item < shape[0]; ++item) {
    const Tensor z = ops::scale_clamp(ctx, resized.slice(0, item, item + 1),
                                      {factor, units.shift, -kUnbound, kUnbound});
    const Tensor larger =
        call_model(ctx, upscaler, Record().set("z", value_of(z)).value()).get<Tensor>("larger", {});
    ops::copy_into(ctx, larger, made.slice(0, item, item + 1));
  }
  ctx[latent] = Record().set("samples", value_of(made)).value();
}

void HunyuanVideo15LatentUpscaleWithModel::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto w = question[width], h = question[height];
  const std::optional<Value> value = question[model];
  if (!shape || !w || !h || !value) return;
  if (*w == 0 && *h == 0) {
    question.out(latent, "samples", HEDDLE_F32, *shape);
    question.shares(latent);
    return;
  }
  const Value upscaler = value->field("model");
  check_upscaler(upscaler, *shape);
  const Shape to = sized(*shape, *w, *h);
  Shape one = to;
  one[0] = 1;
  for (std::int64_t item = 0; item < to[0]; ++item)
    question.call(upscaler, {{.constants = {{"z", HEDDLE_F32, one}}, .steps = {}}});
  question.out(latent, "samples", HEDDLE_F32, to);
  question.cost(0, 0, blocks::resampling_bytes(grids_of(*shape), grids_of(to).size));
}

}  // namespace heddle::samplers
