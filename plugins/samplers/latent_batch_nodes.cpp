#include "latent_batch_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>

#include "host_latent.h"
#include "latent.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "random.h"

namespace heddle::samplers {
namespace {

// The places in the noise of the batch that items had, or the next ones.
std::vector<std::int64_t> noise_places_of(const Value& latent, std::int64_t items,
                                          std::int64_t next) {
  std::vector<std::int64_t> indices;
  const Value given = latent.field("batch_index");
  for (std::int64_t i = 0; i < items; ++i)
    indices.push_back(i < std::int64_t(given.count())
                          ? given.item(std::uint32_t(i)).as<std::int64_t>()
                          : next + i);
  return indices;
}

Value list_of_places(const std::vector<std::int64_t>& indices) {
  std::vector<Value> values;
  for (const std::int64_t index : indices) values.push_back(value_of(index));
  return list_of(values);
}

// Tensors of equal shape but for the first axis, one after another.
Tensor joined_tensors(Context& ctx, const std::vector<Tensor>& parts, const char* what) {
  Shape shape = parts.front().shape();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    Shape other = part.shape();
    other[0] = 0;
    Shape like = shape;
    like[0] = 0;
    if (other != like)
      throw Error(HEDDLE_INVALID_ARGUMENT, std::string("latents: their ") + what +
                                               " differ in their sizes. Bring them to one size "
                                               "first.");
    shape[0] = checked_sum({shape[0], part.size(0)}, "the batch");
  }
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  float* to = all.data<float>();
  for (const Tensor& part : parts) {
    const HostFloats values(ctx, part);
    to = std::copy_n(values.data(), values.size(), to);
  }
  return all;
}

struct LatentEntry {
  Tensor samples, mask;  // of one item; the mask may be missing
  std::int64_t index;
};

bool is_full(Context& ctx, const Tensor& mask) {
  const HostFloats values(ctx, mask);
  return std::ranges::all_of(values.elements(), [](float x) { return x == 1.0f; });
}

Tensor full_mask(Context& ctx, const Shape& samples) {
  const Tensor mask = ctx.make_host(
      {1, 1, samples[samples.size() - 2] * kDownscale, samples.back() * kDownscale}, HEDDLE_F32);
  std::fill_n(mask.data<float>(), mask.count(), 1.0f);
  return mask;
}

Value batch_of(Context& ctx, const std::vector<LatentEntry>& entries) {
  std::vector<Tensor> samples, masks;
  std::vector<std::int64_t> indices;
  const bool has_mask = std::ranges::any_of(
      entries, [&](const LatentEntry& entry) { return entry.mask && !is_full(ctx, entry.mask); });
  for (const LatentEntry& entry : entries) {
    samples.push_back(entry.samples);
    indices.push_back(entry.index);
    if (has_mask) masks.push_back(entry.mask ? entry.mask : full_mask(ctx, entry.samples.shape()));
  }
  Record record;
  record.set("samples", value_of(joined_tensors(ctx, samples, "samples")));
  if (has_mask) record.set("noise_mask", value_of(joined_tensors(ctx, masks, "masks")));
  return record.set("batch_index", list_of_places(indices)).value();
}

// A mask as (batch, 1, height, width), of which item i belongs to item i of the samples.
Tensor mask_of_item(const Value& latent, std::int64_t i) {
  const Value given = latent.field("noise_mask");
  if (!given || given.is(HEDDLE_KIND_NONE)) return {};
  const Tensor mask = given.as<Tensor>();
  const Shape shape = mask.shape();
  const std::int64_t height = shape[shape.size() - 2], width = shape.back();
  const Tensor all = mask.reshape({mask.count() / (height * width), 1, height, width});
  return all.slice(0, i % all.size(0), i % all.size(0) + 1);
}

bool same_grid(const Shape& a, const Shape& b) {
  return a.back() == b.back() && a[a.size() - 2] == b[b.size() - 2];
}

}  // namespace

