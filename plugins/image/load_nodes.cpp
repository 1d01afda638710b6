#include "plugins/image/load_nodes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/image/picture_file.h"
#include "plugins/image/pixels.h"
#include "plugins/image/read_picture.h"

namespace heddle::image {
namespace {

constexpr std::int64_t kEmptyMaskSide = 64;  // of a picture without alpha, as in ComfyUI

std::string find_picture(Context& ctx, const std::string& name) {
  const FileName file = annotated(name);
  heddle_value* path = nullptr;
  check(service<heddle_folders_service>().find(ctx.raw(), file.folder.c_str(), file.name.c_str(),
                                               &path));
  return Value::adopt(path).as<std::string>();
}

// The limit of HEDDLE_MOST_PIXELS, where it is a whole number above 0.
std::uint64_t most_pixels() {
  const char* text = std::getenv("HEDDLE_MOST_PIXELS");
  if (text == nullptr || *text == '\0') return kMostPixels;
  const std::string_view digits(text);
  constexpr std::uint64_t kMost = 1ull << 40;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number == 0 || number > kMost)
    throw Error(HEDDLE_INVALID_ARGUMENT, "HEDDLE_MOST_PIXELS is '" + std::string(digits) +
                                             "'. Give a whole number from 1 to 2^40.");
  return number;
}

std::vector<Frame> load(Context& ctx, const std::string& name, std::pmr::memory_resource& memory) {
  const std::string path = find_picture(ctx, name);
  const Value file = read_file(path);
  return read_pictures({bytes_of(file), path, most_pixels(), &memory});
}

std::uint64_t file_hash(Context& ctx, const std::string& name) {
  return content_hash(bytes_of(read_file(find_picture(ctx, name))));
}

std::span<float> elements(const Tensor& tensor) {
  return {tensor.data<float>(), static_cast<std::size_t>(tensor.count())};
}

Tensor empty_mask(Context& ctx, std::int64_t count) {
  const Tensor mask = ctx.make_host({count, kEmptyMaskSide, kEmptyMaskSide}, HEDDLE_F32);
  std::ranges::fill(elements(mask), 0.0f);
  return mask;
}

}  // namespace

void LoadImage::execute(Context& ctx) {
  HostMemory memory(ctx);
  std::vector<Frame> frames = load(ctx, ctx[image], memory);
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
  ctx[picture] = rgb;
  ctx[mask] = selected;
}

std::uint64_t LoadImage::fingerprint(Context& ctx) { return file_hash(ctx, ctx[image]); }

void LoadImageMask::execute(Context& ctx) {
  HostMemory memory(ctx);
  const std::vector<Frame> frames = load(ctx, ctx[image], memory);
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

std::uint64_t LoadImageMask::fingerprint(Context& ctx) { return file_hash(ctx, ctx[image]); }

}  // namespace heddle::image
