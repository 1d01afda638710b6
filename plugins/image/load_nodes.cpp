#include "plugins/image/load_nodes.h"

#include <algorithm>
#include <heddle/host_memory.hpp>

#include "plugins/image/loaded_picture.h"
#include "plugins/image/pixels.h"

namespace heddle::image {
namespace {

constexpr std::int64_t kEmptyMaskSide = 64;  // of a picture without alpha, as in ComfyUI

std::span<float> elements(const Tensor& tensor) {
  return {tensor.data<float>(), static_cast<std::size_t>(tensor.count())};
}

Tensor empty_mask(Context& ctx, std::int64_t count) {
  const Tensor mask = ctx.make_host({count, kEmptyMaskSide, kEmptyMaskSide}, HEDDLE_F32);
  std::ranges::fill(elements(mask), 0.0f);
  return mask;
}

struct Loaded {
  Tensor rgb, mask;
};

// All pictures of a file that have the size of the first.
Loaded load_batch(Context& ctx, const std::string& name) {
  HostMemory memory(ctx);
  std::vector<Frame> frames = load_frames(ctx, name, memory);
  // Only pictures of the size of the first make a batch.
  const std::uint32_t width = frames[0].picture.width, height = frames[0].picture.height;
  std::erase_if(frames, [&](const Frame& frame) {
    return frame.picture.width != width || frame.picture.height != height;
  });
  // A colour key is no alpha to ComfyUI here.
  const auto has_mask = [](const Frame& frame) {
    return frame.alpha == Alpha::channel || frame.alpha == Alpha::palette;
  };
  const auto count = static_cast<std::int64_t>(frames.size());
  const Tensor rgb = ctx.make_host({count, height, width, 3}, HEDDLE_F32);
  const bool has_masks = std::ranges::any_of(frames, has_mask);
  const Tensor selected =
      has_masks ? ctx.make_host({count, height, width}, HEDDLE_F32) : empty_mask(ctx, count);
  if (has_masks) std::ranges::fill(elements(selected), 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const Frame& frame = frames[static_cast<std::size_t>(i)];
    const Tensor to = selected.slice(0, i, i + 1);
    spread(frame.picture, elements(rgb.slice(0, i, i + 1)),
           has_mask(frame) ? elements(to) : std::span<float>());
  }
  return {rgb, selected};
}

// In ComfyUI's words.
Refusal unless_there(const Validation& question, const Input<std::string>& image) {
  if (!question[image] || question.has_file(image, "input")) return {};
  return "Invalid image file: " + *question[image];
}

}  // namespace

Refusal LoadImage::validate(Validation& question) { return unless_there(question, image); }

Refusal LoadImageMask::validate(Validation& question) { return unless_there(question, image); }

Refusal LoadImageOutput::validate(Validation& question) { return unless_there(question, image); }

Refusal WebcamCapture::validate(Validation& question) {
  const std::optional<Value> name = question[image];
  if (!name || name->kind() != HEDDLE_KIND_STR || question.has_file(image, "input")) return {};
  return "Invalid image file: " + name->as<std::string>();
}

void LoadImage::execute(Context& ctx) {
  const Loaded loaded = load_batch(ctx, ctx[image]);
  ctx[picture] = loaded.rgb;
  ctx[mask] = loaded.mask;
}

std::uint64_t LoadImage::fingerprint(Context& ctx) { return picture_hash(ctx, ctx[image]); }

void LoadImageMask::execute(Context& ctx) {
  HostMemory memory(ctx);
  const std::vector<Frame> frames = load_frames(ctx, ctx[image], memory);
  const Picture& loaded = frames[0].picture;
  const std::string wanted = ctx[channel];
  const std::int64_t height = loaded.height, width = loaded.width;
  const Tensor selected = ctx.make_host({1, height, width}, HEDDLE_F32);
  const std::span<float> to = elements(selected);
  if (wanted == "alpha") {
    std::ranges::fill(to, 0.0f);  // opaque where the picture has no alpha
    spread(loaded, {}, to);
  } else {
    const std::size_t offset = wanted == "red" ? 0 : wanted == "green" ? 1 : 2;
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<float>(loaded.pixels[i * loaded.channels + offset]) / 255.0f;
  }
  ctx[mask] = selected;
}

std::uint64_t LoadImageMask::fingerprint(Context& ctx) { return picture_hash(ctx, ctx[image]); }

void LoadImageOutput::execute(Context& ctx) {
  const Loaded loaded = load_batch(ctx, ctx[image]);
  ctx[picture] = loaded.rgb;
  ctx[mask] = loaded.mask;
}
std::uint64_t LoadImageOutput::fingerprint(Context& ctx) { return picture_hash(ctx, ctx[image]); }

void WebcamCapture::execute(Context& ctx) {
  ctx[picture] = load_batch(ctx, ctx[image].as<std::string>()).rgb;
}
std::uint64_t WebcamCapture::fingerprint(Context& ctx) {
  return picture_hash(ctx, ctx[image].as<std::string>());
}

}  // namespace heddle::image
