#include "plugins/image/quantize_nodes.h"

#include <algorithm>

#include "plugins/image/host_pixels.h"
#include "plugins/image/palette.h"

namespace heddle::image {
namespace {

std::uint8_t cut_byte(float value) {
  const float scaled = value * 255.0f;
  return scaled > 0 ? std::uint8_t(std::min(scaled, 255.0f)) : 0;
}

int bayer_order(const std::string& dither) {
  return dither == "bayer-2" ? 1 : dither == "bayer-4" ? 2 : dither == "bayer-8" ? 3 : 4;
}

void reduce(std::vector<PaletteColour>& pixels, std::size_t width, std::size_t most,
            const std::string& dither) {
  const std::vector<PaletteColour> palette = median_cut(pixels, most);
  NearestColour nearest(palette);
  if (dither.starts_with("bayer")) add_bayer(pixels, width, bayer_order(dither), palette.size());
  if (dither == "floyd-steinberg")
    diffuse_colours(pixels, width, nearest);
  else
    map_colours(pixels, nearest);
}

}  // namespace

void ImageQuantize::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  if (e.channels < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: it has " + std::to_string(e.channels) +
                                             " channels, a palette takes 3. Give another.");
  const Canvas to = Canvas::image(ctx, e);
  std::vector<PaletteColour> pixels(std::size_t(e.height * e.width));
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    const float* const given = from.row(i, 0);
    for (std::size_t p = 0; p < pixels.size(); ++p)
      for (std::size_t c = 0; c < 3; ++c)
        pixels[p][c] = cut_byte(given[p * std::size_t(e.channels) + c]);
    reduce(pixels, std::size_t(e.width), std::size_t(ctx[colors]), ctx[dither]);
    float* made = to.row(i, 0);
    for (std::size_t p = 0; p < pixels.size(); ++p) {
      for (std::size_t c = 0; c < 3; ++c) *made++ = float(pixels[p][c]) / 255.0f;
      if (e.channels == 4) *made++ = given[p * 4 + 3];
    }
    ctx.progress(double(i + 1) / double(e.count));
  }
  ctx[out] = to.tensor();
}
void ImageQuantize::infer(Infer& question) { infer_like(question, image, out); }

}  // namespace heddle::image
