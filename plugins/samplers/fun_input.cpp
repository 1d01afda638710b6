#include "fun_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "vace_input.h"

namespace heddle::samplers {
namespace {

// Of a latent's frame: rows and columns.
constexpr std::size_t kRows = 3, kColumns = 4, kRank = 5;

std::int64_t cell_side(const Value& settings) {
  return settings.get<std::int64_t>("latent_downscale", 8);
}

std::string size_of_frames(std::int64_t frames, std::int64_t height, std::int64_t width) {
  return std::to_string(frames) + " frames of " + std::to_string(height) + "x" +
         std::to_string(width);
}

// Why it is no camera for this model and this point; empty: it is one.
std::string camera_fault(const Shape& camera, const Value& settings, const Shape& grid) {
  const std::int64_t side = cell_side(settings),
                     numbers = settings.get<std::int64_t>("camera_numbers", 0);
  if (camera.size() != kRank) return "has " + std::to_string(camera.size()) + " axes, not 5";
  if (camera[1] * side * side != numbers)
    return "has " + std::to_string(camera[1]) + " numbers a pixel, the model reads " +
           std::to_string(numbers / (side * side));
  if (camera[2] != grid[0] || camera[kRows] != grid[1] * side || camera[kColumns] != grid[2] * side)
    return "is of " + size_of_frames(camera[2], camera[kRows], camera[kColumns]) +
           " pixels, the latent that is drawn of " +
           size_of_frames(grid[0], grid[1] * side, grid[2] * side);
  return "";
}

// Where the wanted part of the grid begins, and its size.
Shape begin_in_grid(const ConcatPlace& place) {
  return place.box ? place.box->begin : Shape{0, 0, 0};
}
Shape size_in_grid(const ConcatPlace& place) { return place.box ? place.box->size : place.grid; }

void check_video(const ConcatPlace& place, const char* what) {
  if (place.grid.size() != 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(what) +
                    " goes with a video, and the latent has no frames. Take the latent of the node "
                    "that made it.");
}

std::int64_t rows_for(std::int64_t rows, const ConcatPlace& place) {
  return rows > 1 ? place.items : 1;
}

// Of a reference of so many frames, those that a model reads.
std::int64_t frames_shown(const Value& settings, std::int64_t frames) {
  return settings.get<bool>("reference_video", false) ? frames : 1;
}

}  // namespace

Tensor camera_of(Context& ctx, const Value& entry, const Value& settings,
                 const ConcatPlace& place) {
  check_video(place, "a camera");
  const Tensor camera = entry.field(kCameraConditions).as<Tensor>();
  if (const std::string fault = camera_fault(camera.shape(), settings, place.grid); !fault.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'camera_conditions' " + fault +
                    ". Give WanCameraEmbedding and WanCameraImageToVideo one size and length.");
  const std::int64_t side = cell_side(settings), numbers = camera.size(1) * side * side,
                     rows = rows_for(camera.size(0), place);
  const Shape begin = begin_in_grid(place), size = size_in_grid(place);
  const Tensor made = ctx.make({rows, numbers, size[0], size[1], size[2]}, HEDDLE_F32);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = spread_row(row, rows, camera.size(0));
    const Tensor pixels =
        camera.slice(0, from, from + 1)
            .reshape({camera.size(1), place.grid[0], place.grid[1], side, place.grid[2], side})
            .slice(1, begin[0], begin[0] + size[0])
            .slice(2, begin[1], begin[1] + size[1])
            .slice(4, begin[2], begin[2] + size[2])
            .permute({0, 3, 5, 1, 2, 4});
    ops::copy_into(ctx, pixels,
                   made.slice(0, row, row + 1)
                       .reshape({camera.size(1), side, side, size[0], size[1], size[2]}));
  }
  return made;
}

std::optional<Shape> camera_shape(const blocks::EntryShapes& entry, const Value& settings,
                                  const ConcatPlace& place) {
  const Shape camera = blocks::shape_of(*entry.camera);
  if (place.grid.size() != 3 || !camera_fault(camera, settings, place.grid).empty()) return {};
  const Shape size = size_in_grid(place);
  return Shape{rows_for(camera[0], place), settings.get<std::int64_t>("camera_numbers", 0), size[0],
               size[1], size[2]};
}

Tensor reference_frame_of(Context& ctx, const Value& entry, const Value& settings,
                          const ConcatPlace& place) {
  const LatentFormat format = latent_format(settings);
  check_video(place, "a reference picture");
  const Value list = entry.field("reference_latents");
  const Value record = list.item(list.count() - 1);
  Tensor latent = record.field("samples").as<Tensor>();
  if (latent.rank() == 4)
    latent = latent.reshape({latent.size(0), latent.size(1), 1, latent.size(2), latent.size(3)});
  const auto side = [&](std::size_t axis) {
    return std::to_string(latent.rank() == kRank ? latent.size(std::int64_t(axis)) : 0);
  };
  if (latent.rank() != kRank || latent.count() == 0 || latent.size(1) != format.channels ||
      latent.size(kRows) != place.grid[1] || latent.size(kColumns) != place.grid[2])
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's last reference picture has " +
                    std::to_string(latent.rank() > 1 ? latent.size(1) : 0) +
                    " channels and cells of " + side(kRows) + "x" + side(kColumns) +
                    ", the model reads " + std::to_string(format.channels) + " of " +
                    std::to_string(place.grid[1]) + "x" + std::to_string(place.grid[2]) +
                    ", as the latent that is drawn. Take both from one node.");
  const std::int64_t rows = rows_for(latent.size(0), place);
  const Shape begin = begin_in_grid(place), size = size_in_grid(place);
  const std::int64_t frames = frames_shown(settings, latent.size(2));
  const Tensor made = ctx.make({rows, format.channels, frames, size[1], size[2]}, HEDDLE_F32);
  const bool is_scaled = record.get<bool>("scaled", false);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = spread_row(row, rows, latent.size(0));
    const Tensor one = latent.slice(0, from, from + 1)
                           .slice(2, 0, frames)
                           .slice(3, begin[1], begin[1] + size[1])
                           .slice(4, begin[2], begin[2] + size[2]),
                 to = made.slice(0, row, row + 1);
    if (is_scaled)
      ops::copy_into(ctx, one, to);
    else
      to_model_units(ctx, one, format, to);
  }
  return made;
}

std::optional<Shape> reference_frame_shape(const blocks::EntryShapes& entry, const Value& settings,
                                           const ConcatPlace& place) {
  const Shape latent = blocks::shape_of(entry.references.back());
  if (place.grid.size() != 3 || latent.size() < 4) return {};
  const Shape size = size_in_grid(place);
  return Shape{rows_for(latent[0], place), settings.get<std::int64_t>("latent_channels", 0),
               latent.size() > 4 ? frames_shown(settings, latent[2]) : 1, size[1], size[2]};
}

}  // namespace heddle::samplers
