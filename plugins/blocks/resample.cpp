#include "plugins/blocks/resample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <heddle/checked.hpp>
#include <numbers>
#include <vector>

#include "plugins/blocks/resample_taps.h"

namespace heddle::blocks {
namespace {

// The cells that each cell of a result is made of, along one axis: cell i of those from first[i] to
// first[i + 1]. Neither the cells of one nor those of all go back.
template <class Weight>
struct Axis {
  explicit Axis(std::int64_t to, std::pmr::memory_resource& memory)
      : first(&memory), cells(&memory), weights(&memory) {
    first.reserve(std::size_t(to) + 1);
    first.push_back(0);
  }
  void add(std::int64_t cell, Weight weight) {
    cells.push_back(cell);
    weights.push_back(weight);
  }
  void close() { first.push_back(cells.size()); }
  std::int64_t size() const { return std::int64_t(first.size()) - 1; }
  void reserve(std::size_t taps) {
    cells.reserve(taps);
    weights.reserve(taps);
  }

  std::pmr::vector<std::size_t> first;
  std::pmr::vector<std::int64_t> cells;
  std::pmr::vector<Weight> weights;
};

void add_nearest(Axis<float>& axis, std::int64_t i, std::int64_t from, float scale) {
  const auto cell = static_cast<std::int64_t>(std::floor(float((double(i) + 0.5) * scale)));
  axis.add(std::min(cell, from - 1), 1.0f);
}

void add_bilinear(Axis<float>& axis, std::int64_t i, std::int64_t from, float scale) {
  const float at = std::max(scale * (float(i) + 0.5f) - 0.5f, 0.0f);
  const std::int64_t low = std::min(static_cast<std::int64_t>(at), from - 1);
  const float weight = at - float(low);
  axis.add(low, 1.0f - weight);
  axis.add(std::min(low + 1, from - 1), weight);
}

void add_area(Axis<float>& axis, std::int64_t i, std::int64_t from, std::int64_t to) {
  const std::int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
  for (std::int64_t cell = begin; cell < end; ++cell) axis.add(cell, 1.0f / float(end - begin));
}

// Keys' cubic convolution with a = -0.75.
void add_bicubic(Axis<float>& axis, std::int64_t i, std::int64_t from, float scale) {
  constexpr float a = -0.75f;
  const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const float at = scale * (float(i) + 0.5f) - 0.5f;
  const float floor = std::floor(at), t = at - floor;
  const float weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  for (std::int64_t k = 0; k < 4; ++k)
    axis.add(std::clamp<std::int64_t>(static_cast<std::int64_t>(floor) + k - 1, 0, from - 1),
             weights[k]);
}

// Of all cells of a result, whatever the method: of Lanczos' 6 cells as wide as one of the result,
// or of those that are read, and a part of one more at either end.
std::uint64_t most_taps(std::int64_t from, std::int64_t to) {
  return 6 * std::uint64_t(std::max(from, to)) + 2 * std::uint64_t(to);
}

// Keys' cubic convolution with a = -0.5, between -2 and 2.
double smooth_cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

// For each cell of the result the cells that a filter between -radius and radius covers, where it
// is as wide as a cell of the result: add(cell, weight), close(). The weights of one add up to 1.
template <class Filter, class Add, class Close>
void cover(std::int64_t from, std::int64_t to, double radius, Filter&& filter,
           std::pmr::memory_resource& memory, Add&& add, Close&& close) {
  const double scale = double(from) / double(to), stretch = std::max(scale, 1.0);
  const double support = radius * stretch;
  std::pmr::vector<double> weights(&memory);
  weights.reserve(std::size_t(from));
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (double(i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(std::int64_t(centre - support + 0.5), 0);
    const auto end = std::min<std::int64_t>(std::int64_t(centre + support + 0.5), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t cell = begin; cell < end; ++cell) {
      weights.push_back(filter((double(cell) - centre + 0.5) / stretch));
      sum += weights.back();
    }
    for (std::int64_t cell = begin; cell < end; ++cell)
      add(cell, weights[std::size_t(cell - begin)] / sum);
    close();
  }
}

// A triangle, between -1 and 1.
double triangle(double x) { return std::max(1 - std::abs(x), 0.0); }

Axis<float> make_smooth_axis(std::int64_t from, std::int64_t to, bool is_cubic,
                             std::pmr::memory_resource& memory) {
  Axis<float> axis(to, memory);
  axis.reserve(most_taps(from, to));
  cover(
      from, to, is_cubic ? 2 : 1, is_cubic ? smooth_cubic : triangle, memory,
      [&](std::int64_t cell, double weight) { axis.add(cell, float(weight)); },
      [&] { axis.close(); });
  return axis;
}

Axis<float> make_axis(std::int64_t from, std::int64_t to, Resampling method,
                      std::pmr::memory_resource& memory) {
  const bool is_cubic = method == Resampling::bicubic_antialiased;
  if (is_cubic || method == Resampling::bilinear_antialiased)
    return make_smooth_axis(from, to, is_cubic, memory);
  const float scale = float(from) / float(to);
  Axis<float> axis(to, memory);
  axis.reserve(most_taps(from, to));
  for (std::int64_t i = 0; i < to; ++i) {
    switch (method) {
      case Resampling::nearest_exact:
        add_nearest(axis, i, from, scale);
        break;
      case Resampling::bilinear:
        add_bilinear(axis, i, from, scale);
        break;
      case Resampling::area:
        add_area(axis, i, from, to);
        break;
      case Resampling::bicubic:
      case Resampling::bicubic_antialiased:   // above
      case Resampling::bilinear_antialiased:  // above
        add_bicubic(axis, i, from, scale);
        break;
    }
    axis.close();
  }
  return axis;
}

// One row of cells, each of `inner` numbers, along its own axis.
template <class Number, class Weight, class Finish>
void resample_row(const Number* row, std::int64_t inner, const Axis<Weight>& axis, Number* out,
                  Finish&& finish) {
  for (std::int64_t i = 0; i < axis.size(); ++i)
    for (std::int64_t a = 0; a < inner; ++a) {
      Weight sum = 0;
      for (std::size_t k = axis.first[std::size_t(i)]; k < axis.first[std::size_t(i) + 1]; ++k)
        sum += axis.weights[k] * Weight(row[axis.cells[k] * inner + a]);
      *out++ = finish(sum);
    }
}

// Visits the rows that are read, in their order, and for each the rows of the result that it is a
// part of: read(y), then add(row of the result, weight) in the order in which a sum takes them.
template <class Weight, class Read, class Add>
void for_each_row(const Axis<Weight>& axis, Read&& read, Add&& add) {
  std::int64_t open = 0;  // the first row of the result that is not complete
  for (std::int64_t y = axis.cells.front(); open < axis.size(); ++y) {
    bool is_read = false;
    for (std::int64_t row = open; row < axis.size(); ++row) {
      const std::size_t begin = axis.first[std::size_t(row)],
                        end = axis.first[std::size_t(row) + 1];
      if (axis.cells[begin] > y) break;
      const auto cells = axis.cells.begin();
      std::size_t k = std::size_t(
          std::lower_bound(cells + std::ptrdiff_t(begin), cells + std::ptrdiff_t(end), y) - cells);
      for (; k < end && axis.cells[k] == y; ++k) {
        if (!is_read) read(y);
        is_read = true;
        add(row, axis.weights[k]);
      }
    }
    while (open < axis.size() && axis.cells[axis.first[std::size_t(open) + 1] - 1] <= y) ++open;
  }
}

// Pillow's fixed-point numbers: weights of 22 bits behind the point. Sums of bytes fit into 32
// bits, as they do there: the weights of one sign add up to less than 1.5.
constexpr int kBits = 22;
static_assert(1.5 * 255 * (1 << kBits) < 0x7fffffff);

double lanczos(double x) {
  const auto sinc = [](double y) {
    return y == 0 ? 1.0 : std::sin(y * std::numbers::pi) / (y * std::numbers::pi);
  };
  return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0;
}

Axis<std::int32_t> make_lanczos_axis(std::int64_t from, std::int64_t to,
                                     std::pmr::memory_resource& memory) {
  Axis<std::int32_t> axis(to, memory);
  axis.reserve(most_taps(from, to));
  cover(
      from, to, 3, lanczos, memory,
      [&](std::int64_t cell, double share) {
        const double weight = share * double(1 << kBits);
        axis.add(cell, std::int32_t(weight < 0 ? weight - 0.5 : weight + 0.5));
      },
      [&] { axis.close(); });
  return axis;
}

std::uint8_t to_byte(std::int32_t sum) {
  return std::uint8_t(std::clamp((sum + (1 << (kBits - 1))) >> kBits, 0, 255));
}

// What is no number is black, as when it is saved.
std::uint8_t quantised(float value) {
  return value > 0 ? std::uint8_t(std::min(255.0f * value, 255.0f)) : std::uint8_t{0};
}

}  // namespace

std::optional<Resampling> resampling_named(std::string_view name) {
  if (name == "nearest-exact") return Resampling::nearest_exact;
  if (name == "bilinear") return Resampling::bilinear;
  if (name == "area") return Resampling::area;
  if (name == "bicubic") return Resampling::bicubic;
  return std::nullopt;
}

std::vector<std::vector<Tap>> taps_along(std::int64_t from, std::int64_t to, Resampling method) {
  const Axis<float> axis = make_axis(from, to, method, *std::pmr::get_default_resource());
  std::vector<std::vector<Tap>> all(std::size_t(axis.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = axis.first[i]; k < axis.first[i + 1]; ++k)
      all[i].push_back({axis.cells[k], axis.weights[k]});
  return all;
}

std::vector<CellPair> pairs_along(std::int64_t from, std::int64_t to) {
  const float scale = float(from) / float(to);
  std::vector<CellPair> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const float at = std::max(scale * (float(i) + 0.5f) - 0.5f, 0.0f);
    const std::int64_t low = std::min(std::int64_t(at), from - 1);
    const float weight = at - float(low);
    const auto mean = [&](std::int64_t a, std::int64_t b) {
      return (1.0f - weight) * float(a) + weight * float(b);
    };
    const auto within = [&](std::int64_t cell) { return std::min(cell, from - 1); };
    const float place = mean(low, within(low + 1));
    const float after = mean(within(low + 1), within(low + 2));
    all.push_back({std::int64_t(place), std::int64_t(after), place - std::floor(place)});
  }
  return all;
}

std::int64_t rounded(double value) { return checked_round(value, "the size"); }

Source centre_cropped(const Source& from, const GridSize& to) {
  const double width = double(from.grids.size.width), height = double(from.grids.size.height);
  const double aspect = width / height, wanted = double(to.width) / double(to.height);
  // Of two columns none would be left where half of one is wanted.
  const auto half = [](double side, double kept) {
    return std::min(rounded((side - kept) / 2), (std::int64_t(side) - 1) / 2);
  };
  std::int64_t top = 0, left = 0;  // as much is cut off below and on the right
  if (aspect > wanted) left = half(width, width * (wanted / aspect));
  if (aspect < wanted) top = half(height, height * (aspect / wanted));
  Source part = from;
  part.first += top * from.row_step + left * from.grids.inner;
  part.grids.size = {from.grids.size.height - 2 * top, from.grids.size.width - 2 * left};
  return part;
}

void resample(const Source& from, const GridSize& to, Resampling method, float* out,
              std::pmr::memory_resource& memory, const BeforeRow& before_row) {
  const auto& [outer, size, inner] = from.grids;
  const Axis<float> columns = make_axis(size.width, to.width, method, memory);
  const Axis<float> rows = make_axis(size.height, to.height, method, memory);
  const std::int64_t width = to.width * inner;
  std::pmr::vector<float> wide(std::size_t(width), &memory);
  for (std::int64_t o = 0; o < outer; ++o, out += to.height * width) {
    std::fill_n(out, to.height * width, 0.0f);
    for_each_row(
        rows,
        [&, inner = inner](std::int64_t y) {
          if (before_row) before_row();
          resample_row(from.row(o, y), inner, columns, wide.data(), [](float x) { return x; });
        },
        [&](std::int64_t row, float weight) {
          float* const sums = out + row * width;
          for (std::int64_t i = 0; i < width; ++i) sums[i] += weight * wide[std::size_t(i)];
        });
  }
}

void resample_lanczos(const Source& from, const GridSize& to, float* out,
                      std::pmr::memory_resource& memory, const BeforeRow& before_row) {
  const auto& [outer, size, inner] = from.grids;
  // Pillow leaves an axis alone that keeps its size.
  const bool stretches = to.width != size.width, stacks = to.height != size.height;
  const Axis<std::int32_t> columns = make_lanczos_axis(size.width, to.width, memory);
  const Axis<std::int32_t> rows = make_lanczos_axis(size.height, to.height, memory);
  const std::int64_t width = to.width * inner;
  std::pmr::vector<std::uint8_t> bytes(std::size_t(size.width * inner), &memory);
  std::pmr::vector<std::uint8_t> wide(std::size_t(stretches ? width : 0), &memory);
  const std::uint8_t* const row = stretches ? wide.data() : bytes.data();
  const auto read = [&, inner = inner](std::int64_t o, std::int64_t y) {
    if (before_row) before_row();
    std::transform(from.row(o, y), from.row(o, y) + bytes.size(), bytes.begin(), quantised);
    if (stretches) resample_row(bytes.data(), inner, columns, wide.data(), to_byte);
  };
  const auto to_float = [](std::uint8_t byte) { return float(byte) / 255.0f; };
  for (std::int64_t o = 0; o < outer; ++o, out += to.height * width) {
    if (!stacks) {
      for (std::int64_t y = 0; y < to.height; ++y) {
        read(o, y);
        std::transform(row, row + width, out + y * width, to_float);
      }
      continue;
    }
    // Until all rows are read the result holds integers: the sums.
    std::fill_n(out, to.height * width, std::bit_cast<float>(std::int32_t{0}));
    for_each_row(
        rows, [&](std::int64_t y) { read(o, y); },
        [&](std::int64_t to_row, std::int32_t weight) {
          float* const sums = out + to_row * width;
          for (std::int64_t i = 0; i < width; ++i)
            sums[i] = std::bit_cast<float>(std::bit_cast<std::int32_t>(sums[i]) + weight * row[i]);
        });
    std::transform(out, out + to.height * width, out,
                   [&](float sum) { return to_float(to_byte(std::bit_cast<std::int32_t>(sum))); });
  }
}

std::uint64_t resampling_bytes(const Grids& from, const GridSize& to) {
  constexpr std::uint64_t kTap = sizeof(std::int64_t) + sizeof(float);
  const auto table = [&](std::int64_t before, std::int64_t after) {
    return kTap * std::uint64_t(most_taps(before, after)) +
           sizeof(std::size_t) * std::uint64_t(after + 1) +
           sizeof(double) * std::uint64_t(before);  // of one cell
  };
  constexpr std::uint64_t kPieces = 10, kAround = 64;  // what `memory` may want beside each
  return kPieces * kAround + table(from.size.width, to.width) + table(from.size.height, to.height) +
         std::uint64_t(from.inner) *
             (std::uint64_t(from.size.width) + sizeof(float) * std::uint64_t(to.width));
}

}  // namespace heddle::blocks
