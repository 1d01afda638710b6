// What Wan's nodes have in common: the sizes of a video that is to be drawn, what they give both
// conditionings, and the same by shapes before a run. One call's thread.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "plugins/vae/video_frames.h"

namespace heddle::vae {

// What every entry of a conditioning gets: fields, and items at the end of lists.
struct GivenFields {
  std::vector<std::pair<const char*, Value>> set, appended = {};
};
Value with_video_fields(const Value& conditioning, const GivenFields& fields);

// A latent of zeros.
Value empty_video(Context& ctx, const Shape& shape);

// In the autoencoder's units, what is 0 in the model's, of n latents: (1, n C, frames, h, w) f32,
// on the device.
Tensor model_zeros(Context& ctx, const Autoencoder& autoencoder, const VideoGrid& grid,
                   std::int64_t latents);

// Frames of pixels that whole ones of the latent hold, of so many given pictures.
std::int64_t whole_frames(std::int64_t pictures, std::int64_t length);

// (1, channels, frames, h, w): numbers of (frame, channel), 0 where it is given.
template <class IsGiven>
Value mask_of_frames(Context& ctx, const VideoGrid& grid, std::int64_t channels,
                     IsGiven&& is_given) {
  const Tensor mask =
      ctx.make_host({1, channels, grid.frames, grid.height, grid.width}, HEDDLE_F32);
  float* to = mask.data<float>();
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t t = 0; t < grid.frames; ++t)
      to = std::fill_n(to, grid.height * grid.width, is_given(t, c) ? 0.0f : 1.0f);
  return value_of(mask);
}

// A node's sizes, and what it says of the frames.
struct WanJob {
  VideoGrid grid;
  blocks::GridSize pixels;
};
// Pictures, at most `length`, as the first frames of a latent: (1, C, frames, h, w), in the
// autoencoder's units. name: of the input, for errors.
Tensor encoded_begin(Context& ctx, const Value& autoencoder, const WanJob& job,
                     const Tensor& pictures, const char* name, std::int64_t length);
void tell_encoded_begin(Infer& question, const Value& autoencoder, const Shape& pictures,
                        const WanJob& job, std::int64_t length);

template <class Node>
WanJob wan_job(Context& ctx) {
  const std::int64_t width = ctx[Node::width], height = ctx[Node::height];
  return {video_grid(Autoencoder(ctx[Node::vae]), width, height, ctx[Node::length]),
          {height, width}};
}
template <class Node>
void give_wan(Context& ctx, const WanJob& job, const GivenFields& fields) {
  ctx[Node::positive_out] = with_video_fields(ctx[Node::positive], fields);
  ctx[Node::negative_out] = with_video_fields(ctx[Node::negative], fields);
  ctx[Node::latent] = empty_video(ctx, job.grid.shape(ctx[Node::batch_size]));
}

// The same by shapes.
struct ToldFields {
  std::optional<Shape> image, mask;
  std::optional<blocks::SeenShapes> seen;
  std::optional<blocks::VaceShapes> vace = {};
  std::optional<heddle_tensor_info> camera = {}, reference = {}, pose = {}, face = {}, heard = {},
                                    motion = {}, followed = {};
  std::vector<heddle_tensor_info> sources = {};
  std::optional<blocks::SeenShapes> kept = {};
  std::vector<std::pair<const char*, Value>> scope = {};  // values of blocks::kScopeFields
};
template <class Node>
std::optional<WanJob> told_job(const Infer& question) {
  const auto from = question[Node::vae];
  const auto width = question[Node::width], height = question[Node::height],
             length = question[Node::length];
  if (!from || !width || !height || !length) return {};
  const std::optional<Autoencoder> autoencoder = usable(*from);
  if (!autoencoder) return {};
  return WanJob{video_grid(*autoencoder, *width, *height, *length), {*height, *width}};
}
template <class Node>
void tell_fields(Infer& question, const ToldFields& told) {
  const auto change = [&](const auto& in, const auto& out) {
    std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
    for (blocks::EntryShapes& entry : entries) {
      if (told.image) entry.concat_image = tensor_info(HEDDLE_F32, *told.image);
      if (told.mask) entry.concat_mask = tensor_info(HEDDLE_F32, *told.mask);
      if (told.seen) entry.vision = told.seen;
      if (told.kept) entry.kept_seen = told.kept;
      for (const auto& [field, value] : told.scope)
        entry.scope = Record(entry.scope).set(field, value).value();
      if (told.camera) entry.camera = told.camera;
      if (told.pose) entry.pose = told.pose;
      if (told.face) entry.face = told.face;
      if (told.heard) entry.heard = told.heard;
      if (told.motion) entry.motion = told.motion;
      if (told.followed) entry.followed = told.followed;
      if (told.reference) entry.references.push_back(*told.reference);
      if (told.vace) entry.vace.push_back(*told.vace);
      if (!told.sources.empty()) entry.sources = told.sources;
    }
    blocks::infer_entries(question, out, entries);
  };
  change(Node::positive, Node::positive_out);
  change(Node::negative, Node::negative_out);
}
template <class Node>
void tell_wan(Infer& question, const WanJob& job, const ToldFields& told) {
  tell_fields<Node>(question, told);
  if (const auto items = question[Node::batch_size])
    question.out(Node::latent, "samples", HEDDLE_F32, job.grid.shape(*items));
}
// Bytes of host memory that a FrameStrip of so many frames takes, with pictures put into it: of
// another type than f32 they are copied. A node tells the most of all that it makes.
std::uint64_t strip_bytes(const heddle_tensor_info& pictures, const blocks::GridSize& pixels,
                          std::int64_t frames);
// The same of a node that makes one.
void tell_pixels(Infer& question, const Shape& pictures, const WanJob& job, std::int64_t frames);

// What CLIP's vision tower saw of a picture.
inline constexpr const char* kVisionOutput = "clip_vision_output";
template <class Node>
void set_seen(Context& ctx, GivenFields& fields) {
  if (ctx.has(Node::clip_vision_output))
    fields.set.emplace_back(kVisionOutput, ctx[Node::clip_vision_output]);
}
template <class Node>
std::optional<blocks::SeenShapes> told_seen(const Infer& question) {
  return blocks::seen_shapes(
      [&](const char* field) { return question.tensor(Node::clip_vision_output, field); });
}

}  // namespace heddle::vae
