#include "pair_latent.h"

#include <algorithm>
#include <limits>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "host_latent.h"
#include "random.h"

namespace heddle::samplers {
namespace {

// Numbers of one item.
std::int64_t item_of(const Shape& shape) {
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

void check_parts(const std::vector<Shape>& parts, const LatentFormat& format) {
  const Shape &pictures = parts[0], &sound = parts[1];
  if (pictures.size() != 5 || sound.size() != 4 || item_of(pictures) * item_of(sound) == 0 ||
      pictures[0] != sound[0] || pictures[0] < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent of pictures is " + shape_text(pictures) + ", that of their sound " +
                    shape_text(sound) +
                    "; (batch, channels, frames, height, width) and (batch, channels, length, "
                    "bands) of the same batch are needed.");
  if (format.channels != 0 && pictures[1] != format.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent of pictures is " + shape_text(pictures) + "; the model reads " +
                    std::to_string(format.channels) +
                    " channels. Encode the pictures with the autoencoder that belongs to this "
                    "model.");
}

}  // namespace

bool is_pair(const Value& samples) { return samples.is(HEDDLE_KIND_LIST); }

std::vector<Tensor> parts_of(const Value& samples) {
  if (samples.count() != 2)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent has " + std::to_string(samples.count()) +
                    " parts; pictures and their sound are two. Link a latent that has both.");
  return {samples.item(0).as<Tensor>(), samples.item(1).as<Tensor>()};
}

Latent read_pair(Context& ctx, const Value& record, const LatentFormat& format,
                 std::pmr::memory_resource& memory) {
  const Value samples = record.field("samples");
  if (!is_pair(samples))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model makes pictures and their sound, and the latent has one of them only. "
                "Link LTXVConcatAVLatent.");
  if (record.field("batch_index").count() > 0)
    throw Error(HEDDLE_UNSUPPORTED,
                "the latent has pictures, their sound and a batch_index, which choose noise of "
                "items by their number. Leave out the node that takes them from a batch.");
  const std::vector<Tensor> tensors = parts_of(samples);
  Latent latent{record, {}, std::pmr::vector<float>(&memory), false, {}};
  latent.sound_scale = format.sound_scale;
  for (const Tensor& tensor : tensors) latent.parts.push_back(tensor.shape());
  check_parts(latent.parts, format);
  const std::int64_t items = latent.parts[0][0],
                     each = item_of(latent.parts[0]) + item_of(latent.parts[1]);
  latent.shape = {items, 1, each};
  latent.values.resize(std::size_t(items * each));
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t count = item_of(tensor.shape());
    std::pmr::vector<float> numbers(std::size_t(tensor.count()), &memory);
    read_to<float>(ctx, tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx, tensor, HEDDLE_F32),
                   numbers);
    if (&tensor == &tensors.back() && latent.sound_scale != 1)
      for (float& number : numbers) number = float(number * latent.sound_scale);
    for (std::int64_t item = 0; item < items; ++item)
      std::copy_n(numbers.data() + item * count, count,
                  latent.values.data() + item * each + offset);
    offset += count;
  }
  latent.empty = std::ranges::all_of(latent.values, [](float value) { return value == 0.0f; });
  // Its parts would need the units of two autoencoders.
  if (format.draws_anew && !latent.empty && !record.get<bool>("scaled", false))
    throw Error(HEDDLE_UNSUPPORTED,
                "the latent has pictures or sound of an autoencoder, over which this model is not "
                "drawn yet. Link EmptyMiniMaxH3LatentAV, or the latent of another sampler.");
  return latent;
}

std::pmr::vector<float> pair_noise(const Latent& latent, std::uint64_t seed,
                                   std::pmr::memory_resource& memory) {
  std::pmr::vector<float> noise(latent.values.size(), &memory);
  Generator generator(seed);
  const std::int64_t items = latent.items(), each = latent.shape[2];
  std::int64_t offset = 0;
  for (const Shape& part : latent.parts) {
    const std::int64_t count = item_of(part);
    std::pmr::vector<float> drawn(std::size_t(items * count), &memory);
    generator.normal(drawn);
    for (std::int64_t item = 0; item < items; ++item)
      std::copy_n(drawn.data() + item * count, count, noise.data() + item * each + offset);
    offset += count;
  }
  return noise;
}

Tensor part_of_pair(Context& ctx, const Tensor& point, const std::vector<Shape>& parts,
                    std::size_t index) {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < index; ++i) begin += item_of(parts[i]);
  const std::int64_t count = item_of(parts[index]);
  const Tensor part = ctx.make(parts[index], HEDDLE_F32);
  ops::copy_into(ctx, point.slice(2, begin, begin + count),
                 part.reshape({point.size(0), 1, count}));
  return part;
}

Value unpacked(Context& ctx, const Tensor& point, const Latent& latent) {
  Tensor sound = part_of_pair(ctx, point, latent.parts, 1);
  if (latent.sound_scale != 1) {
    constexpr double kUnbound = std::numeric_limits<double>::infinity();
    sound = ops::scale_clamp(ctx, sound, {1 / latent.sound_scale, 0, -kUnbound, kUnbound});
  }
  return list_of({value_of(part_of_pair(ctx, point, latent.parts, 0)), value_of(sound)});
}

Value point_input(Context& ctx, const Tensor& point, const std::vector<Shape>& parts) {
  if (parts.empty()) return Record().set("x", value_of(point)).value();
  return Record()
      .set("x", value_of(part_of_pair(ctx, point, parts, 0)))
      .set(kSound, value_of(part_of_pair(ctx, point, parts, 1)))
      .value();
}

Tensor point_output(Context& ctx, const Value& made) {
  const Tensor out = made.field("out").as<Tensor>();
  if (!made.has(kSoundOut)) return out;
  const Tensor sound = made.field(kSoundOut).as<Tensor>();
  const std::int64_t items = out.size(0), count = out.count() / items, more = sound.count() / items;
  const Tensor point = ctx.make({items, 1, count + more}, HEDDLE_F32);
  ops::copy_into(ctx, out.reshape({items, 1, count}), point.slice(2, 0, count));
  ops::copy_into(ctx, sound.reshape({items, 1, more}), point.slice(2, count, count + more));
  return point;
}

Shape packed_shape(const std::vector<Shape>& parts) {
  std::int64_t numbers = 0;
  for (const Shape& part : parts) {
    std::int64_t count = 1;
    for (std::size_t axis = 1; axis < part.size(); ++axis) count *= part[axis];
    numbers += count;
  }
  return {parts.front().front(), 1, numbers};
}

}  // namespace heddle::samplers
