#include "plugins/vae/wan_fun_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include <heddle/ops.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kRayNumbers = 6;
using Vector3 = std::array<double, 3>;

// What a camera does by the end of the video at speed 1, but for its last step: how far it moves
// along x (right), y (down) and z (forward), and how far it turns about z, as shares.
struct CameraPath {
  const char* name;
  Vector3 moves;
  double turns;
};
constexpr CameraPath kCameraPaths[] = {
    {"Static", {0, 0, 0}, 0},         {"Pan Up", {0, -1, 0}, 0},
    {"Pan Down", {0, 1, 0}, 0},       {"Pan Left", {-1, 0, 0}, 0},
    {"Pan Right", {1, 0, 0}, 0},      {"Zoom In", {0, 0, 2}, 0},
    {"Zoom Out", {0, 0, -2}, 0},      {"Anti Clockwise (ACW)", {0, 0, 0}, -1},
    {"ClockWise (CW)", {0, 0, 0}, 1},
};
constexpr double kWholeMove = 1.5, kWholeTurn = std::numbers::pi / 3;
// Of the pictures that focal lengths are told in.
constexpr double kFocalRatio = 1280.0 / 720.0;

// Of a camera with pixels of this size.
struct CameraLens {
  double fx, fy, cx, cy;
};
CameraLens camera_lens(Context& ctx, const blocks::GridSize& size) {
  using N = WanCameraEmbedding;
  const auto width = double(size.width), height = double(size.height);
  CameraLens lens{ctx[N::fx], ctx[N::fy], ctx[N::cx] * width, ctx[N::cy] * height};
  if (lens.fx <= 0 || lens.fy <= 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "fx " + std::to_string(lens.fx) + ", fy " + std::to_string(lens.fy) +
                    ": a camera has a focal length above 0 on both sides.");
  if (kFocalRatio > width / height)
    lens.fx *= height * kFocalRatio / width;
  else
    lens.fy *= width / kFocalRatio / height;
  lens.fx *= width;
  lens.fy *= height;
  return lens;
}

// Writes the six planes of numbers of one frame, `step` planes from each other.
void write_rays(const CameraLens& lens, const blocks::GridSize& size, const Vector3& place,
                double angle, std::int64_t step, float* to) {
  const double c = std::cos(angle), s = std::sin(angle);
  const std::int64_t plane = size.height * size.width;
  for (std::int64_t row = 0; row < size.height; ++row)
    for (std::int64_t column = 0; column < size.width; ++column) {
      const double x = (double(column) + 0.5 - lens.cx) / lens.fx,
                   y = (double(row) + 0.5 - lens.cy) / lens.fy, norm = std::sqrt(x * x + y * y + 1);
      const Vector3 ray{(c * x - s * y) / norm, (s * x + c * y) / norm, 1 / norm};
      const Vector3 moment{place[1] * ray[2] - place[2] * ray[1],
                           place[2] * ray[0] - place[0] * ray[2],
                           place[0] * ray[1] - place[1] * ray[0]};
      float* at = to + row * size.width + column;
      for (const Vector3& part : {moment, ray})
        for (const double number : part) {
          *at = float(number);
          at += step * plane;
        }
    }
}

std::optional<Shape> camera_shape_of(std::int64_t width, std::int64_t height, std::int64_t length) {
  if (length < 1 || length % kFramesOfCell != 1 || width < 1 || height < 1) return {};
  return Shape{1, kRayNumbers * kFramesOfCell, latent_frames_of(length), height, width};
}

}  // namespace

void WanCameraEmbedding::execute(Context& ctx) {
  const blocks::GridSize size{ctx[height], ctx[width]};
  const std::int64_t frames = ctx[length];
  const std::optional<Shape> shape = camera_shape_of(size.width, size.height, frames);
  if (!shape)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "length " + std::to_string(frames) +
                    ": a camera's path has 4 n + 1 frames, as the video. Give it such a length.");
  const CameraLens lens = camera_lens(ctx, size);
  const std::string wanted = ctx[camera_pose];
  const auto* const path = std::ranges::find_if(
      kCameraPaths, [&](const CameraPath& known) { return known.name == wanted; });
  if (path == std::end(kCameraPaths))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "camera_pose '" + wanted + "' is none. Choose one of the list.");
  const Tensor made = ctx.make_host(*shape, HEDDLE_F32);
  const std::int64_t plane = size.height * size.width, cells = (*shape)[2];
  // Of frame `part` of a cell, the numbers of a coordinate are four channels from the next one's.
  const auto at = [&](std::int64_t cell, std::int64_t part) {
    return made.data<float>() + (part * cells + cell) * plane;
  };
  for (std::int64_t i = 0; i < frames; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const double share = double(i) / double(frames) * ctx[speed];
    Vector3 place = path->moves;
    for (double& number : place) number *= share * kWholeMove;
    const std::int64_t place_in_cells = i == 0 ? 0 : i + kFramesOfCell - 1;
    for (std::int64_t copy = 0; copy < (i == 0 ? kFramesOfCell : 1); ++copy)
      write_rays(
          lens, size, place, path->turns * share * kWholeTurn, kFramesOfCell * cells,
          at((place_in_cells + copy) / kFramesOfCell, (place_in_cells + copy) % kFramesOfCell));
  }
  ctx[embedding] = made;
  ctx[width_out] = size.width;
  ctx[height_out] = size.height;
  ctx[length_out] = frames;
}

