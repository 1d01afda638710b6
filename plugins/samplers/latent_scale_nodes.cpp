#include "latent_scale_nodes.h"

#include <heddle/host_memory.hpp>

#include "latent.h"
#include "resize_latent.h"

namespace heddle::samplers {
namespace {

using blocks::GridSize;

Value scaled(Context& ctx, const Value& latent, const std::string& name, const GridSize& to,
             bool crop = false) {
  const Tensor samples = samples_of(latent);
  const HostFloats values(ctx, samples);
  HostMemory memory(ctx);
  const Tensor result = ctx.make_host(resized_shape(samples.shape(), to), HEDDLE_F32);
  resize_latent(ctx, values.data(), samples.shape(), {name, to, crop}, result.data<float>(),
                memory);
  return Record(latent).set("samples", value_of(result)).value();
}

template <class Node>
void infer_scaled(Infer& question, const Shape& from, const GridSize& to) {
  question.out(Node::latent, "samples", HEDDLE_F32, resized_shape(from, to));
  question.cost(0, 0, blocks::resampling_bytes(grids_of(from), to));
}

}  // namespace

void LatentUpscale::execute(Context& ctx) {
  const Value from = ctx[samples];
  const std::int64_t w = ctx[width], h = ctx[height];
  if (w == 0 && h == 0) {
    ctx[latent] = from;
    return;
  }
  const GridSize to = size_for(grids_of(samples_of(from).shape()).size, w, h, kDownscale);
  ctx[latent] = scaled(ctx, from, ctx[upscale_method], to, ctx[crop] == "center");
}
void LatentUpscale::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto w = question[width], h = question[height];
  if (!shape || shape->size() < 3 || !w || !h) return;
  if (*w == 0 && *h == 0) {
    question.out(latent, "samples", HEDDLE_F32, *shape);
    question.shares(latent);
  } else {
    infer_scaled<LatentUpscale>(question, *shape,
                                size_for(grids_of(*shape).size, *w, *h, kDownscale));
  }
}

void LatentUpscaleBy::execute(Context& ctx) {
  const Value from = ctx[samples];
  const GridSize to = size_by(grids_of(samples_of(from).shape()).size, ctx[scale_by]);
  ctx[latent] = scaled(ctx, from, ctx[upscale_method], to);
}
void LatentUpscaleBy::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto factor = question[scale_by];
  if (shape && shape->size() >= 3 && factor)
    infer_scaled<LatentUpscaleBy>(question, *shape, size_by(grids_of(*shape).size, *factor));
}

}  // namespace heddle::samplers
