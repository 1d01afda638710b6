#include "plugins/video/track_preview.h"

#include <algorithm>
#include <memory_resource>
#include <span>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/object_tracks.h"
#include "plugins/video/preview.h"
#include "plugins/video/track_drawing.h"

namespace heddle::video {
namespace {

struct FrameSize {
  std::int64_t height, width;
};

// The nearest bits, as PyTorch's interpolate() takes them.
void masks_at(const blocks::ObjectTracks& told, std::int64_t frame, const FrameSize& size,
              std::span<std::uint8_t> masks) {
  const float down = float(told.rows()) / float(size.height),
              across = float(told.columns()) / float(size.width);
  auto to = masks.begin();
  for (std::int64_t thing = 0; thing < told.things(); ++thing) {
    const std::uint8_t* const bits = told.mask(frame, thing);
    for (std::int64_t y = 0; y < size.height; ++y) {
      const std::int64_t v = std::min(std::int64_t(float(y) * down), told.rows() - 1);
      for (std::int64_t x = 0; x < size.width; ++x) {
        const std::int64_t u = std::min(std::int64_t(float(x) * across), told.columns() - 1),
                           bit = v * told.columns() + u;
        *to++ = (bits[bit / 8] >> (bit % 8)) & 1;
      }
    }
  }
}

void check_pictures(const Tensor& pictures) {
  if (pictures.rank() != 4 || pictures.size(1) < 1 || pictures.size(2) < 1 ||
      pictures.size(3) < 3 || pictures.dtype() != HEDDLE_F32)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "images: a preview shows pictures (batch, height, width, channels) of f32 with "
                "three channels or more. Link an IMAGE.");
}

}  // namespace

void Sam3TrackPreview::execute(Context& ctx) {
  const blocks::ObjectTracks told = blocks::object_tracks_of(ctx, ctx[tracks], "track_data");
  FrameSize size{told.height, told.width};
  Tensor pictures;
  if (ctx.has(images)) {
    pictures = ctx[images];
    check_pictures(pictures);
    size = {pictures.size(1), pictures.size(2)};
  }
  const std::int64_t pixels = checked_product({size.height, size.width}, "the picture");
  if (told.frames < 1) return;
  const Tensor shown = ctx.make_host({told.frames, size.height, size.width, 3}, HEDDLE_F32);
  HostMemory memory(ctx);
  std::pmr::vector<std::uint8_t> masks(
      std::size_t(checked_product({told.things(), pixels}, "the masks")), &memory);
  for (std::int64_t frame = 0; frame < told.frames; ++frame) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const Canvas canvas{shown.data<float>() + frame * pixels * 3, size.height, size.width};
    std::fill_n(canvas.pixels, 3 * pixels, 0.0f);
    if (pictures && frame < pictures.size(0))
      read_to<float>(ctx, pictures.slice(0, frame, frame + 1).slice(3, 0, 3),
                     std::span<float>(canvas.pixels, std::size_t(3 * pixels)));
    if (told.things() == 0) continue;
    masks_at(told, frame, size, masks);
    draw_things(canvas, masks, told.scores, float(ctx[opacity]));
  }
  Pictures video;
  video.images = shown;
  video.rate = rate_in_thousandths(exact_rate(ctx[fps]));
  show_preview(ctx, to_value(video));
}

// Without pictures the video's size is not known before.
void Sam3TrackPreview::infer(Infer& question) {
  const auto pictures = question.shape(images), bits = question.shape(tracks, "packed_masks");
  if (!pictures || pictures->size() != 4) return;
  const bool has_bits = bits && bits->size() == 4;
  const double pixels = double((*pictures)[1]) * double((*pictures)[2]),
               frames = double(has_bits ? (*bits)[0] : (*pictures)[0]);
  double bytes = 3 * sizeof(float) * frames * pixels;
  if (has_bits)
    bytes += double((*bits)[1]) * pixels +
             frames * double((*bits)[1]) * double((*bits)[2]) * double((*bits)[3]);
  question.host_scratch(checked_cast<std::uint64_t>(bytes, "bytes"));
}

}  // namespace heddle::video
