#include "moge_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <heddle/checked.hpp>

#include "moge_calls.h"
#include "moge_camera.h"

namespace heddle::detection {
namespace {

using blocks::GridSize;
constexpr float kNowhere = std::numeric_limits<float>::infinity();

// The tensors of a MOGE_GEOMETRY, in host memory.
struct Geometry {
  Geometry(Context& ctx, std::int64_t count, const GridSize& size, bool has_normal) {
    const auto [height, width] = size;
    points = ctx.make_host({count, height, width, 3}, HEDDLE_F32);
    depth = ctx.make_host({count, height, width}, HEDDLE_F32);
    intrinsics = ctx.make_host({count, 3, 3}, HEDDLE_F32);
    mask = ctx.make_host({count, height, width}, HEDDLE_U8);
    if (has_normal) normal = ctx.make_host({count, height, width, 3}, HEDDLE_F32);
  }
  Tensor points, depth, intrinsics, mask, normal;
};

// Where the tensors of one picture begin.
struct OneGeometry {
  OneGeometry(const Geometry& all, std::int64_t i, std::int64_t pixels)
      : points(all.points.data<float>() + 3 * i * pixels),
        depth(all.depth.data<float>() + i * pixels),
        intrinsics(all.intrinsics.data<float>() + 9 * i),
        mask(all.mask.data<std::uint8_t>() + i * pixels),
        normal(all.normal ? all.normal.data<float>() + 3 * i * pixels : nullptr) {}
  float *points, *depth, *intrinsics;
  std::uint8_t* mask;
  float* normal;
};

struct GeometryJob {
  std::optional<double> fov;  // degrees
  bool projects, masks;
};

// Puts one picture's geometry together.
class MogePicture {
 public:
  MogePicture(const MogeModel& model, const GeometryJob& job, const GridSize& size,
              const OneGeometry& to)
      : model_(model), job_(job), size_(size), pixels_(size.height * size.width), to_(to) {}

  // scale: meters of a unit.
  void put(MogeCalls& calls, const MogeMade& made, std::int64_t i, std::int64_t of_one,
           MogeNumbers& scratch) {
    calls.enlarge(made.mask.data() + i * of_one, 1, scratch.data());
    const float least = model_.version == 1 ? 0.5f : 0.0f;
    for (std::int64_t p = 0; p < pixels_; ++p)
      to_.mask[p] = scratch[std::size_t(p)] > least ? 1 : 0;
    calls.enlarge(made.points.data() + 3 * i * of_one, 3, to_.points);
    spread();
    const MogeCamera camera = found(calls.memory());
    place(camera, made.scale.empty() ? 1.0f : std::exp(made.scale[std::size_t(i)]));
    if (to_.normal != nullptr) {
      calls.enlarge(made.normal.data() + 3 * i * of_one, 3, to_.normal);
      put_normals();
    }
  }

 private:
  // From x and y over depth and its logarithm to points.
  void spread() {
    for (float* p = to_.points; p != to_.points + 3 * pixels_; p += 3) {
      p[2] = std::exp(p[2]);
      p[0] *= p[2];
      p[1] *= p[2];
    }
  }

  MogeCamera found(std::pmr::memory_resource& memory) const {
    constexpr double kUsual = 60;  // degrees
    const auto by = [&](std::optional<double> fov) {
      return camera_of(to_.points, to_.mask, size_,
                       fov ? std::optional(focal_of_fov(*fov, size_)) : std::nullopt, memory);
    };
    MogeCamera camera = by(job_.fov);
    if (!job_.fov && !(std::isfinite(camera.focal) && camera.focal > 0)) camera = by(kUsual);
    if (std::isfinite(camera.shift)) return camera;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "moge_model: what it predicts of a picture is not finite. Its file is damaged, or "
                "16 bits are too few for it: choose a wider type with --compute.");
  }

  void place(const MogeCamera& camera, float scale) {
    const double focal = focal_of_height(camera.focal, size_);
    const auto fy = float(focal), fx = float(focal * double(size_.height) / double(size_.width));
    const float lens[] = {fx, 0, 0.5f, 0, fy, 0.5f, 0, 0, 1};
    std::ranges::copy(lens, to_.intrinsics);
    const auto shift = float(camera.shift);
    for (std::int64_t y = 0; y < size_.height; ++y)
      for (std::int64_t x = 0; x < size_.width; ++x) {
        const std::int64_t at = y * size_.width + x;
        float* const point = to_.points + 3 * at;
        const float depth = point[2] + shift;
        point[2] = depth;
        if (model_.version != 1 && !(depth > 0)) to_.mask[at] = 0;
        if (job_.projects) {
          point[0] = ((float(x) + 0.5f) / float(size_.width) - 0.5f) / fx * depth;
          point[1] = ((float(y) + 0.5f) / float(size_.height) - 0.5f) / fy * depth;
        }
        const bool is_hidden = job_.masks && to_.mask[at] == 0;
        for (int axis = 0; axis < 3; ++axis)
          point[axis] = is_hidden ? kNowhere : point[axis] * scale;
        to_.depth[at] = is_hidden ? kNowhere : depth * scale;
      }
  }

