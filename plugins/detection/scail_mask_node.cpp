#include "scail_mask_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "chosen_things.h"
#include "plugins/blocks/object_tracks.h"

namespace heddle::detection {
namespace {

using Colour = std::array<float, 3>;
constexpr Colour kWhite{1, 1, 1}, kBlack{0, 0, 0};
// Blue, red, green, magenta, cyan, yellow, and again.
constexpr Colour kPalette[] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 1, 1}, {1, 1, 0}};

bool is_set(const std::uint8_t* bits, std::int64_t pixel) {
  return ((bits[pixel / 8] >> (pixel % 8)) & 1) != 0;
}

// The first frame in which a thing is seen, and there the mean column and the pixels of it.
struct Appearance {
  std::int64_t frame, area;
  double column;
};
Appearance appearance_of(const blocks::ObjectTracks& told, std::int64_t thing) {
  const std::int64_t rows = told.rows(), columns = told.columns();
  for (std::int64_t frame = 0; frame < told.frames; ++frame) {
    const std::uint8_t* const bits = told.mask(frame, thing);
    std::int64_t area = 0, sum = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i)
      if (is_set(bits, i)) ++area, sum += i % columns;
    if (area > 0) return {frame, area, double(sum) / double(area)};
  }
  return {told.frames, 0, 0};
}

// Things in the order of their colours.
std::vector<std::int64_t> ordered_things(const blocks::ObjectTracks& told,
                                         const std::string& order) {
  std::vector<std::int64_t> things(std::size_t(told.things()));
  std::iota(things.begin(), things.end(), 0);
  if (order == "none") return things;
  std::vector<Appearance> seen;
  for (const std::int64_t thing : things) seen.push_back(appearance_of(told, thing));
  const auto key = [&](std::int64_t thing) {
    const Appearance& at = seen[std::size_t(thing)];
    return std::pair(at.frame, order == "area" ? -double(at.area) : at.column);
  };
  std::ranges::stable_sort(things, {}, key);
  return things;
}

// Where numbers of a side are read for another side: ComfyUI's nearest, of PyTorch.
std::vector<std::int64_t> nearest_places(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> places;
  const float scale = float(from) / float(to);
  for (std::int64_t i = 0; i < to; ++i)
    places.push_back(std::min(std::int64_t(std::floor(float(i) * scale)), from - 1));
  return places;
}

Tensor filled_pictures(Context& ctx, std::int64_t count, std::int64_t height, std::int64_t width,
                       const Colour& colour) {
  const Tensor made = ctx.make_host({count, height, width, 3}, HEDDLE_F32);
  float* to = made.data<float>();
  const std::int64_t pixels = checked_product({count, height, width}, "the pictures");
  for (std::int64_t i = 0; i < pixels; ++i) to = std::copy_n(colour.data(), 3, to);
  return made;
}

// Of things that meet in a pixel the first one is seen.
Tensor painted_things(Context& ctx, const blocks::ObjectTracks& told, const Colour& ground) {
  const Tensor made = filled_pictures(ctx, told.frames, told.height, told.width, ground);
  const std::vector<std::int64_t> ordered = ordered_things(told, ctx[Scail2ColoredMask::order]);
  std::vector<std::int64_t> chosen;
  for (const std::int64_t k : chosen_things(ctx[Scail2ColoredMask::things], told.things()))
    chosen.push_back(ordered[std::size_t(k)]);
  if (chosen.empty()) return made;
  const std::vector<std::int64_t> rows = nearest_places(told.rows(), told.height),
                                  columns = nearest_places(told.columns(), told.width);
  float* to = made.data<float>();
  for (std::int64_t frame = 0; frame < told.frames; ++frame) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    for (const std::int64_t row : rows)
      for (const std::int64_t column : columns) {
        const std::int64_t pixel = row * told.columns() + column;
        const auto seen = std::ranges::find_if(
            chosen, [&](std::int64_t thing) { return is_set(told.mask(frame, thing), pixel); });
        if (seen != chosen.end())
          std::copy_n(kPalette[std::size_t(seen - chosen.begin()) % std::size(kPalette)].data(), 3,
                      to);
        to += 3;
      }
  }
  return made;
}

// A mask (B, H, W) or (H, W) as one thing.
Tensor painted_mask(Context& ctx, const Tensor& mask, const Colour& ground) {
  constexpr float kHalf = 0.5f;
  Shape shape = mask.shape();
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 3 || mask.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "ref_track_data: a mask is (batch, height, width), this has " +
                    std::to_string(mask.rank()) + " axes and " + std::to_string(mask.count()) +
                    " numbers. Link a MASK, or what SAM3_VideoTrack makes.");
  const HostFloats numbers(ctx, mask);
  const Tensor made = filled_pictures(ctx, shape[0], shape[1], shape[2], ground);
  float* to = made.data<float>();
  for (std::int64_t i = 0; i < mask.count(); ++i, to += 3)
    if (numbers.data()[i] > kHalf) std::copy_n(kPalette[0].data(), 3, to);
  return made;
}

// Height and width of the pictures whose things are told of, and how many pictures these are.
std::optional<Shape> told_pictures(const Infer& question, const Input<Value>& port) {
  const Value size = question.part(port, "orig_size"), count = question.part(port, "n_frames");
  if (!size.is(HEDDLE_KIND_LIST) || size.count() != 2 || !count.is(HEDDLE_KIND_INT)) return {};
  return Shape{count.as<std::int64_t>(), size.item(0).as<std::int64_t>(),
               size.item(1).as<std::int64_t>(), 3};
}

}  // namespace

void Scail2ColoredMask::execute(Context& ctx) {
  const Colour video_ground = ctx[replaces] ? kWhite : kBlack,
               picture_ground = ctx[replaces] ? kBlack : kWhite;
  const blocks::ObjectTracks told =
      blocks::object_tracks_of(ctx, ctx[tracks], "driving_track_data");
  ctx[painted] = painted_things(ctx, told, video_ground);
  if (!ctx.has(reference)) {
    ctx[painted_reference] = filled_pictures(ctx, 1, told.height, told.width, picture_ground);
    return;
  }
  const Value given = ctx[reference];
  ctx[painted_reference] =
      given.is(HEDDLE_KIND_TENSOR)
          ? painted_mask(ctx, given.as<Tensor>(), picture_ground)
          : painted_things(ctx, blocks::object_tracks_of(ctx, given, "ref_track_data"),
                           picture_ground);
}

void Scail2ColoredMask::infer(Infer& question) {
  const auto video = told_pictures(question, tracks);
  if (video) question.out(painted, "", HEDDLE_F32, *video);
  if (const auto mask = question.shape(reference)) {
    Shape pictures = *mask;
    if (pictures.size() == 2) pictures.insert(pictures.begin(), 1);
    pictures.push_back(3);
    question.out(painted_reference, "", HEDDLE_F32, pictures);
  } else if (const auto shown = told_pictures(question, reference)) {
    question.out(painted_reference, "", HEDDLE_F32, *shown);
  }
}

}  // namespace heddle::detection
