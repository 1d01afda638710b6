#include "lanczos_picture.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

namespace heddle::encoders {
namespace {

constexpr std::int64_t kAlphaChannel = 3, kWithAlpha = 4;

int byte_of(float x) { return int(std::clamp(x * 255.0f, 0.0f, 255.0f)); }

// Pillow's product of two bytes.
int byte_product(int a, int b) {
  const int sum = a * b + 128;
  return ((sum >> 8) + sum) >> 8;
}

// Colours times alpha, as numbers halfway between bytes: those who make bytes of them cut.
void premultiply(std::pmr::vector<float>& pixels) {
  const auto between = [](int byte) { return (float(byte) + 0.5f) / 255.0f; };
  for (auto pixel = pixels.begin(); pixel != pixels.end(); pixel += kWithAlpha) {
    const int alpha = byte_of(pixel[kAlphaChannel]);
    for (std::int64_t c = 0; c < kAlphaChannel; ++c)
      pixel[c] = between(byte_product(byte_of(pixel[c]), alpha));
    pixel[kAlphaChannel] = between(alpha);
  }
}

void undo_premultiply(float* pixels, std::int64_t count) {
  const auto byte = [](float x) { return int(std::lround(x * 255.0f)); };
  for (std::int64_t i = 0; i < count; ++i, pixels += kWithAlpha) {
    const int alpha = byte(pixels[kAlphaChannel]);
    if (alpha == 0 || alpha == 255) continue;
    for (std::int64_t c = 0; c < kAlphaChannel; ++c)
      pixels[c] = float(std::min(255, 255 * byte(pixels[c]) / alpha)) / 255.0f;
  }
}

}  // namespace

Tensor lanczos_picture(Context& ctx, const Tensor& image, const blocks::GridSize& to,
                       bool is_cropped) {
  HostMemory memory(ctx);
  const blocks::GridSize from{image.size(1), image.size(2)};
  const std::int64_t channels = image.size(3),
                     count = checked_product({from.height, from.width, channels}, "the picture");
  const Tensor out = ctx.make_host({1, to.height, to.width, channels}, HEDDLE_F32);
  std::pmr::vector<float> pixels(std::size_t(count), &memory);
  read_to<float>(ctx, image.slice(0, 0, 1), pixels);
  if (from == to) {
    std::ranges::copy(pixels, out.data<float>());
    return out;
  }
  if (channels == kWithAlpha) premultiply(pixels);
  const auto whole = blocks::Source::of(pixels.data(), {1, from, channels});
  blocks::resample_lanczos(is_cropped ? blocks::centre_cropped(whole, to) : whole, to,
                           out.data<float>(), memory, [&] {
                             if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                           });
  if (channels == kWithAlpha) undo_premultiply(out.data<float>(), to.height * to.width);
  return out;
}

}  // namespace heddle::encoders
