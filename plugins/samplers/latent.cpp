#include "latent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "pair_latent.h"
#include "random.h"
#include "user_error.h"

namespace heddle::samplers {
namespace {

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ")";
}

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= std::size_t(size);
  return count;
}

void read_samples(Context& ctx, const Tensor& samples, std::pmr::vector<float>& to) {
  to.resize(std::size_t(samples.count()));
  read_to<float>(ctx, samples.dtype() == HEDDLE_F32 ? samples : ops::cast(ctx, samples, HEDDLE_F32),
                 to);
}

void fit(Latent& latent, const LatentFormat& format) {
  latent.shape = with_frames(latent.shape, format.has_frames);
  const std::int64_t channels = format.channels == 0 ? latent.shape[1] : format.channels;
  Shape fitted = latent.shape;
  if (latent.empty)
    fitted =
        with_cells(fitted, latent.record.get<std::int64_t>(kDownscaleKey, 0), format.downscale);
  fitted[1] = channels;
  if (fitted == latent.shape) return;
  if (!latent.empty)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the latent is " + text_of(latent.shape) + ", that is " +
                    std::to_string(latent.shape[1]) + " channels; the model reads " +
                    std::to_string(channels) +
                    ". Encode the picture with the autoencoder that belongs to this model.");
  latent.shape = fitted;
  latent.values.assign(count_of(latent.shape), 0.0f);
}

// From the autoencoder's units to the model's.
void scale(Latent& latent, const LatentFormat& format) {
  const std::int64_t channels = latent.shape[1];
  const std::size_t size = latent.item_count() / std::size_t(channels);
  float* value = latent.values.data();
  for (std::int64_t plane = 0; plane < latent.items() * channels; ++plane) {
    const LatentFormat::Units& units = format.of(plane % channels);
    const float factor = float(units.scale), shift = float(units.shift);
    for (std::size_t i = 0; i < size; ++i, ++value) *value = (*value - shift) * factor;
  }
}

// The units that a latent tells of; none where it does not.
std::optional<LatentFormat> told_units(const Latent& latent) {
  LatentFormat from;
  const Value means = latent.record.field("latent_means"),
              deviations = latent.record.field("latent_deviations");
  if (means.count() > 0 && std::int64_t(means.count()) == latent.shape[1] &&
      means.count() == deviations.count()) {
    for (std::uint32_t i = 0; i < means.count(); ++i)
      from.units.push_back({1 / deviations.item(i).as<double>(), means.item(i).as<double>()});
    return from;
  }
  if (!latent.record.has("scale")) return std::nullopt;
  from.units = {{latent.record.get<double>("scale", 1), latent.record.get<double>("shift", 0)}};
  return from;
}

// From the units that a latent tells of to the model's, where both are known.
void rescale(Latent& latent, const LatentFormat& format) {
  const std::optional<LatentFormat> told = told_units(latent);
  if (!told || (!format.is_told && format.units.size() == 1)) return;
  const std::int64_t channels = latent.shape[1];
  const std::size_t size = latent.item_count() / std::size_t(channels);
  float* value = latent.values.data();
  for (std::int64_t plane = 0; plane < latent.items() * channels; ++plane, value += size) {
    const LatentFormat::Units &from = told->of(plane % channels), &to = format.of(plane % channels);
    if ((from.scale == to.scale && from.shift == to.shift) || from.scale == 0) continue;
    for (std::size_t i = 0; i < size; ++i)
      value[i] = float((double(value[i]) / from.scale + from.shift - to.shift) * to.scale);
  }
}

constexpr std::string_view kUnitKeys[] = {"scale", "shift", "latent_means", "latent_deviations"};

// What the samples of a run are scaled by: as the model tells, or else as whoever made the latent.
Value with_units(const Value& latent, const LatentFormat& format) {
  Record record;
  const bool is_by_channel = format.units.size() > 1, is_known = format.is_told || is_by_channel;
  for (std::uint32_t i = 0; i < latent.count(); ++i)
    if (const std::string key = latent.key(i); !is_known || !std::ranges::count(kUnitKeys, key))
      record.set(latent.key(i), latent.item(i));
  if (is_by_channel) {
    std::vector<Value> means, deviations;
    for (const LatentFormat::Units& units : format.units) {
      means.push_back(value_of(units.shift));
      deviations.push_back(value_of(1 / units.scale));
    }
    record.set("latent_means", list_of(means)).set("latent_deviations", list_of(deviations));
  } else if (format.is_told) {
    record.set("scale", value_of(format.of(0).scale)).set("shift", value_of(format.of(0).shift));
  }
  return record.value();
}

}  // namespace

