#include "qwen21_nodes.h"

#include <algorithm>
#include <cmath>

#include <heddle/model.hpp>

#include "encode.h"
#include "lanczos_picture.h"
#include "pictures.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/resample.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

constexpr std::int64_t kTokenSide = 32;  // a token of the vision tower, and 2 x 2 cells of a latent
constexpr std::int64_t kLatentCell = 16, kLatentChannels = 64, kUsualSide = 1024, kRedGreenBlue = 3;

// ComfyUI rounds as Python does, half to even.
std::int64_t whole_tokens(double pixels) {
  return std::max(blocks::rounded(pixels / double(kTokenSide)) * kTokenSide, kTokenSide);
}

// The size in which both the encoder and the diffusion model are shown a picture.
GridSize shown_size(const GridSize& from, std::int64_t resolution) {
  if (resolution == 0) return {whole_tokens(double(from.height)), whole_tokens(double(from.width))};
  const double ratio = double(from.width) / double(from.height),
               area = double(resolution) * double(resolution);
  return {whole_tokens(std::sqrt(area / ratio)), whole_tokens(std::sqrt(area * ratio))};
}

// Of the first picture, or of a square.
Shape latent_shape(const std::vector<GridSize>& sizes, std::int64_t resolution) {
  const std::int64_t side = resolution == 0 ? kUsualSide : resolution;
  const GridSize size = sizes.empty() ? GridSize{side, side} : sizes.front();
  return {1, kLatentChannels, size.height / kLatentCell, size.width / kLatentCell};
}

Prompt prompt_of(const std::string& text, const std::vector<GridSize>& sizes, bool is_shown) {
  constexpr const char* kTurn = "<|im_start|>";  // whoever writes the turns places the pictures
  Prompt prompt{.text = text.empty() ? " " : text, .by_encoder = {}};
  prompt.drops_pictures = is_shown;
  std::string marks;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    prompt.pictures.push_back({sizes[i]});
    marks += (i > 0 ? " <image" : "<image") + std::to_string(i + 1) +
             "><|vision_start|><|image_pad|><|vision_end|>";
  }
  if (!text.starts_with(kTurn)) prompt.text = marks + prompt.text;
  return prompt;
}

// What the encoder sees of it: colours over white, where it is not opaque.
Tensor over_white(Context& ctx, const Tensor& picture) {
  const std::int64_t channels = picture.size(3), pixels = picture.size(1) * picture.size(2);
  if (channels == kRedGreenBlue) return picture;
  const Tensor out =
      ctx.make_host({1, picture.size(1), picture.size(2), kRedGreenBlue}, HEDDLE_F32);
  const float* from = picture.data<float>();
  float* to = out.data<float>();
  for (std::int64_t i = 0; i < pixels; ++i, from += channels)
    for (std::int64_t c = 0; c < kRedGreenBlue; ++c)
      *to++ = from[c] * from[kRedGreenBlue] + (1.0f - from[kRedGreenBlue]);
  return out;
}

Value encoded_picture(Context& ctx, const Value& vae, const Tensor& picture) {
  const vae::Autoencoder autoencoder(vae);
  const Tensor uploaded = ctx.upload(picture.shape(), HEDDLE_F32, picture.data<float>());
  const Tensor mean = vae::mean_of(ctx, vae::model_of(vae, "encoder"),
                                   vae::covered_by_cells(ctx, uploaded, autoencoder));
  return vae::latent_of(ctx, mean, autoencoder).value();
}

Value with_references(const Value& list, const std::vector<Value>& shown) {
  if (shown.empty()) return list;
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(Record(list.item(i)).set("reference_latents", list_of(shown)).value());
  return list_of(entries);
}

