#include "plugins/vae/vae_nodes.h"

#include <heddle/checked.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>
#include <limits>

namespace heddle::vae {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kColours = 3;
constexpr std::int64_t kUsualDownscale = 8;  // pixels of a side for each latent cell

// What the nodes read of a VAE value.
struct Autoencoder {
  explicit Autoencoder(const Value& vae)
      : scale(vae.get<double>("scale", 1)),
        shift(vae.get<double>("shift", 0)),
        channels(vae.get<std::int64_t>("channels", 0)),
        downscale(vae.get<std::int64_t>("downscale", kUsualDownscale)) {
    if (!(scale != 0))
      throw Error(
          HEDDLE_INVALID_ARGUMENT,
          "vae: its latent scale is 0. Check scaling_factor in the file's metadata or config.");
    if (downscale < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "vae: its downscale is " + std::to_string(downscale) + ", it must be 1 or more");
  }
  double scale, shift;
  std::int64_t channels, downscale;
};

Value model_of(const Value& vae, const char* side) {
  const Value model = vae.field(side);
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("vae: this autoencoder's file has no ") + side +
                                           ". Load a file that has one (VAELoader).");
}

Tensor samples_of(const Value& latent, const Autoencoder& autoencoder) {
  const Tensor samples = latent.get<Tensor>("samples", {});
  if (!samples)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: this latent holds no samples. Link a LATENT.");
  if (samples.rank() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: this autoencoder decodes latents of 4 axes "
                "(batch, channels, height, width), these have " +
                    std::to_string(samples.rank()));
  if (autoencoder.channels != 0 && samples.size(1) != autoencoder.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: they have " + std::to_string(samples.size(1)) +
                                             " channels, the autoencoder takes " +
                                             std::to_string(autoencoder.channels) +
                                             ". Load the autoencoder that belongs to the model.");
  return samples;
}

// The part of a side of `size` pixels that whole latent cells cover, in the middle.
struct Middle {
  std::int64_t begin, end;
};
Middle middle(std::int64_t size, std::int64_t downscale) {
  const std::int64_t rest = size % downscale;
  return {rest / 2, rest / 2 + size - rest};
}

// None where reading the value throws: the run says it, with the node's name.
std::optional<Autoencoder> usable(const Value& vae) {
  try {
    return Autoencoder(vae);
  } catch (const Error&) {
    return {};
  }
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count = checked_product({count, size}, "the picture");
  return count;
}

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
  if (latent.get<bool>("scaled", false))
    z = ops::scale_clamp(ctx, z, {1 / autoencoder.scale, autoencoder.shift, -kInfinity, kInfinity});
  const Value decoded =
      call_model(ctx, model_of(value, "decoder"), Record().set("z", value_of(z)).value());
  ctx[image] = ops::scale_clamp(ctx, decoded.get<Tensor>("image", {}), {0.5, 0.5, 0, 1});
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
  const Tensor whole = ctx[pixels];
  if (whole.rank() != 4 || whole.size(3) < kColours)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "pixels: a picture is (batch, height, width, 3 or more channels)");
  const Middle rows = middle(whole.size(1), autoencoder.downscale);
  const Middle columns = middle(whole.size(2), autoencoder.downscale);
  if (rows.begin == rows.end || columns.begin == columns.end)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "pixels: " + std::to_string(whole.size(2)) + " x " + std::to_string(whole.size(1)) +
                    " are less than one latent cell of " + std::to_string(autoencoder.downscale) +
                    " pixels. Give a larger picture.");
  const Tensor part = whole.slice(1, rows.begin, rows.end)
                          .slice(2, columns.begin, columns.end)
                          .slice(3, 0, kColours);
  const Tensor picture = ops::scale_clamp(ctx, part, {2, -1, -kInfinity, kInfinity});
  const Value encoded =
      call_model(ctx, model_of(value, "encoder"), Record().set("image", value_of(picture)).value());
  const double scale = autoencoder.scale, offset = -autoencoder.shift * autoencoder.scale;
  const Tensor scaled = ops::scale_clamp(ctx, encoded.get<Tensor>("mean", {}),
                                         {scale, offset, -kInfinity, kInfinity});
  ctx[latent] = Record().set("samples", value_of(scaled)).set("scaled", value_of(true)).value();
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