Tensor samples_of(const Value& latent) {
  if (latent.field("samples").is(HEDDLE_KIND_LIST))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a LATENT of pictures and sound together came in, and one of them is needed. Link "
                "an output of LTXVSeparateAVLatent.");
  if (latent.has("samples")) return latent.field("samples").as<Tensor>();
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a LATENT without 'samples' came in. Link the LATENT output of a latent node.");
}

double tokens_of(const Shape& shape) {
  if (shape.size() < 3) return 0;
  double tokens = 1;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) tokens *= double(shape[axis]);
  return tokens;
}

Shape with_frames(Shape shape, bool has_frames) {
  if (has_frames && shape.size() == 4) shape.insert(shape.begin() + 2, 1);
  if (!has_frames && shape.size() == 5 && shape[2] == 1) shape.erase(shape.begin() + 2);
  return shape;
}

Shape with_cells(Shape shape, std::int64_t from, std::int64_t to) {
  if (from <= 0 || to <= 0 || from == to || shape.size() < 4) return shape;
  for (std::size_t axis = shape.size() - 2; axis < shape.size(); ++axis)
    shape[axis] =
        std::max<std::int64_t>(1, std::llrint(double(shape[axis]) * double(from) / double(to)));
  return shape;
}

Tensor pictures_of(const Value& latent) {
  const Value samples = latent.field("samples");
  return is_pair(samples) ? parts_of(samples).front() : samples_of(latent);
}

Latent read_latent(Context& ctx, const Value& record, const LatentFormat& format,
                   std::pmr::memory_resource& memory) {
  if (format.has_sound) {
    Latent both = read_pair(ctx, record, format, memory);
    both.record = with_units(record, format);
    return both;
  }
  const Tensor samples = samples_of(record);
  Latent latent{record, samples.shape(), std::pmr::vector<float>(&memory), false, {}};
  if (latent.shape.size() < 3 || count_of(latent.shape) == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the latent is " + text_of(latent.shape) +
                                             "; (batch, channels, height, width) "
                                             "with at least one element is needed.");
  read_samples(ctx, samples, latent.values);
  latent.empty = std::all_of(latent.values.begin(), latent.values.end(),
                             [](float value) { return value == 0.0f; });
  fit(latent, format);
  const bool is_scaled = record.get<bool>("scaled", false);
  if (!latent.empty) is_scaled ? rescale(latent, format) : scale(latent, format);
  latent.record = with_units(record, format);
  const Value index = record.field("batch_index");
  for (std::uint32_t i = 0; i < index.count(); ++i)
    latent.batch_index.push_back(index.item(i).as<std::int64_t>());
  if (!latent.batch_index.empty() && std::int64_t(latent.batch_index.size()) != latent.items())
    throw Error(HEDDLE_INVALID_ARGUMENT, "the latent has " + std::to_string(latent.items()) +
                                             " items and a batch_index of " +
                                             std::to_string(latent.batch_index.size()) +
                                             ". Give one index for each item.");
  return latent;
}

std::pmr::vector<float> noise_of(const Latent& latent, std::uint64_t seed,
                                 std::pmr::memory_resource& memory) {
  if (!latent.parts.empty()) return pair_noise(latent, seed, memory);
  if (latent.batch_index.empty()) return initial_noise(seed, latent.values.size(), memory);
  return with_user_errors(
      [&] { return initial_noise(seed, latent.item_count(), latent.batch_index, memory); });
}

Value with_samples(Context& ctx, const Latent& latent, const Tensor& samples) {
  Record record;
  for (std::uint32_t i = 0; i < latent.record.count(); ++i)
    if (std::string_view(latent.record.key(i)) != kDownscaleKey)
      record.set(latent.record.key(i), latent.record.item(i));
  record.set("scaled", value_of(true));
  if (latent.parts.empty()) return record.set("samples", value_of(samples)).value();
  return record.set("samples", unpacked(ctx, samples, latent)).value();
}

}  // namespace heddle::samplers
