#include <algorithm>
#include <cmath>
#include <numbers>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "moge_nodes.h"

namespace heddle::detection {
namespace {

using Floats3 = float[3];

// A tensor of a MOGE_GEOMETRY, by its field.
Tensor part_of(const Value& geometry, const char* field, std::size_t rank) {
  const Value value = geometry.is(HEDDLE_KIND_RECORD) ? geometry.field(field) : Value();
  if (!value.is(HEDDLE_KIND_TENSOR)) return {};
  const Tensor tensor = value.as<Tensor>();
  const bool is_vector = rank == 4, is_lens = std::string_view(field) == "intrinsics";
  if (tensor.rank() != rank || (is_vector && tensor.size(3) != 3) ||
      (is_lens && (tensor.size(0) < 1 || tensor.size(1) != 3 || tensor.size(2) != 3)))
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string("moge_geometry: its ") + field +
                                             " has another shape than MoGeInference makes.");
  return tensor;
}

[[noreturn]] void refuse_geometry(const char* lacks) {
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("moge_geometry: it has no ") + lacks +
                                           ". Link what MoGeInference makes.");
}

// Of ascending numbers the one at a share of the way, as torch.quantile() in f32.
float quantile(std::pmr::vector<float>& numbers, float share) {
  const float place = share * float(numbers.size() - 1), below = std::floor(place);
  const auto at = numbers.begin() + std::ptrdiff_t(below);
  std::nth_element(numbers.begin(), at, numbers.end());
  const float low = *at;
  if (place == below) return low;
  const float high = *std::min_element(at + 1, numbers.end());
  return low + (place - below) * (high - low);
}

// depth (pixels) -> 0, far or nothing, to 1, near.
void draw_nearness(std::span<const float> depth, float* to, std::pmr::memory_resource& memory) {
  static constexpr float kLeast = 1e-6f, kLow = 0.001f, kHigh = 0.999f;
  const auto is_seen = [](float d) { return std::isfinite(d) && d > 0; };
  const auto nearness = [](float d) { return 1 / std::max(d, kLeast); };
  std::pmr::vector<float> seen(&memory);
  for (const float d : depth)
    if (is_seen(d)) seen.push_back(nearness(d));
  std::fill_n(to, depth.size(), 0.0f);
  if (seen.empty()) return;
  const float low = quantile(seen, kLow), high = quantile(seen, kHigh),
              range = std::max(high - low, kLeast);
  for (std::size_t i = 0; i < depth.size(); ++i)
    if (is_seen(depth[i])) to[i] = std::clamp((nearness(depth[i]) - low) / range, 0.0f, 1.0f);
}

// Source: Mikhailov 2019, the polynomial approximation of Turbo.
void put_turbo(float x, float* to) {
  constexpr float kColours[3][6] = {
      {0.13572138f, 4.61539260f, -42.66032258f, 132.13108234f, -152.94239396f, 59.28637943f},
      {0.09140261f, 2.19418839f, 4.84296658f, -14.18503333f, 4.27729857f, 2.82956604f},
      {0.10667330f, 12.64194608f, -60.58204836f, 110.36276771f, -89.90310912f, 27.34824973f}};
  for (const auto& colour : kColours) {
    float power = 1, sum = 0;
    for (const float factor : colour) {
      sum += factor * power;
      power *= x;
    }
    *to++ = std::clamp(sum, 0.0f, 1.0f);
  }
}

void put_normal(const float* normal, bool is_opengl, float* to) {
  const float signs[] = {1, is_opengl ? -1.0f : 1.0f, -1};
  for (int axis = 0; axis < 3; ++axis)
    to[axis] = std::clamp(normal[axis] * signs[axis] * 0.5f + 0.5f, 0.0f, 1.0f);
}

// Normals of points (height, width, 3): the product of what lies between a point's neighbours below
// and above, and right and left. At an edge there is none, nor of what lies nowhere.
class PointNormals {
 public:
  PointNormals(const float* points, std::int64_t height, std::int64_t width)
      : points_(points), height_(height), width_(width) {}

  void put(std::int64_t y, std::int64_t x, float* to) const {
    constexpr float kLeastLength = 1e-12f;
    std::fill_n(to, 3, 0.0f);
    Floats3 down{}, across{};
    if (!is_there(y, x)) return;
    if (y > 0 && y + 1 < height_) difference(y + 1, x, y - 1, x, down);
    if (x > 0 && x + 1 < width_) difference(y, x + 1, y, x - 1, across);
    for (int a = 0; a < 3; ++a) {
      const int b = (a + 1) % 3, c = (a + 2) % 3;
      to[a] = down[b] * across[c] - down[c] * across[b];
    }
    const float length = std::max(std::hypot(to[0], to[1], to[2]), kLeastLength);
    for (int a = 0; a < 3; ++a) to[a] /= length;
  }