  void put_normals() {
    constexpr float kLeastLength = 1e-12f;
    for (std::int64_t p = 0; p < pixels_; ++p) {
      float* const normal = to_.normal + 3 * p;
      const float length = std::max(std::hypot(normal[0], normal[1], normal[2]), kLeastLength);
      const bool is_hidden = job_.masks && to_.mask[p] == 0;
      for (int axis = 0; axis < 3; ++axis) normal[axis] = is_hidden ? 0 : normal[axis] / length;
    }
  }

  const MogeModel& model_;
  const GeometryJob& job_;
  const GridSize size_;
  const std::int64_t pixels_;
  const OneGeometry to_;
};

GridSize looked_at(const Shape& shape) {
  if (shape.size() != 4 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || shape[3] < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: MoGe sees pictures (batch, height, width, channels) of three channels or "
                "more, one at least");
  checked_product({shape[0], shape[1], shape[2], 3, std::int64_t(sizeof(float))}, "the points");
  return {shape[1], shape[2]};
}

}  // namespace

void MogeInference::execute(Context& ctx) {
  const MogeModel asked(ctx[model]);
  const Tensor pictures = ctx[image];
  const GridSize size = looked_at(pictures.shape());
  const std::int64_t count = pictures.size(0), step = std::min(ctx[batch], count),
                     pixels = size.height * size.width;
  const MogeModel::Sizes sizes = asked.sizes(size, ctx[level]);
  const double degrees = ctx[fov];
  const GeometryJob job{degrees > 0 ? std::optional(degrees) : std::nullopt, ctx[projects],
                        ctx[masks]};
  const Geometry all(ctx, count, size, asked.has_normal);
  MogeCalls calls(ctx, asked, sizes);
  MogeNumbers scratch(std::size_t(pixels), &calls.memory());
  const std::int64_t of_one = sizes.made.height * sizes.made.width;
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(begin + step, count);
    const MogeMade made = calls.look(pictures.slice(0, begin, end));
    for (std::int64_t i = begin; i < end; ++i) {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      MogePicture(asked, job, size, OneGeometry(all, i, pixels))
          .put(calls, made, i - begin, of_one, scratch);
    }
    ctx.progress(double(end) / double(count), "pictures");
  }
  Record record;
  record.set("points", value_of(all.points))
      .set("depth", value_of(all.depth))
      .set("intrinsics", value_of(all.intrinsics))
      .set("mask", value_of(all.mask));
  if (all.normal) record.set("normal", value_of(all.normal));
  ctx[geometry] = record.set("image", value_of(pictures)).value();
}

void MogeInference::infer(Infer& question) {
  const auto given = question[model];
  const auto shape = question.shape(image);
  if (!given || !shape) return;
  const MogeModel asked(*given);
  const GridSize size = looked_at(*shape);
  const std::int64_t count = (*shape)[0];
  const auto [height, width] = size;
  question.out(geometry, "points", HEDDLE_F32, {count, height, width, 3});
  question.out(geometry, "depth", HEDDLE_F32, {count, height, width});
  question.out(geometry, "intrinsics", HEDDLE_F32, {count, 3, 3});
  question.out(geometry, "mask", HEDDLE_U8, {count, height, width});
  if (asked.has_normal) question.out(geometry, "normal", HEDDLE_F32, {count, height, width, 3});
  question.out(geometry, "image", HEDDLE_F32, *shape);
  const auto at = question[level], of_call = question[batch];
  if (!at || !of_call) return;
  const MogeModel::Sizes sizes = asked.sizes(size, *at);
  const std::int64_t step = std::clamp<std::int64_t>(*of_call, 1, count);
  for (std::int64_t begin = 0; begin < count; begin += step)
    question.call(asked.model, {{asked.shapes(sizes, std::min(step, count - begin)), {}}});
  const auto cells = [](const GridSize& grid) { return double(grid.height) * double(grid.width); };
  const double made = cells(sizes.made) * double(step), whole = cells(size),
               seen = cells(sizes.squares) * double(asked.patch * asked.patch) * double(step);
  const double numbers = 7 * made + 3 * seen + 3 * cells(sizes.inner) + 8 * whole;
  question.cost(60 * whole * double(count), 4 * 12 * whole * double(count));
  question.host_scratch(std::uint64_t(sizeof(float) * numbers));
}

}  // namespace heddle::detection
