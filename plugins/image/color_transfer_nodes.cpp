#include "plugins/image/color_transfer_nodes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/lab.h"

namespace heddle::image {
namespace {

using Square = std::array<Colour, 3>;
constexpr double kLeastSpread = 1e-6;

// Mean and covariance of colours.
struct Spread {
  Colour mean{};
  Square covariance{};
};

Colour lab_at(const Pixels& pixels, std::int64_t frame, std::int64_t n) {
  const float* p = pixels.row(frame, 0) + n * pixels.extent().channels;
  return lab_of_rgb({p[0], p[1], p[2]});
}

// Of frames [begin, end): the mean of the frames' means, and of what differs from it.
Spread spread_of(const Pixels& pixels, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = pixels.extent().height * pixels.extent().width;
  const double count = double(size) * double(end - begin);
  Spread spread;
  for (std::int64_t frame = begin; frame < end; ++frame)
    for (std::int64_t n = 0; n < size; ++n) {
      const Colour lab = lab_at(pixels, frame, n);
      for (std::size_t c = 0; c < 3; ++c) spread.mean[c] += lab[c] / count;
    }
  for (std::int64_t frame = begin; frame < end; ++frame)
    for (std::int64_t n = 0; n < size; ++n) {
      const Colour lab = lab_at(pixels, frame, n);
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t c = 0; c < 3; ++c)
          spread.covariance[r][c] += (lab[r] - spread.mean[r]) * (lab[c] - spread.mean[c]) / count;
    }
  return spread;
}

Square times(const Square& a, const Square& b) {
  Square out{};
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t k = 0; k < 3; ++k) out[r][c] += a[r][k] * b[k][c];
  return out;
}

// f of a symmetric matrix, by f of its eigenvalues: Jacobi's rotations.
template <class F>
Square applied(Square a, F f) {
  constexpr int kSweeps = 30;
  Square v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t p = 0; p < 2; ++p)
      for (std::size_t q = p + 1; q < 3; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        Square turn{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
        turn[p][p] = turn[q][q] = c;
        turn[p][q] = s;
        turn[q][p] = -s;
        Square back = turn;
        std::swap(back[p][q], back[q][p]);
        a = times(times(back, a), turn);
        v = times(v, turn);
      }
  Square out{};
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t c = 0; c < 3; ++c) out[r][c] += v[r][k] * f(a[k][k]) * v[c][k];
  return out;
}

// lab -> matrix (lab - from) + to.
struct Affine {
  Square matrix{};
  Colour from{}, to{};

  Colour operator()(const Colour& lab) const {
    Colour out = to;
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t c = 0; c < 3; ++c) out[r] += matrix[r][c] * (lab[c] - from[c]);
    return out;
  }
};

Affine by_spread(const Spread& from, const Spread& to) {
  Affine map{{}, from.mean, to.mean};
  for (std::size_t c = 0; c < 3; ++c) {
    const auto width = [&](const Spread& s) {
      return std::max(std::sqrt(s.covariance[c][c]), kLeastSpread);
    };
    map.matrix[c][c] = width(to) / width(from);
  }
  return map;
}

// The linear map of Monge and Kantorovich between two normal distributions.
Affine by_covariance(const Spread& from, const Spread& to) {
  const auto width = [](double square) {
    return std::max(std::sqrt(std::max(square, 0.0)), kLeastSpread);
  };
  const Square half = applied(from.covariance, width);
  const Square inverse = applied(from.covariance, [&](double x) { return 1 / width(x); });
  const Square middle = applied(times(times(half, to.covariance), half),
                                [](double x) { return std::sqrt(std::max(x, 0.0)); });
  return {times(times(inverse, middle), inverse), from.mean, to.mean};
}

// For each channel, which level becomes which.
using Table = std::vector<std::array<float, 256>>;

std::size_t bin_of(float x) {
  const float scaled = x * 255.0f;
  return scaled > 0 ? std::size_t(std::min(scaled, 255.0f)) : 0;
}

std::vector<std::array<double, 256>> shares_of(const Pixels& pixels, std::int64_t begin,
                                               std::int64_t end) {
  const Extent& e = pixels.extent();
  std::vector<std::array<double, 256>> shares(std::size_t(e.channels));
  for (std::int64_t frame = begin; frame < end; ++frame)
    for (std::int64_t n = 0; n < e.picture(); ++n)
      ++shares[std::size_t(n % e.channels)][bin_of(pixels.row(frame, 0)[n])];
  for (auto& share : shares) {
    for (std::size_t i = 1; i < share.size(); ++i) share[i] += share[i - 1];
    // As a division of f32, because equal shares have to be found equal.
    const auto all = float(share.back());
    for (double& value : share) value = double(float(value) / all);
  }
  return shares;
}

