#include "latent_nodes.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "latent.h"

namespace heddle::samplers {
namespace {

Shape empty_shape(std::int64_t batch, std::int64_t channels, std::int64_t height,
                  std::int64_t width) {
  return {batch, channels, height / kDownscale, width / kDownscale};
}

Value empty_latent(Context& ctx, const Shape& shape) {
  const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(samples.data<float>(), samples.count(), 0.0f);
  return Record()
      .set("samples", value_of(samples))
      .set(kDownscaleKey, value_of(kDownscale))
      .value();
}

template <class Node>
void infer_empty(Infer& question, std::int64_t channels) {
  const auto width = question[Node::width], height = question[Node::height],
             batch = question[Node::batch_size];
  if (width && height && batch)
    question.out(Node::latent, "samples", HEDDLE_F32,
                 empty_shape(*batch, channels, *height, *width));
  question.known(Node::latent, kDownscaleKey, value_of(kDownscale));
}

Tensor repeated(Context& ctx, const Tensor& tensor, std::int64_t amount) {
  Shape shape = tensor.shape();
  const std::int64_t items = shape[0];
  shape[0] = checked_product({items, amount}, "the batch");
  const Tensor whole = ctx.make(shape, tensor.dtype());
  for (std::int64_t i = 0; i < amount; ++i)
    ops::copy_into(ctx, tensor, whole.slice(0, i * items, (i + 1) * items));
  return whole;
}

std::vector<std::int64_t> indices_of(const Value& list) {
  std::vector<std::int64_t> indices;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    indices.push_back(list.item(i).as<std::int64_t>());
  return indices;
}

Value list_of_indices(const std::vector<std::int64_t>& indices) {
  std::vector<Value> items;
  for (const std::int64_t index : indices) items.push_back(value_of(index));
  return list_of(items);
}

// The part of a batch that [index, index + length) means, cut to what is there; a negative index
// counts from the end.
struct Range {
  std::int64_t begin, end;
};
Range range_in(std::int64_t items, std::int64_t index, std::int64_t length) {
  if (index < 0) index += items;
  const std::int64_t begin = std::max<std::int64_t>(std::min(items - 1, index), 0);
  return {begin, begin + std::min(items - begin, length)};
}

// The indices once more for every copy, each time above those before, so that each gets noise of
// its own.
std::vector<std::int64_t> continued(const std::vector<std::int64_t>& indices, std::int64_t amount) {
  if (indices.empty()) return {};
  const auto [low, high] = std::minmax_element(indices.begin(), indices.end());
  const std::int64_t distance =
      checked_sum({*high, checked_product({*low, -1}, "batch_index"), 1}, "batch_index");
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < amount; ++i)
    for (const std::int64_t index : indices)
      all.push_back(
          checked_sum({index, checked_product({i, distance}, "batch_index")}, "batch_index"));
  return all;
}

}  // namespace

void EmptyLatentImage::execute(Context& ctx) {
  ctx[latent] = empty_latent(ctx, empty_shape(ctx[batch_size], 4, ctx[height], ctx[width]));
}
void EmptyLatentImage::infer(Infer& question) { infer_empty<EmptyLatentImage>(question, 4); }

void EmptySD3LatentImage::execute(Context& ctx) {
  ctx[latent] = empty_latent(ctx, empty_shape(ctx[batch_size], 16, ctx[height], ctx[width]));
}
void EmptySD3LatentImage::infer(Infer& question) { infer_empty<EmptySD3LatentImage>(question, 16); }

void RepeatLatentBatch::execute(Context& ctx) {
  const Value from = ctx[samples];
  const std::int64_t times = ctx[amount];
  const Tensor tensor = samples_of(from);
  Record to(from);
  to.set("samples", value_of(repeated(ctx, tensor, times)));
  if (from.has("noise_mask")) {
    const Tensor mask = from.field("noise_mask").as<Tensor>();
    // One mask serves any batch; several belong to the items one by one.
    if (mask.size(0) > 1) to.set("noise_mask", value_of(repeated(ctx, mask, times)));
  }
  if (from.has("batch_index"))
    to.set("batch_index", list_of_indices(continued(indices_of(from.field("batch_index")), times)));
  ctx[latent] = to.value();
}

void RepeatLatentBatch::infer(Infer& question) {
  std::optional<Shape> shape = question.shape(samples, "samples");
  const std::optional<std::int64_t> times = question[amount];
  if (!shape || shape->empty() || !times) return;
  (*shape)[0] = checked_product({(*shape)[0], *times}, "the batch");
  question.out(latent, "samples", HEDDLE_F32, *shape);
  if (const Value cells = question.part(samples, kDownscaleKey))
    question.known(latent, kDownscaleKey, cells);
  std::optional<Shape> mask = question.shape(samples, "noise_mask");
  if (!mask || mask->empty()) return;
  if (mask->front() > 1) mask->front() = checked_product({mask->front(), *times}, "the batch");
  question.out(latent, "noise_mask", HEDDLE_F32, *mask);
}

void LatentFromBatch::execute(Context& ctx) {
  const Value from = ctx[samples];
  const Tensor tensor = samples_of(from);
  const std::int64_t items = tensor.size(0);
  const auto [begin, end] = range_in(items, ctx[batch_index], ctx[length]);
  Record to(from);
  to.set("samples", value_of(tensor.slice(0, begin, end)));
  if (from.has("noise_mask")) {
    const Tensor mask = from.field("noise_mask").as<Tensor>();
    if (mask.size(0) >= end)
      to.set("noise_mask", value_of(mask.slice(0, begin, end)));
    else if (mask.size(0) > 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the latent has " + std::to_string(items) + " items and its noise mask " +
                      std::to_string(mask.size(0)) + ". Give one mask, or one for each item.");
  }
  std::vector<std::int64_t> indices = indices_of(from.field("batch_index"));
  if (indices.empty())
    for (std::int64_t i = 0; i < items; ++i) indices.push_back(i);
  if (std::int64_t(indices.size()) < end)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent has " + std::to_string(items) + " items and a batch_index of " +
                    std::to_string(indices.size()) + ". Give one index for each item.");
  to.set("batch_index", list_of_indices({indices.begin() + begin, indices.begin() + end}));
  ctx[latent] = to.value();
}

void LatentFromBatch::infer(Infer& question) {
  std::optional<Shape> shape = question.shape(samples, "samples");
  const auto index = question[batch_index], count = question[length];
  if (!shape || shape->empty() || shape->front() < 1 || !index || !count) return;
  const auto [begin, end] = range_in(shape->front(), *index, *count);
  shape->front() = end - begin;
  question.out(latent, "samples", HEDDLE_F32, *shape);
  question.shares(latent);
  std::optional<Shape> mask = question.shape(samples, "noise_mask");
  if (!mask || mask->empty()) return;
  if (mask->front() >= end) mask->front() = end - begin;
  question.out(latent, "noise_mask", HEDDLE_F32, *mask);
}

void SetLatentNoiseMask::execute(Context& ctx) {
  ctx[latent] = Record(ctx[samples]).set("noise_mask", ctx[mask]).value();
}

void SetLatentNoiseMask::infer(Infer& question) {
  question.shares(latent);
  if (const auto from = question.tensor(samples, "samples"))
    question.out(latent, "samples", from->dtype, Shape(from->shape, from->shape + from->rank));
  if (const auto drawn = question.tensor(mask))
    question.out(latent, "noise_mask", drawn->dtype,
                 Shape(drawn->shape, drawn->shape + drawn->rank));
}

}  // namespace heddle::samplers
