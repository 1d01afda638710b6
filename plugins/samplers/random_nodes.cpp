#include "random_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>

#include "latent.h"
#include "random.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

Tensor normal(Context& ctx, const Shape& shape, std::uint64_t seed) {
  const Tensor tensor = ctx.make_host(shape, HEDDLE_F32);
  Generator(seed).normal({tensor.data<float>(), std::size_t(tensor.count())});
  return tensor;
}

}  // namespace

void RandomConditioning::execute(Context& ctx) {
  const auto number = checked_cast<std::uint64_t>(ctx[seed], "seed");
  Record entry;
  entry.set("cross_attn", value_of(normal(ctx, {1, ctx[tokens], ctx[width]}, 2 * number)));
  if (ctx[pooled_width] > 0)
    entry.set("pooled_output", value_of(normal(ctx, {1, ctx[pooled_width]}, 2 * number + 1)));
  ctx[out] = list_of({entry.value()});
}

void RandomConditioning::infer(Infer& question) {
  const auto rows = question[tokens], columns = question[width], pooled = question[pooled_width];
  if (!rows || !columns || !pooled) return;
  question.out(out, "0.cross_attn", HEDDLE_F32, {1, *rows, *columns});
  if (*pooled > 0) question.out(out, "0.pooled_output", HEDDLE_F32, {1, *pooled});
}

namespace {

Shape random_latent_shape(std::int64_t channels, std::int64_t height, std::int64_t width,
                          std::int64_t frames) {
  constexpr std::int64_t kFramesOfCell = 4;
  Shape shape{1, channels, height / kDownscale, width / kDownscale};
  if (frames > 1) shape.insert(shape.begin() + 2, (frames - 1) / kFramesOfCell + 1);
  return shape;
}

}  // namespace

void RandomLatent::execute(Context& ctx) {
  const Shape shape = random_latent_shape(ctx[channels], ctx[height], ctx[width], ctx[length]);
  const auto number = checked_cast<std::uint64_t>(ctx[seed], "seed");
  ctx[latent] = Record().set("samples", value_of(normal(ctx, shape, number))).value();
}

void RandomLatent::infer(Infer& question) {
  const auto x = question[width], y = question[height], depth = question[channels],
             frames = question[length];
  if (x && y && depth && frames)
    question.out(latent, "samples", HEDDLE_F32, random_latent_shape(*depth, *y, *x, *frames));
}

}  // namespace heddle::samplers