 private:
  const float* at(std::int64_t y, std::int64_t x) const { return points_ + 3 * (y * width_ + x); }
  bool is_there(std::int64_t y, std::int64_t x) const {
    return std::all_of(at(y, x), at(y, x) + 3, [](float number) { return std::isfinite(number); });
  }
  void difference(std::int64_t y, std::int64_t x, std::int64_t from_y, std::int64_t from_x,
                  Floats3& to) const {
    for (int a = 0; a < 3; ++a)
      to[a] = (is_there(y, x) ? at(y, x)[a] : 0) -
              (is_there(from_y, from_x) ? at(from_y, from_x)[a] : 0);
  }

  const float* points_;
  std::int64_t height_, width_;
};

void draw_depths(Context& ctx, const Tensor& depth, bool is_coloured, float* to) {
  HostMemory memory(ctx);
  const HostFloats all(ctx, depth);
  const auto pixels = std::size_t(depth.size(1) * depth.size(2));
  std::pmr::vector<float> near(pixels, &memory);
  for (std::size_t i = 0; i < std::size_t(depth.size(0)); ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    draw_nearness(all.elements().subspan(i * pixels, pixels), near.data(), memory);
    for (const float x : near) {
      if (is_coloured)
        put_turbo(x, to);
      else
        std::fill_n(to, 3, x);
      to += 3;
    }
  }
}

void draw_normals(Context& ctx, const Tensor& from, bool are_points, bool is_opengl, float* to) {
  const HostFloats all(ctx, from);
  const float* numbers = all.data();
  const std::int64_t height = from.size(1), width = from.size(2);
  for (std::int64_t i = 0; i < from.size(0); ++i, numbers += 3 * height * width) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const PointNormals normals(numbers, height, width);
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x, to += 3) {
        Floats3 normal{};
        if (are_points) normals.put(y, x, normal);
        put_normal(are_points ? normal : numbers + 3 * (y * width + x), is_opengl, to);
      }
  }
}

}  // namespace

void MogeRender::execute(Context& ctx) {
  const Value given = ctx[geometry];
  const std::string kind = ctx[output];
  const bool is_normal = kind.starts_with("normal_"), is_mask = kind == "mask";
  Tensor from = part_of(given,
                        is_normal ? "normal"
                        : is_mask ? "mask"
                                  : "depth",
                        is_normal ? 4 : 3);
  const bool are_points = is_normal && !from;
  if (are_points) from = part_of(given, "points", 4);
  if (!from) refuse_geometry(is_normal ? "normals and no points" : is_mask ? "mask" : "depths");
  const Shape shape{from.size(0), from.size(1), from.size(2), 3};
  checked_product({shape[0], shape[1], shape[2], 3}, "the pictures");
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  float* to = all.data<float>();
  if (is_normal) {
    draw_normals(ctx, from, are_points, kind == "normal_opengl", to);
  } else if (!is_mask) {
    draw_depths(ctx, from, kind == "depth_colored", to);
  } else {
    HostMemory memory(ctx);
    std::pmr::vector<std::uint8_t> mask(std::size_t(shape[1] * shape[2]), &memory);
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      read_to<std::uint8_t>(ctx, from.slice(0, i, i + 1), mask);
      for (const std::uint8_t seen : mask) to = std::fill_n(to, 3, seen != 0 ? 1.0f : 0.0f);
    }
  }
  ctx[out] = all;
}

void MogeRender::infer(Infer& question) {
  const auto shape = question.shape(geometry, "depth");
  if (!shape || shape->size() != 3) return;
  question.out(out, "", HEDDLE_F32, {(*shape)[0], (*shape)[1], (*shape)[2], 3});
  const double pixels = double((*shape)[1]) * double((*shape)[2]);
  question.cost(40 * pixels * double((*shape)[0]), 16 * pixels * double((*shape)[0]));
  question.host_scratch(std::uint64_t(sizeof(float) * 4 * pixels));
}

void MogeGeometryToFov::execute(Context& ctx) {
  const Value given = ctx[geometry];
  const Tensor lens = part_of(given, "intrinsics", 3), depth = part_of(given, "depth", 3);
  if (!lens || !depth) refuse_geometry("camera ('intrinsics')");
  const std::vector<float> numbers = ctx.read<float>(lens.slice(0, 0, 1));
  const double fx = numbers[0], fy = numbers[4], across = 0.5 / fx, down = 0.5 / fy;
  const std::string which = ctx[axis];
  const double slope = which == "horizontal" ? across
                       : which == "vertical" ? down
                                             : std::hypot(across, down),
               angle = 2 * std::atan(slope);
  ctx[fov] = ctx[unit] == "radians" ? angle : angle * 180 / std::numbers::pi;
  ctx[focal] = fy * double(depth.size(1));
}

}  // namespace heddle::detection