Table table_of(const std::vector<std::array<double, 256>>& from,
               const std::vector<std::array<double, 256>>& to) {
  Table table(from.size());
  for (std::size_t c = 0; c < from.size(); ++c)
    for (std::size_t i = 0; i < 256; ++i) {
      const auto found = std::lower_bound(to[c].begin(), to[c].end(), from[c][i]);
      table[c][i] = float(std::min<std::ptrdiff_t>(found - to[c].begin(), 255)) / 255.0f;
    }
  return table;
}

// Frames [begin, end) that a frame's statistics are of.
struct Frames {
  std::int64_t begin, end;
};

// Which frames of the target and of the reference belong to a frame.
struct FrameChoice {
  std::string how;
  std::int64_t index, targets, references;

  bool is_one() const { return how != "per_frame"; }
  Frames target(std::int64_t frame) const {
    if (how == "uniform") return {0, targets};
    const std::int64_t at = how == "target_frame" ? std::min(index, targets - 1) : frame;
    return {at, at + 1};
  }
  Frames reference(std::int64_t frame) const {
    if (is_one() || references == 1) return {0, references};
    const std::int64_t at = std::min(frame, references - 1);
    return {at, at + 1};
  }
};

struct Transfer {
  const Pixels &target, &reference;
  const FrameChoice& matching;
  double strength;

  void lab(Context& ctx, const Canvas& to, bool by_width) const {
    const Extent& e = target.extent();
    std::optional<Affine> map;
    for (std::int64_t frame = 0; frame < e.count; ++frame) {
      check_cancelled(ctx);
      if (!map || !matching.is_one()) {
        const Frames t = matching.target(frame), r = matching.reference(frame);
        const Spread from = spread_of(target, t.begin, t.end),
                     wanted = spread_of(reference, r.begin, r.end);
        map = by_width ? by_spread(from, wanted) : by_covariance(from, wanted);
      }
      for (std::int64_t n = 0; n < e.height * e.width; ++n) {
        Colour lab = lab_at(target, frame, n);
        const Colour changed = (*map)(lab);
        for (std::size_t c = 0; c < 3; ++c) lab[c] += (changed[c] - lab[c]) * strength;
        const Colour rgb = rgb_of_lab(lab);
        float* out = to.row(frame, 0) + n * e.channels;
        for (std::size_t c = 0; c < 3; ++c) out[c] = float(rgb[c]);
      }
    }
  }

  void histogram(Context& ctx, const Canvas& to) const {
    const Extent& e = target.extent();
    Table table;
    const auto by = float(strength);
    for (std::int64_t frame = 0; frame < e.count; ++frame) {
      check_cancelled(ctx);
      if (table.empty() || !matching.is_one()) {
        // Here a single reference is one frame for each, too.
        const Frames t = matching.target(frame), r = matching.reference(frame);
        table = table_of(shares_of(target, t.begin, t.end), shares_of(reference, r.begin, r.end));
      }
      for (std::int64_t n = 0; n < e.picture(); ++n) {
        const float x = target.row(frame, 0)[n],
                    matched = table[std::size_t(n % e.channels)][bin_of(x)];
        const float mixed = by == 1.0f  ? matched
                            : by < 0.5f ? x + by * (matched - x)
                                        : matched - (matched - x) * (1.0f - by);
        to.row(frame, 0)[n] = std::clamp(mixed, 0.0f, 1.0f);
      }
    }
  }
};

}  // namespace

void ColorTransfer::execute(Context& ctx) {
  const Pixels target = Pixels::image(ctx, ctx[image_target], "image_target"),
               reference = Pixels::image(ctx, ctx[image_ref], "image_ref");
  const std::string how = ctx[method];
  const double by = ctx[strength];
  const blocks::ChosenVariant statistics(ctx, source_stats);
  if (by == 0) {
    ctx[out] = ctx[image_target];
    return;
  }
  const std::int64_t channels = target.extent().channels;
  if (channels != reference.extent().channels || (how != "histogram" && channels != 3))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image_target has " + std::to_string(channels) + " channels, image_ref " +
                    std::to_string(reference.extent().channels) +
                    ". Give pictures of 3 channels, or for histogram of the same.");
  const FrameChoice matching{
      statistics.key(), statistics.key() == "target_frame" ? statistics.whole("target_index") : 0,
      target.extent().count, reference.extent().count};
  const Canvas to = Canvas::image(ctx, target.extent());
  const Transfer transfer{target, reference, matching, by};
  if (how == "histogram")
    transfer.histogram(ctx, to);
  else
    transfer.lab(ctx, to, how == "reinhard_lab");
  ctx[out] = to.tensor();
}
void ColorTransfer::infer(Infer& question) { infer_like(question, image_target, out); }

}  // namespace heddle::image
