#include "latent_operation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "plugins/blocks/resample.h"

namespace heddle::samplers {
namespace {

struct Cells {
  std::size_t items, channels, cells;
  explicit Cells(std::span<const float> latent, const Shape& shape)
      : items(std::size_t(shape[0])),
        channels(std::size_t(shape[1])),
        cells(latent.size() / items / channels) {}
  std::size_t at(std::size_t item, std::size_t channel, std::size_t cell) const {
    return (item * channels + channel) * cells + cell;
  }
};

// Lengths over channels, (item, cell), each with `little` more.
std::pmr::vector<double> lengths_of(std::span<const float> latent, const Cells& in, double little,
                                    std::pmr::memory_resource& memory) {
  std::pmr::vector<double> lengths(in.items * in.cells, &memory);
  for (std::size_t item = 0; item < in.items; ++item) {
    for (std::size_t cell = 0; cell < in.cells; ++cell) {
      double squares = 0.0;
      for (std::size_t c = 0; c < in.channels; ++c) {
        const double value = latent[in.at(item, c, cell)];
        squares += value * value;
      }
      lengths[item * in.cells + cell] = std::sqrt(squares) + little;
    }
  }
  return lengths;
}

void tonemap_reinhard(std::span<float> latent, const Shape& shape, double multiplier,
                      std::pmr::memory_resource& memory) {
  const Cells in(latent, shape);
  const std::pmr::vector<double> lengths = lengths_of(latent, in, 1e-10, memory);
  for (std::size_t item = 0; item < in.items; ++item) {
    const std::span<const double> own(lengths.data() + item * in.cells, in.cells);
    double sum = 0.0, squares = 0.0;
    for (const double length : own) sum += length;
    const double mean = sum / double(in.cells);
    for (const double length : own) squares += (length - mean) * (length - mean);
    const double spread = in.cells > 1 ? std::sqrt(squares / double(in.cells - 1)) : 0.0;
    const double top = (spread * 5.0 + mean) * multiplier;
    for (std::size_t cell = 0; cell < in.cells; ++cell) {
      // top l / (l + 1) of l = length / top, over the length.
      const double factor = top == 0.0 ? 0.0 : 1.0 / (own[cell] / top + 1.0);
      for (std::size_t c = 0; c < in.channels; ++c) {
        float& value = latent[in.at(item, c, cell)];
        value = float(value * factor);
      }
    }
  }
}

// A Gaussian of (2 r + 1) squared weights that spans -1 to 1, times -10 alpha, its middle changed
// so that all add up to 1.
std::pmr::vector<double> sharpening_kernel(std::int64_t radius, double sigma, double alpha,
                                           std::pmr::memory_resource& memory) {
  const std::int64_t side = 2 * radius + 1;
  std::pmr::vector<double> kernel(std::size_t(side * side), &memory);
  double sum = 0.0;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      const double dy = double(y - radius) / double(radius),
                   dx = double(x - radius) / double(radius);
      sum += kernel[std::size_t(y * side + x)] =
          std::exp(-(dx * dx + dy * dy) / (2.0 * sigma * sigma));
    }
  }
  for (double& weight : kernel) weight *= -10.0 * alpha / sum;
  kernel[kernel.size() / 2] += 10.0 * alpha + 1.0;
  return kernel;
}

std::int64_t reflected(std::int64_t at, std::int64_t side) {
  if (at < 0) return -at;
  return at >= side ? 2 * side - 2 - at : at;
}

void sharpen(std::span<float> latent, const Shape& shape, const PatchNumbers& numbers,
             std::pmr::memory_resource& memory) {
  const auto radius = std::int64_t(numbers["sharpen_radius"]);
  const std::int64_t height = shape[shape.size() - 2], width = shape.back();
  if (radius < 1 || radius >= height || radius >= width)
    throw std::invalid_argument("sharpen_radius is " + std::to_string(radius) + " and the latent " +
                                std::to_string(width) + " x " + std::to_string(height) +
                                " cells. Give a radius below both sides.");
  const Cells in(latent, shape);
  const std::pmr::vector<double> lengths = lengths_of(latent, in, 1e-6, memory);
  const std::pmr::vector<double> kernel =
      sharpening_kernel(radius, numbers["sigma"], numbers["alpha"], memory);
  const std::int64_t side = 2 * radius + 1;
  std::pmr::vector<double> plane(std::size_t(height * width), &memory);
  const std::size_t planes = in.cells / plane.size();
  for (std::size_t p = 0; p < in.items * in.channels * planes; ++p) {
    const std::size_t item = p / (in.channels * planes), begin = p % planes * plane.size();
    float* const values = latent.data() + p * plane.size();
    const double* const own = lengths.data() + item * in.cells + begin;
    for (std::size_t i = 0; i < plane.size(); ++i) plane[i] = values[i] / own[i];
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        double sum = 0.0;
        for (std::int64_t ky = 0; ky < side; ++ky)
          for (std::int64_t kx = 0; kx < side; ++kx)
            sum += kernel[std::size_t(ky * side + kx)] *
                   plane[std::size_t(reflected(y + ky - radius, height) * width +
                                     reflected(x + kx - radius, width))];
        values[y * width + x] = float(sum * own[y * width + x]);
      }
    }
  }
}

void blend(std::span<float> latent, const Shape& shape, const PatchNumbers& numbers,
           std::pmr::memory_resource& memory) {
  const Shape from = numbers.reference.shape();
  if (from.size() != shape.size() ||
      !std::equal(from.begin() + 1, from.end() - 2, shape.begin() + 1, shape.end() - 2))
    throw std::invalid_argument(
        "the reference has other channels or frames than the latent. Give "
        "latents of the same kind.");
  const blocks::GridSize to{shape[shape.size() - 2], shape.back()};
  const std::int64_t planes = numbers.reference.count() / (from[from.size() - 2] * from.back());
  std::pmr::vector<float> fitted(std::size_t(planes * to.height * to.width), &memory);
  blocks::resample(blocks::Source::of(numbers.reference.data<float>(),
                                      {planes, {from[from.size() - 2], from.back()}, 1}),
                   to, blocks::resampling_named("nearest-exact").value(), fitted.data(), memory);
  const auto part = float(numbers["strength"]);
  for (std::size_t i = 0; i < latent.size(); ++i)
    latent[i] += (fitted[i % fitted.size()] - latent[i]) * part;
}

}  // namespace

void apply_latent_operation(std::span<float> latent, const Shape& shape,
                            const PatchNumbers& operation, std::pmr::memory_resource& memory) {
  if (operation.operation == "tonemap_reinhard")
    return tonemap_reinhard(latent, shape, operation["multiplier"], memory);
  if (operation.operation == "sharpen") return sharpen(latent, shape, operation, memory);
  if (operation.operation == "blend") return blend(latent, shape, operation, memory);
  throw std::invalid_argument("there is no latent operation '" + operation.operation + "'");
}

}  // namespace heddle::samplers