void BatchLatentsNode::execute(Context& ctx) {
  const std::vector<blocks::GrownInput> given = blocks::grown_inputs(ctx, latents.port);
  std::vector<LatentCells> all;
  std::vector<std::int64_t> indices;
  Shape shape;
  for (const blocks::GrownInput& one : given) {
    all.push_back(LatentCells::of(ctx, one.value, one.name.c_str()));
    if (all.size() > 1) all.back().fit(ctx, all.front(), "bilinear");
    if (shape.empty())
      shape = all.front().shape();
    else
      shape[0] = checked_sum({shape[0], all.back().items()}, "the batch");
    for (const std::int64_t index : noise_places_of(one.value, all.back().items(), 0))
      indices.push_back(index);
  }
  const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
  float* to = samples.data<float>();
  for (const LatentCells& cells : all) to = std::copy_n(cells.item(0), cells.count(), to);
  ctx[out] = Record(with_new_samples(given.front().value, samples))
                 .set("batch_index", list_of_places(indices))
                 .value();
}

void RebatchLatents::execute(Context& ctx) {
  const Value list = ctx[latents];
  const auto size = std::size_t(ctx[batch_size]);
  std::vector<Value> batches;
  std::vector<LatentEntry> now;
  const auto flush = [&] {
    if (!now.empty()) batches.push_back(batch_of(ctx, now));
    now.clear();
  };
  std::int64_t done = 0;
  for (std::uint32_t n = 0; n < list.count(); ++n) {
    const Value latent = list.item(n);
    const Tensor samples = samples_of(latent);
    const std::int64_t items = samples.size(0);
    const std::vector<std::int64_t> indices = noise_places_of(latent, items, done);
    done += items;
    for (std::int64_t i = 0; i < items; ++i) {
      // Latents of different sizes make no batch.
      if (now.size() == size ||
          (!now.empty() && !same_grid(now.front().samples.shape(), samples.shape())))
        flush();
      now.push_back({samples.slice(0, i, i + 1), mask_of_item(latent, i), indices[std::size_t(i)]});
    }
  }
  flush();
  ctx[out] = list_of(batches);
}

void ResolutionBucket::execute(Context& ctx) {
  const Value list = ctx[latents], texts = ctx[conditioning];
  if (list.count() != texts.count())
    throw Error(HEDDLE_INVALID_ARGUMENT, "latents: there are " + std::to_string(list.count()) +
                                             ", and " + std::to_string(texts.count()) +
                                             " conditionings. Give one for each.");
  struct Bucket {
    std::vector<Tensor> samples;
    std::vector<Value> entries;
  };
  std::vector<Bucket> buckets;
  for (std::uint32_t n = 0; n < list.count(); ++n) {
    const Tensor samples = samples_of(list.item(n));
    if (samples.size(0) > std::int64_t(texts.item(n).count()))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "conditioning: for a latent of " + std::to_string(samples.size(0)) +
                      " items there are " + std::to_string(texts.item(n).count()) +
                      " entries. Give one for each.");
    for (std::int64_t i = 0; i < samples.size(0); ++i) {
      auto bucket = std::ranges::find_if(buckets, [&](const Bucket& one) {
        return same_grid(one.samples.front().shape(), samples.shape());
      });
      if (bucket == buckets.end()) bucket = buckets.emplace(buckets.end());
      bucket->samples.push_back(samples.slice(0, i, i + 1));
      bucket->entries.push_back(texts.item(n).item(std::uint32_t(i)));
    }
  }
  std::vector<Value> batches, entries;
  for (const Bucket& bucket : buckets) {
    const Tensor samples = joined_tensors(ctx, bucket.samples, "samples");
    batches.push_back(Record().set("samples", value_of(samples)).value());
    entries.push_back(list_of(bucket.entries));
  }
  ctx[out] = list_of(batches);
  ctx[conditioning_out] = list_of(entries);
}

void ImageAddNoise::execute(Context& ctx) {
  const HostFloats from(ctx, ctx[image]);
  const auto by = float(ctx[strength]);
  const Tensor noisy = ctx.make_host(Tensor(ctx[image]).shape(), HEDDLE_F32);
  const std::span<float> to(noisy.data<float>(), from.size());
  Generator(ctx[seed]).normal(to);
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = std::clamp(from.data()[i] + by * to[i], 0.0f, 1.0f);
  ctx[out] = noisy;
}
void ImageAddNoise::infer(Infer& question) {
  if (const auto shape = question.shape(image)) question.out(out, "", HEDDLE_F32, *shape);
}

}  // namespace heddle::samplers
