#include "plugins/image/load_nodes.h"

#include <algorithm>
#include <heddle/host_memory.hpp>

#include "plugins/image/orientation.h"
#include "plugins/image/picture_file.h"
#include "plugins/image/pixels.h"
#include "plugins/image/png.h"

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

struct Loaded {
  Picture picture;  // upright, RGB or RGBA
  Alpha alpha;
};

Loaded load(Context& ctx, const std::string& name, std::pmr::memory_resource& memory) {
  const std::string path = find_picture(ctx, name);
  PngContent content = read_png(bytes_of(read_file(path)), path, memory);
  return {upright(std::move(content.picture), exif_orientation(content.exif)), content.alpha};
}

std::uint64_t file_hash(Context& ctx, const std::string& name) {
  return content_hash(bytes_of(read_file(find_picture(ctx, name))));
}

std::span<float> elements(const Tensor& tensor) {
  return {tensor.data<float>(), static_cast<std::size_t>(tensor.count())};
}

Tensor empty_mask(Context& ctx) {
  const Tensor mask = ctx.make_host({1, kEmptyMaskSide, kEmptyMaskSide}, HEDDLE_F32);
  std::ranges::fill(elements(mask), 0.0f);
  return mask;
}

}  // namespace

void LoadImage::execute(Context& ctx) {
  HostMemory memory(ctx);
  const Loaded loaded = load(ctx, ctx[image], memory);
  const std::int64_t height = loaded.picture.height, width = loaded.picture.width;
  const Tensor rgb = ctx.make_host({1, height, width, 3}, HEDDLE_F32);
  // A colour key is no alpha to ComfyUI here.
  const bool has_mask = loaded.alpha == Alpha::channel || loaded.alpha == Alpha::palette;
  const Tensor selected =
      has_mask ? ctx.make_host({1, height, width}, HEDDLE_F32) : empty_mask(ctx);
  spread(loaded.picture, elements(rgb), has_mask ? elements(selected) : std::span<float>());
  ctx[picture] = rgb;
  ctx[mask] = selected;
}

std::uint64_t LoadImage::fingerprint(Context& ctx) { return file_hash(ctx, ctx[image]); }

void LoadImageMask::execute(Context& ctx) {
  HostMemory memory(ctx);
  const Loaded loaded = load(ctx, ctx[image], memory);
  const std::string wanted = ctx[channel];
  const std::int64_t height = loaded.picture.height, width = loaded.picture.width;
  const Tensor selected = ctx.make_host({1, height, width}, HEDDLE_F32);
  const std::span<float> to = elements(selected);
  if (wanted == "alpha") {
    std::ranges::fill(to, 0.0f);  // opaque where the picture has no alpha
    spread(loaded.picture, {}, to);
  } else {
    const std::size_t offset = wanted == "red" ? 0 : wanted == "green" ? 1 : 2;
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] =
          static_cast<float>(loaded.picture.pixels[i * loaded.picture.channels + offset]) / 255.0f;
  }
  ctx[mask] = selected;
}

std::uint64_t LoadImageMask::fingerprint(Context& ctx) { return file_hash(ctx, ctx[image]); }

}  // namespace heddle::image