// The latents of shown pictures, and the calls that make them.
std::vector<Shape> infer_references(Infer& question, const Value& vae,
                                    const std::vector<GridSize>& sizes) {
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(vae);
  std::vector<Shape> shown;
  if (!autoencoder || autoencoder->channels == 0) return shown;
  const Value encoder = vae.field("encoder");
  for (const GridSize& size : sizes) {
    const std::int64_t rows = autoencoder->cells(size.height),
                       columns = autoencoder->cells(size.width), factor = autoencoder->downscale;
    if (encoder.is(HEDDLE_KIND_MODEL))
      question.call(
          encoder,
          {{{{"image", HEDDLE_F32, {1, rows * factor, columns * factor, autoencoder->colours}}},
            {}}});
    shown.push_back({1, autoencoder->channels, rows, columns});
  }
  return shown;
}

}  // namespace

void TextEncodeQwenImage21::execute(Context& ctx) {
  const Value encoders = ctx[clip], autoencoder = ctx.has(vae) ? ctx[vae] : Value();
  const std::int64_t pixels = ctx[resolution];
  std::vector<GridSize> sizes;
  std::vector<Tensor> read;
  std::vector<Value> shown;
  for (const blocks::GrownInput& given : blocks::grown_inputs(ctx, images.port)) {
    const Tensor image = given.value.as<Tensor>();
    sizes.push_back(shown_size(picture_size(image.shape(), "images." + given.name), pixels));
    const Tensor picture = lanczos_picture(ctx, image, sizes.back());
    read.push_back(over_white(ctx, picture));
    if (autoencoder) shown.push_back(encoded_picture(ctx, autoencoder, picture));
  }
  const auto encode = [&](const std::string& text) {
    Prompt given = prompt_of(text, sizes, !shown.empty());
    for (std::size_t i = 0; i < read.size(); ++i) given.pictures[i].pixels = read[i];
    return with_references(encode_prompt(ctx, encoders, given), shown);
  };
  ctx[positive] = encode(ctx[prompt]);
  ctx[negative] = encode(ctx[negative_prompt]);
  const Tensor samples = ctx.make_host(latent_shape(sizes, pixels), HEDDLE_F32);
  std::fill_n(samples.data<float>(), samples.count(), 0.0f);
  ctx[latent] = Record().set("samples", value_of(samples)).value();
}

void TextEncodeQwenImage21::infer(Infer& question) {
  const std::optional<std::int64_t> pixels = question[resolution];
  if (!pixels) return;
  std::vector<GridSize> sizes;
  std::uint64_t bytes = 0;
  for (const blocks::ToldInput& told : blocks::told_inputs(question, images)) {
    if (!told.tensor) return;
    const Shape shape(told.tensor->shape, told.tensor->shape + told.tensor->rank);
    sizes.push_back(shown_size(picture_size(shape, "images." + told.name), *pixels));
    bytes = std::max(bytes, 2 * scaling_bytes({1, shape[1], shape[2], shape[3]}, sizes.back()));
  }
  question.host_scratch(bytes);
  question.out(latent, "samples", HEDDLE_F32, latent_shape(sizes, *pixels));
  const auto encoders = question[clip];
  const auto wanted = question[prompt], unwanted = question[negative_prompt];
  if (!encoders || !wanted || !unwanted) return;
  const std::optional<Value> autoencoder = question[vae];
  const std::vector<Shape> shown =
      autoencoder ? infer_references(question, *autoencoder, sizes) : std::vector<Shape>();
  const auto tell = [&](const std::string& text, const Output<Value>& output) {
    const std::size_t entries = infer_prompt(
        question, *encoders, prompt_of(text, sizes, autoencoder && !sizes.empty()), output);
    for (std::size_t i = 0; i < entries; ++i)
      for (std::size_t k = 0; k < shown.size(); ++k)
        question.out(output,
                     std::to_string(i) + ".reference_latents." + std::to_string(k) + ".samples",
                     HEDDLE_F32, shown[k]);
  };
  tell(*wanted, positive);
  tell(*unwanted, negative);
}

}  // namespace heddle::encoders
