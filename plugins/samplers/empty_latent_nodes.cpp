#include "empty_latent_nodes.h"

#include <algorithm>

#include "latent.h"

namespace heddle::samplers {
namespace {

// What a cell of a latent stands for.
struct LatentScale {
  std::int64_t channels;
  std::int64_t side = 1;    // pixels
  std::int64_t frames = 0;  // of a step behind the first frame; 0: no axis of time
  bool tells = true;        // the latent says what a cell stands for
};

Shape scaled_shape(const LatentScale& scale, std::int64_t batch, std::int64_t width,
                   std::int64_t height, std::int64_t length) {
  Shape shape{batch, scale.channels};
  if (scale.frames > 0) shape.push_back((length - 1) / scale.frames + 1);
  shape.push_back(height / scale.side);
  shape.push_back(width / scale.side);
  return shape;
}

Value zero_latent(Context& ctx, const LatentScale& scale, const Shape& shape) {
  const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(samples.data<float>(), samples.count(), 0.0f);
  Record record;
  record.set("samples", value_of(samples));
  if (scale.tells) record.set(kDownscaleKey, value_of(scale.side));
  return record.value();
}

template <class Node>
void make_still(Context& ctx, const LatentScale& scale) {
  ctx[Node::out] = zero_latent(
      ctx, scale,
      scaled_shape(scale, ctx[Node::batch_size], ctx[Node::width], ctx[Node::height], 1));
}
template <class Node>
void infer_still(Infer& question, const LatentScale& scale) {
  const auto w = question[Node::width], h = question[Node::height], b = question[Node::batch_size];
  if (w && h && b)
    question.out(Node::out, "samples", HEDDLE_F32, scaled_shape(scale, *b, *w, *h, 1));
  question.known(Node::out, kDownscaleKey, value_of(scale.side));
}
template <class Node>
void make_moving(Context& ctx, const LatentScale& scale) {
  ctx[Node::out] = zero_latent(ctx, scale,
                               scaled_shape(scale, ctx[Node::batch_size], ctx[Node::width],
                                            ctx[Node::height], ctx[Node::length]));
}
template <class Node>
void infer_moving(Infer& question, const LatentScale& scale) {
  const auto w = question[Node::width], h = question[Node::height], b = question[Node::batch_size],
             n = question[Node::length];
  if (w && h && b && n)
    question.out(Node::out, "samples", HEDDLE_F32, scaled_shape(scale, *b, *w, *h, *n));
  if (scale.tells) question.known(Node::out, kDownscaleKey, value_of(scale.side));
}

constexpr LatentScale kFlux2{128, 16}, kHunyuanVideo{16, 8, 4}, kCausal{16, 8, 4, false},
    kHunyuanVideo15{32, 16, 4}, kHunyuanImage{64, 32}, kLtxv{128, 32, 8}, kMochi{12, 8, 6},
    kCosmos{16, 8, 8}, kRadiance{3}, kQwenLayers{16, 8, 1};

}  // namespace

void EmptyFlux2LatentImage::execute(Context& ctx) {
  make_still<EmptyFlux2LatentImage>(ctx, kFlux2);
}
void EmptyFlux2LatentImage::infer(Infer& question) {
  infer_still<EmptyFlux2LatentImage>(question, kFlux2);
}

void EmptyHunyuanLatentVideo::execute(Context& ctx) {
  make_moving<EmptyHunyuanLatentVideo>(ctx, kHunyuanVideo);
}
void EmptyHunyuanLatentVideo::infer(Infer& question) {
  infer_moving<EmptyHunyuanLatentVideo>(question, kHunyuanVideo);
}

void EmptyARVideoLatent::execute(Context& ctx) { make_moving<EmptyARVideoLatent>(ctx, kCausal); }
void EmptyARVideoLatent::infer(Infer& question) {
  infer_moving<EmptyARVideoLatent>(question, kCausal);
}

void EmptyHunyuanVideo15Latent::execute(Context& ctx) {
  make_moving<EmptyHunyuanVideo15Latent>(ctx, kHunyuanVideo15);
}
void EmptyHunyuanVideo15Latent::infer(Infer& question) {
  infer_moving<EmptyHunyuanVideo15Latent>(question, kHunyuanVideo15);
}

void EmptyHunyuanImageLatent::execute(Context& ctx) {
  make_still<EmptyHunyuanImageLatent>(ctx, kHunyuanImage);
}
void EmptyHunyuanImageLatent::infer(Infer& question) {
  infer_still<EmptyHunyuanImageLatent>(question, kHunyuanImage);
}

void EmptyLTXVLatentVideo::execute(Context& ctx) { make_moving<EmptyLTXVLatentVideo>(ctx, kLtxv); }
void EmptyLTXVLatentVideo::infer(Infer& question) {
  infer_moving<EmptyLTXVLatentVideo>(question, kLtxv);
}

void EmptyMochiLatentVideo::execute(Context& ctx) {
  make_moving<EmptyMochiLatentVideo>(ctx, kMochi);
}
void EmptyMochiLatentVideo::infer(Infer& question) {
  infer_moving<EmptyMochiLatentVideo>(question, kMochi);
}

void EmptyCosmosLatentVideo::execute(Context& ctx) {
  make_moving<EmptyCosmosLatentVideo>(ctx, kCosmos);
}
void EmptyCosmosLatentVideo::infer(Infer& question) {
  infer_moving<EmptyCosmosLatentVideo>(question, kCosmos);
}

void EmptyChromaRadianceLatentImage::execute(Context& ctx) {
  make_still<EmptyChromaRadianceLatentImage>(ctx, kRadiance);
}
void EmptyChromaRadianceLatentImage::infer(Infer& question) {
  infer_still<EmptyChromaRadianceLatentImage>(question, kRadiance);
}

// The picture comes before its layers.
void EmptyQwenImageLayeredLatentImage::execute(Context& ctx) {
  ctx[out] = zero_latent(
      ctx, kQwenLayers,
      scaled_shape(kQwenLayers, ctx[batch_size], ctx[width], ctx[height], ctx[layers] + 1));
}
void EmptyQwenImageLayeredLatentImage::infer(Infer& question) {
  const auto w = question[width], h = question[height], b = question[batch_size],
             n = question[layers];
  if (w && h && b && n)
    question.out(out, "samples", HEDDLE_F32, scaled_shape(kQwenLayers, *b, *w, *h, *n + 1));
}

}  // namespace heddle::samplers