void WanCameraEmbedding::infer(Infer& question) {
  const auto told = [&](const Input<std::int64_t>& in, const Output<std::int64_t>& out) {
    const auto number = question[in];
    if (number) question.known(out, "", value_of(*number));
    return number;
  };
  const auto across = told(width, width_out), down = told(height, height_out),
             frames = told(length, length_out);
  if (!across || !down || !frames) return;
  if (const auto shape = camera_shape_of(*across, *down, *frames))
    question.out(embedding, "", HEDDLE_F32, *shape);
}

void WanCameraImageToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<WanCameraImageToVideo>(ctx);
  const VideoGrid& grid = job.grid;
  GivenFields fields;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image],
                 all = model_zeros(ctx, Autoencoder(ctx[vae]), grid, 1),
                 given = encoded_begin(ctx, ctx[vae], job, pictures, "start_image", ctx[length]);
    ops::copy_into(ctx, given, all.slice(2, 0, given.size(2)));
    // As in ComfyUI: by all pictures, even those behind the video's end.
    const std::int64_t to = std::min(pictures.size(0), ctx[length]) + kFramesOfCell - 1;
    fields.set.emplace_back("concat_latent_image", value_of(all));
    fields.set.emplace_back("concat_mask", mask_of_frames(ctx, grid, kFramesOfCell,
                                                          [&](std::int64_t t, std::int64_t c) {
                                                            return t * kFramesOfCell + c < to;
                                                          }));
  }
  if (ctx.has(camera_conditions))
    fields.set.emplace_back("camera_conditions", value_of(ctx[camera_conditions]));
  set_seen<WanCameraImageToVideo>(ctx, fields);
  give_wan<WanCameraImageToVideo>(ctx, job, fields);
}

void WanCameraImageToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanCameraImageToVideo>(question);
  const auto all = question[length];
  if (!job || !all) return;
  ToldFields told;
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4) {
    told.image = told.mask = job->grid.shape(1);
    (*told.mask)[1] = kFramesOfCell;
    tell_encoded_begin(question, *question[vae], *shape, *job, *all);
  }
  if (const auto shape = question.shape(camera_conditions))
    told.camera = tensor_info(HEDDLE_F32, *shape);
  told.seen = told_seen<WanCameraImageToVideo>(question);
  tell_wan<WanCameraImageToVideo>(question, *job, told);
}

// The followed video, then first frames, of which ComfyUI's node takes none; the model reads the
// mask between them.
void Wan22FunControlToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Wan22FunControlToVideo>(ctx);
  const VideoGrid& grid = job.grid;
  const Tensor both = model_zeros(ctx, Autoencoder(ctx[vae]), grid, 2);
  GivenFields fields;
  if (ctx.has(control_video)) {
    const Tensor given =
        encoded_begin(ctx, ctx[vae], job, ctx[control_video], "control_video", ctx[length]);
    ops::copy_into(ctx, given, both.slice(1, 0, grid.channels).slice(2, 0, given.size(2)));
  }
  if (ctx.has(ref_image))
    fields.appended.emplace_back(
        "reference_latents",
        Record()
            .set("samples",
                 value_of(encoded_begin(ctx, ctx[vae], job, ctx[ref_image], "ref_image", 1)))
            .value());
  fields.set.emplace_back("concat_latent_image", value_of(both));
  fields.set.emplace_back(
      "concat_mask",
      mask_of_frames(ctx, grid, kFramesOfCell, [](std::int64_t, std::int64_t) { return false; }));
  fields.set.emplace_back("concat_mask_index", value_of(grid.channels));
  give_wan<Wan22FunControlToVideo>(ctx, job, fields);
}

void Wan22FunControlToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Wan22FunControlToVideo>(question);
  const auto all = question[length];
  if (!job || !all) return;
  ToldFields told;
  told.image = told.mask = job->grid.shape(1);
  (*told.image)[1] *= 2;
  (*told.mask)[1] = kFramesOfCell;
  if (const auto shape = question.shape(control_video); shape && shape->size() == 4)
    tell_encoded_begin(question, *question[vae], *shape, *job, *all);
  if (const auto shape = question.shape(ref_image); shape && shape->size() == 4) {
    tell_encoded_begin(question, *question[vae], *shape, *job, 1);
    Shape frame = job->grid.shape(1);
    frame[2] = 1;
    told.reference = tensor_info(HEDDLE_F32, frame);
  }
  tell_wan<Wan22FunControlToVideo>(question, *job, told);
}

}  // namespace heddle::vae
