#include "plugins/image/picture_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>
#include <limits>

#include "plugins/blocks/resample.h"

namespace heddle::image {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor inverted(Context& ctx, const Tensor& x) {
  return ops::scale_clamp(ctx, x, {-1, 1, -kInfinity, kInfinity});
}

std::string size_text(const Tensor& image) {
  return std::to_string(image.size(2)) + " x " + std::to_string(image.size(1)) + " with " +
         std::to_string(image.size(3)) + " channels";
}

void check_rank(const Tensor& image, const char* name) {
  if (image.rank() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(name) + ": an IMAGE has 4 axes, this has " +
                                             std::to_string(image.rank()));
}

// The part of a batch that [index, index + length) means, cut to what is there; a negative index
// counts from the end.
struct Range {
  std::int64_t begin, end;
};
Range range_in(std::int64_t count, std::int64_t index, std::int64_t length) {
  if (index < 0) index += count;
  const std::int64_t begin = std::max<std::int64_t>(std::min(count - 1, index), 0);
  return {begin, begin + std::min(count - begin, length)};
}

// The second picture of a batch in the size of the first: cut to its aspect, then bilinear.
Tensor of_size(Context& ctx, const Tensor& image, const Tensor& first) {
  check_rank(image, "image2");
  if (image.size(3) != first.size(3))
    throw Error(HEDDLE_INVALID_ARGUMENT, "image1 is " + size_text(first) + ", image2 is " +
                                             size_text(image) +
                                             ". Give pictures of the same channels.");
  const blocks::Grids grids{image.size(0), {image.size(1), image.size(2)}, image.size(3)};
  const blocks::GridSize to{first.size(1), first.size(2)};
  if (grids.size == to) return image;
  HostMemory memory(ctx);
  std::pmr::vector<float> values(std::size_t(image.count()), &memory);
  read_to<float>(ctx, image, values);
  const Tensor resized =
      ctx.make_host({image.size(0), to.height, to.width, image.size(3)}, HEDDLE_F32);
  blocks::resample(blocks::centre_cropped(blocks::Source::of(values.data(), grids), to), to,
                   blocks::Resampling::bilinear, resized.data<float>(), memory);
  return resized;
}

double channel(std::int64_t color, int shift) {
  return static_cast<double>(color >> shift & 0xff) / 255.0;
}

}  // namespace

void ImageInvert::execute(Context& ctx) { ctx[out] = inverted(ctx, ctx[image]); }
void ImageInvert::infer(Infer& question) {
  if (const auto shape = question.shape(image)) question.out(out, "", HEDDLE_F32, *shape);
}

void InvertMask::execute(Context& ctx) { ctx[out] = inverted(ctx, ctx[mask]); }
void InvertMask::infer(Infer& question) {
  if (const auto shape = question.shape(mask)) question.out(out, "", HEDDLE_F32, *shape);
}

void ImageBatch::execute(Context& ctx) {
  const Tensor first = ctx[image1];
  check_rank(first, "image1");
  const Tensor second = of_size(ctx, ctx[image2], first);
  Shape shape = first.shape();
  shape[0] = checked_sum({first.size(0), second.size(0)}, "the batch");
  const Tensor all = ctx.make(shape, HEDDLE_F32);
  ops::copy_into(ctx, first, all.slice(0, 0, first.size(0)));
  ops::copy_into(ctx, second, all.slice(0, first.size(0), shape[0]));
  ctx[out] = all;
}
void ImageBatch::infer(Infer& question) {
  auto shape = question.shape(image1);
  const auto other = question.shape(image2);
  if (!shape || !other || shape->size() != 4 || other->size() != 4) return;
  (*shape)[0] = checked_sum({(*shape)[0], (*other)[0]}, "the batch");
  question.out(out, "", HEDDLE_F32, *shape);
}

void ImageFromBatch::execute(Context& ctx) {
  const Tensor all = ctx[image];
  check_rank(all, "image");
  const auto [begin, end] = range_in(all.size(0), ctx[batch_index], ctx[length]);
  ctx[out] = all.slice(0, begin, end);
}
void ImageFromBatch::infer(Infer& question) {
  auto shape = question.shape(image);
  const auto index = question[batch_index], count = question[length];
  if (!shape || shape->size() != 4 || !index || !count) return;
  const auto [begin, end] = range_in((*shape)[0], *index, *count);
  (*shape)[0] = end - begin;
  question.out(out, "", HEDDLE_F32, *shape);
  question.shares(out);
}

void RepeatImageBatch::execute(Context& ctx) {
  const Tensor once = ctx[image];
  check_rank(once, "image");
  const std::int64_t count = once.size(0), times = ctx[amount];
  Shape shape = once.shape();
  shape[0] = checked_product({count, times}, "the batch");
  const Tensor all = ctx.make(shape, HEDDLE_F32);
  for (std::int64_t i = 0; i < times; ++i)
    ops::copy_into(ctx, once, all.slice(0, i * count, (i + 1) * count));
  ctx[out] = all;
}
void RepeatImageBatch::infer(Infer& question) {
  auto shape = question.shape(image);
  const auto times = question[amount];
  if (!shape || shape->size() != 4 || !times) return;
  (*shape)[0] = checked_product({(*shape)[0], *times}, "the batch");
  question.out(out, "", HEDDLE_F32, *shape);
}

void EmptyImage::execute(Context& ctx) {
  const Tensor image = ctx.make({ctx[batch_size], ctx[height], ctx[width], 3}, HEDDLE_F32);
  const std::int64_t wanted = ctx[color];
  for (int c = 0; c < 3; ++c) ops::fill(ctx, image.slice(3, c, c + 1), channel(wanted, 16 - 8 * c));
  ctx[out] = image;
}
void EmptyImage::infer(Infer& question) {
  const auto w = question[width], h = question[height], count = question[batch_size];
  if (w && h && count) question.out(out, "", HEDDLE_F32, {*count, *h, *w, 3});
}

void SolidMask::execute(Context& ctx) {
  const Tensor mask = ctx.make({1, ctx[height], ctx[width]}, HEDDLE_F32);
  ops::fill(ctx, mask, ctx[value]);
  ctx[out] = mask;
}
void SolidMask::infer(Infer& question) {
  const auto w = question[width], h = question[height];
  if (w && h) question.out(out, "", HEDDLE_F32, {1, *h, *w});
}

}  // namespace heddle::image
