#include "plugins/image/resize_nodes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

using blocks::ChosenVariant;
using blocks::GridSize;
using blocks::rounded;

// What a rule makes of a size: the size to scale to, and the window in its middle that is kept.
struct Resize {
  GridSize scaled, kept;
  bool crops_first = false;  // to the aspect of the result
};

Resize to_size(const GridSize& to, bool crops_first = false) { return {to, to, crops_first}; }

// The other side in the same aspect.
std::int64_t side_beside(std::int64_t other, std::int64_t length, std::int64_t given) {
  return rounded(double(other) / double(length) * double(given));
}

Resize by_dimensions(const GridSize& from, std::int64_t width, std::int64_t height, bool crops) {
  if (width == 0 && height == 0) return to_size(from);
  const auto other = [](std::int64_t side, std::int64_t known, std::int64_t of) {
    return std::max<std::int64_t>(1, rounded(double(side * known) / double(of)));
  };
  if (width == 0) width = other(from.width, height, from.height);
  if (height == 0) height = other(from.height, width, from.width);
  return to_size({height, width}, crops);
}

Resize by_side(const GridSize& from, std::int64_t length, bool is_longer) {
  if (from.height == from.width) return to_size({length, length});
  if ((from.height > from.width) == is_longer)
    return to_size({length, side_beside(from.width, from.height, length)});
  return to_size({side_beside(from.height, from.width, length), length});
}

Resize by_pixels(const GridSize& from, double megapixels, std::int64_t multiple) {
  const double total = std::trunc(megapixels * 1024 * 1024);
  const double factor = std::sqrt(total / double(from.width * from.height));
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, rounded(double(length) * factor / double(multiple))) *
           multiple;
  };
  return to_size({side(from.height), side(from.width)});
}

// Covers the greatest multiples that fit, and keeps the middle.
Resize by_multiple(const GridSize& from, std::int64_t multiple) {
  const GridSize kept{from.height / multiple * multiple, from.width / multiple * multiple};
  if (multiple <= 1 || kept.height == 0 || kept.width == 0 || kept == from) return to_size(from);
  const double across = double(kept.width) / double(from.width),
               down = double(kept.height) / double(from.height);
  const auto covering = [](std::int64_t side, double factor, std::int64_t least) {
    return std::max(std::int64_t(std::ceil(double(side) * factor)), least);
  };
  Resize resize{kept, kept};
  if (across >= down)
    resize.scaled.height = covering(from.height, across, kept.height);
  else
    resize.scaled.width = covering(from.width, down, kept.width);
  return resize;
}

constexpr const char* kMatchSize = "match size";

Extent extent_given(const Shape& shape, const char* input) {
  return shape.size() == 4 ? image_extent(shape, input) : mask_extent(shape, input);
}

// Nothing: the input is handed on as it is. match: the shape of what is matched, by that rule.
std::optional<Resize> resize_by(const ChosenVariant& rule, const GridSize& from,
                                const std::function<Shape()>& match) {
  const std::string& key = rule.key();
  if (key == "scale by multiplier") {
    const double factor = rule.real("multiplier");
    return to_size({rounded(double(from.height) * factor), rounded(double(from.width) * factor)});
  }
  if (key == "scale longer dimension") return by_side(from, rule.whole("longer_size"), true);
  if (key == "scale shorter dimension") return by_side(from, rule.whole("shorter_size"), false);
  if (key == "scale total pixels")
    return by_pixels(from, rule.real("megapixels"), rule.whole("multiple"));
  if (key == kMatchSize)
    return to_size(extent_given(match(), "resize_type.match").size(),
                   rule.text("crop") == "center");
  if (key == "scale to multiple") {
    const Resize resize = by_multiple(from, rule.whole("multiple"));
    return resize.kept == from ? std::nullopt : std::optional(resize);
  }
  const std::int64_t width = key == "scale height" ? 0 : rule.whole("width"),
                     height = key == "scale width" ? 0 : rule.whole("height");
  if (width == 0 && height == 0) return std::nullopt;
  return by_dimensions(from, width, height,
                       key == "scale dimensions" && rule.text("crop") == "center");
}

}  // namespace

void ResizeImageMaskNode::execute(Context& ctx) {
  const Value given = ctx[input];
  const Tensor tensor = given.as<Tensor>();
  const bool is_image = tensor.rank() == 4;
  const ChosenVariant rule(ctx, resize_type);
  const Extent before = extent_given(tensor.shape(), "input");
  const std::optional<Resize> resize =
      resize_by(rule, before.size(), [&] { return rule.value("match").as<Tensor>().shape(); });
  if (!resize) {
    ctx[resized] = given;
    return;
  }
  Pixels pixels(ctx, tensor, before);
  pixels.resize(ctx, resize->scaled, ctx[scale_method], resize->crops_first);
  Extent e = pixels.extent();
  const std::int64_t top = (e.height - resize->kept.height) / 2,
                     left = (e.width - resize->kept.width) / 2;
  e.height = resize->kept.height;
  e.width = resize->kept.width;
  const Canvas to = is_image ? Canvas::image(ctx, e) : Canvas::mask(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      std::copy_n(pixels.at(i, top + y, left), e.row(), to.row(i, y));
  ctx[resized] = value_of(to.tensor());
}

void ResizeImageMaskNode::infer(Infer& question) {
  const std::optional<Shape> from = question.shape(input);
  const std::optional<ChosenVariant> rule = blocks::told_variant(question, resize_type);
  if (!from || from->size() < 2 || from->size() > 4 || !rule) return;
  const std::optional<Shape> match = question.shape(resize_type, "match");
  if (rule->key() == kMatchSize && (!match || match->size() < 2 || match->size() > 4)) return;
  Extent e = extent_given(*from, "input");
  const std::optional<Resize> resize = resize_by(*rule, e.size(), [&] { return *match; });
  if (!resize) {
    question.out(resized, "", HEDDLE_F32, *from);
    question.shares(resized);
    return;
  }
  const blocks::Grids grids{e.count, e.size(), e.channels};
  e.height = resize->scaled.height;
  e.width = resize->scaled.width;
  question.cost(0, 0, blocks::resampling_bytes(grids, resize->scaled));
  const std::int64_t numbers =
      checked_product({e.count, e.height, e.width, e.channels}, "the pixels");
  question.host_scratch(sizeof(float) * std::uint64_t(numbers));
  e.height = resize->kept.height;
  e.width = resize->kept.width;
  question.out(resized, "", HEDDLE_F32, from->size() == 4 ? image_shape(e) : mask_shape(e));
}

}  // namespace heddle::image
