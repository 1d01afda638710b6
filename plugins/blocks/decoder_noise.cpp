#include "plugins/blocks/decoder_noise.h"

#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <numbers>
#include <optional>
#include <string>

namespace heddle::vae {
namespace {

constexpr int kStreamBits = 40;

std::uint64_t hashed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// first: the number of the stream that stands first.
Tensor drawn(Context& ctx, std::uint64_t stream, const Shape& shape, std::uint64_t first = 0) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count = checked_product({count, size}, "the noise");
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(count), &memory);
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = drawn_number(stream, first + n);
  return ctx.upload(shape, HEDDLE_F32, numbers.data());
}

// Of a decoder that makes pixels of noise: (B, T, S h, S w, N) for latents z, or nothing.
std::optional<Shape> cell_noise_shape(const Value& settings, const Shape& z) {
  const Value told = settings.field("cell_noise");
  if (told.count() != 3) return {};
  const auto number = [&](std::uint32_t i) { return told.item(i).as<std::int64_t>(); };
  const std::int64_t frames = z.size() == 5 ? z[2] : 1;
  return Shape{
      z[0],
      checked_sum({checked_product({frames, number(0)}, "the noise"), 1 - number(0)}, "the noise"),
      checked_product({z[z.size() - 2], number(1)}, "the noise"),
      checked_product({z.back(), number(1)}, "the noise"), number(2)};
}

}  // namespace

float drawn_number(std::uint64_t stream, std::uint64_t n) {
  const std::uint64_t bits = hashed((stream << kStreamBits) + n);
  const double a = (double(bits >> 32) + 1) * 0x1p-32, b = double(bits & 0xFFFFFFFFu) * 0x1p-32;
  return float(std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b));
}

void set_decoder_noise(Context& ctx, const Value& decoder, const Tensor& z, Record& inputs) {
  const Value settings = model_settings(decoder);
  if (const auto shape = cell_noise_shape(settings, z.shape()))
    inputs.set("cell_noise", value_of(drawn(ctx, 0, *shape)));
  if (!settings.has("noise_planes")) return;
  inputs.set("noise", value_of(drawn(ctx, 0, z.shape())));
  const Value planes = settings.field("noise_planes");
  std::int64_t height = z.size(z.rank() - 2), width = z.size(z.rank() - 1);
  for (std::uint32_t i = 0; i < planes.count(); ++i) {
    if (const auto count = planes.item(i).as<std::int64_t>(); count > 0)
      inputs.set("noise." + std::to_string(i), value_of(drawn(ctx, i + 1, {count, height, width})));
    height = checked_product({height, 2}, "the noise"),
    width = checked_product({width, 2}, "the noise");
  }
}

Tensor drawn_cells(Context& ctx, const Value& decoder, const Shape& z, std::int64_t video,
                   std::int64_t begin, std::int64_t frames) {
  const auto all = cell_noise_shape(model_settings(decoder), z);
  if (!all) throw Error(HEDDLE_INVALID_ARGUMENT, "vae: its decoder draws no noise of cells");
  Shape shape = *all;
  shape[0] = 1, shape[1] = frames;
  const std::int64_t frame = checked_product({shape[2], shape[3], shape[4]}, "the noise");
  return drawn(ctx, 0, shape, std::uint64_t((video * (*all)[1] + begin) * frame));
}

void tell_decoder_noise(const Value& decoder, const Shape& z, std::vector<Infer::Named>& inputs) {
  const Value settings = model_settings(decoder);
  if (const auto shape = cell_noise_shape(settings, z))
    inputs.push_back({"cell_noise", HEDDLE_F32, *shape});
  if (!settings.has("noise_planes")) return;
  inputs.push_back({"noise", HEDDLE_F32, z});
  const Value planes = settings.field("noise_planes");
  std::int64_t height = z[z.size() - 2], width = z.back();
  for (std::uint32_t i = 0; i < planes.count(); ++i) {
    if (const auto count = planes.item(i).as<std::int64_t>(); count > 0)
      inputs.push_back({"noise." + std::to_string(i), HEDDLE_F32, {count, height, width}});
    height = checked_product({height, 2}, "the noise"),
    width = checked_product({width, 2}, "the noise");
  }
}

}  // namespace heddle::vae
