#include "plugins/image/layer_nodes.h"

#include <algorithm>
#include <numbers>

#include "plugins/blocks/json_text.h"
#include "plugins/image/boxes.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/layers.h"
#include "plugins/image/png_files.h"

namespace heddle::image {
namespace {

using blocks::json_string;

std::vector<Value> items_of(const Value& document) {
  std::vector<Value> items;
  const Value list = document.field("layers");
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  return items;
}

Value document_of(const std::vector<Value>& items, const std::optional<CanvasSize>& canvas) {
  Record document;
  document.set("version", value_of(std::int64_t{1})).set("layers", list_of(items));
  if (canvas) document.set("canvas", list_of({value_of(canvas->width), value_of(canvas->height)}));
  return document.value();
}

// The mask of picture i; none where there are fewer.
Tensor mask_of_picture(const Tensor& masks, std::int64_t i) {
  const Shape shape = masks.shape();
  if (shape.size() != 3) return i == 0 ? masks.reshape({1, shape[0], shape[1]}) : Tensor();
  if (shape[0] == 1) return masks;
  return i < shape[0] ? masks.slice(0, i, i + 1) : Tensor();
}

struct ContentPart {
  std::int64_t left, top, width, height;
};

// The part of a picture that metadata.content_rect names.
std::optional<ContentPart> content_of(const Value& metadata, const Extent& e) {
  const Value rect = metadata.field("content_rect");
  if (!rect.is(HEDDLE_KIND_LIST) || rect.count() != 4) return std::nullopt;
  std::int64_t numbers[4];
  for (std::uint32_t i = 0; i < 4; ++i)
    numbers[i] = whole_in(Record().set("n", rect.item(i)).value(), "n");
  ContentPart part{std::clamp<std::int64_t>(numbers[0], 0, e.width),
                   std::clamp<std::int64_t>(numbers[1], 0, e.height), 0, 0};
  part.width = std::clamp<std::int64_t>(numbers[2], 0, e.width - part.left);
  part.height = std::clamp<std::int64_t>(numbers[3], 0, e.height - part.top);
  return part.width > 0 && part.height > 0 ? std::optional(part) : std::nullopt;
}

Tensor cut_out(const Tensor& tensor, std::size_t row_axis, const ContentPart& part) {
  return tensor.slice(std::int32_t(row_axis), part.top, part.top + part.height)
      .slice(std::int32_t(row_axis) + 1, part.left, part.left + part.width);
}

std::string name_in(const Value& metadata) {
  for (const char* key : {"name", "desc"})
    if (const Value name = metadata.field(key); name.is(HEDDLE_KIND_STR) && !name.text().empty())
      return name.as<std::string>();
  return {};
}

Value layer_in_box(const Tensor& picture, const Tensor& mask, const BoundingBox& box, bool crops,
                   std::int64_t depth) {
  const Value metadata = box.metadata();
  Tensor image = picture, alpha = mask;
  std::int64_t x = whole_in(box.record, "x"), y = whole_in(box.record, "y");
  Record item;
  const std::optional<ContentPart> content =
      crops ? content_of(metadata, image_extent(picture.shape(), "image")) : std::nullopt;
  if (content) {
    image = cut_out(image, 1, *content);
    if (alpha) alpha = cut_out(alpha, 1, *content);
    x = content->left;
    y = content->top;
  }
  item.set("image", value_of(image))
      .set("type", value_of("raster"))
      .set("x", value_of(x))
      .set("y", value_of(y))
      .set("z_index", value_of(whole_in(metadata, "z_index", depth)));
  const std::int64_t width = whole_in(box.record, "width"), height = whole_in(box.record, "height");
  if (!content && width > 0) item.set("w", value_of(width));
  if (!content && height > 0) item.set("h", value_of(height));
  if (alpha) item.set("mask", value_of(alpha));
  if (const std::string name = name_in(metadata); !name.empty()) item.set("name", value_of(name));
  return item.value();
}

// What the editor is told besides the picture.
void tell_editor(Context& ctx, const std::vector<Layer>& layers,
                 const std::vector<std::string>& fingerprints, bool is_stale) {
  std::string inputs, boxes;
  for (const std::string& one : fingerprints)
    inputs += (inputs.empty() ? "" : ", ") + json_string(one);
  const auto truth = [](bool x) { return x ? "true" : "false"; };
  for (const Layer& layer : layers) {
    const Placement& p = layer.placement;
    boxes += (boxes.empty() ? "" : ", ") + ("{\"x\": " + std::to_string(std::int64_t(p.x))) +
             ", \"y\": " + std::to_string(std::int64_t(p.y)) +
             ", \"width\": " + std::to_string(std::int64_t(p.width)) +
             ", \"height\": " + std::to_string(std::int64_t(p.height)) +
             ", \"rotation\": " + std::to_string(p.rotation) +
             ", \"name\": " + (layer.name.empty() ? "null" : json_string(layer.name)) +
             ", \"visible\": " + truth(p.is_visible) +
             ", \"opacity\": " + std::to_string(p.opacity) + ", \"blend\": " + json_string(p.mode) +
             ", \"flipH\": " + truth(p.flips_h) + ", \"flipV\": " + truth(p.flips_v) + "}";
  }
  service<heddle_report_service>().wrote(
      ctx.raw(), nullptr,
      ("{\"compositor_inputs\": [" + inputs + "], \"compositor_bboxes\": [" + boxes + "]" +
       (is_stale ? ", \"compositor_state_stale\": [true]}" : "}"))
          .c_str());
}

void show_layers(Context& ctx, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    const LayerBitmap& b = layer.bitmap;
    const Canvas shown = Canvas::image(ctx, {1, b.height, b.width, layer.has_alpha ? 4 : 3});
    float* to = shown.data();
    // Between two bytes, because files cut what is below one.
    for (std::size_t i = 0; i < b.rgba.size(); ++i)
      if (layer.has_alpha || i % 4 != 3) *to++ = (float(b.rgba[i]) + 0.5f) / 255.0f;
    save_pngs(ctx, shown.tensor(),
              {"temp", blocks::preview_prefix(), kPreviewLevel, "compositor_layers"},
              blocks::workflow_text<ImageCompositor>(ctx));
  }
}

// RGB where all of it is opaque, else RGBA; the mask is 1 where it is transparent.
void give_canvas(Context& ctx, const std::pmr::vector<LayerPixel>& canvas, const CanvasSize& size) {
  constexpr float kOpaque = 1 - 1e-3f;
  const bool is_opaque =
      std::ranges::all_of(canvas, [](const LayerPixel& p) { return p[3] >= kOpaque; });
  const Canvas image = Canvas::image(ctx, {1, size.height, size.width, is_opaque ? 3 : 4}),
               mask = Canvas::mask(ctx, {1, size.height, size.width, 1});
  float *to = image.data(), *clear = mask.data();
  for (const LayerPixel& pixel : canvas) {
    for (std::size_t c = 0; c < 3; ++c) *to++ = linear_to_srgb(std::clamp(pixel[c], 0.0f, 1.0f));
    const float alpha = std::clamp(pixel[3], 0.0f, 1.0f);
    if (!is_opaque) *to++ = alpha;
    *clear++ = is_opaque ? 0 : 1 - alpha;
  }
  save_pngs(ctx, image.tensor(), {"temp", blocks::preview_prefix(), kPreviewLevel},
            blocks::workflow_text<ImageCompositor>(ctx));
  ctx[ImageCompositor::out] = image.tensor();
  ctx[ImageCompositor::mask] = mask.tensor();
}

bool says_something(const Value& state) {
  if (state.is(HEDDLE_KIND_STR)) return !state.text().empty() && state.text() != "{}";
  return state.is(HEDDLE_KIND_RECORD) && state.count() > 0;
}

}  // namespace

void AddLayer::execute(Context& ctx) {
  Record item;
  const auto given = [&](const auto& input, auto otherwise) {
    return ctx.has(input) ? ctx[input] : otherwise;
  };
  const auto whole = [&](const Input<std::int64_t>& input) {
    return given(input, std::int64_t{0});
  };
  item.set("image", value_of(ctx[image])).set("type", value_of("raster"));
  item.set("x", value_of(whole(x))).set("y", value_of(whole(y)));
  item.set("z_index", value_of(whole(z_index)));
  if (ctx.has(mask)) item.set("mask", value_of(ctx[mask]));
  if (const std::string text = given(name, std::string()); !text.empty())
    item.set("name", value_of(text));
  if (const double part = given(opacity, 1.0); part != 1) item.set("opacity", value_of(part));
  if (const std::string mode = given(blend_mode, std::string("normal")); mode != "normal")
    item.set("blend_mode", value_of(mode));
  if (const double degrees = given(rotation, 0.0); degrees != 0)
    item.set("rotation", value_of(degrees * (std::numbers::pi / 180)));
  if (whole(width) > 0) item.set("w", value_of(whole(width)));
  if (whole(height) > 0) item.set("h", value_of(whole(height)));
  if (given(flip_h, false)) item.set("flip_h", value_of(true));
  if (given(flip_v, false)) item.set("flip_v", value_of(true));
  const Value before = given(layers, Value());
  std::vector<Value> items = items_of(before);
  items.push_back(item.value());
  ctx[out] = document_of(items, canvas_of(before));
}

void LayersFromBoundingBoxes::execute(Context& ctx) {
  const auto side = [&](const Input<std::int64_t>& input) {
    return ctx.has(input) ? ctx[input] : std::int64_t{0};
  };
  const CanvasSize canvas{side(canvas_width), side(canvas_height)};
  const bool has_canvas = canvas.width > 0 && canvas.height > 0;
  Value given = ctx[bboxes];
  if (given.is(HEDDLE_KIND_STR) && !given.text().empty())
    given = json_of_text(given.as<std::string>(), "bboxes");
  if (!has_canvas && has_elements(given))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "bboxes: elements are relative to a canvas. Set canvas_width and canvas_height.");
  const std::vector<BoundingBox> boxes = boxes_of(given, canvas.width, canvas.height, "bboxes");
  const Value before = ctx.has(layers) ? ctx[layers] : Value();
  std::vector<Value> items = items_of(before);
  std::int64_t depth = -1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t one = whole_in(items[i], "z_index");
    depth = i == 0 ? one : std::max(depth, one);
  }
  const Tensor pictures = ctx[image];
  const bool crops = !ctx.has(crop_to_content) || ctx[crop_to_content];
  for (std::int64_t i = 0; i < image_extent(pictures.shape(), "image").count; ++i)
    items.push_back(layer_in_box(
        pictures.slice(0, i, i + 1), ctx.has(mask) ? mask_of_picture(ctx[mask], i) : Tensor(),
        i < std::int64_t(boxes.size()) ? boxes[std::size_t(i)] : BoundingBox{}, crops,
        depth + 1 + i));
  ctx[out] = document_of(items, has_canvas ? std::optional(canvas) : canvas_of(before));
}

void ImageCompositor::execute(Context& ctx) {
  HostMemory memory(ctx);
  const Value document = ctx[layers], state = ctx[compositor];
  const std::vector<Layer> all = layers_of(ctx, document, memory);
  const std::vector<std::string> fingerprints = fingerprints_of(all);
  const std::optional<Arrangement> edited = edited_arrangement(state, all, fingerprints);
  show_layers(ctx, all);
  tell_editor(ctx, all, fingerprints, says_something(state) && !edited);
  if (all.empty()) {
    const Canvas black = Canvas::image(ctx, {1, 64, 64, 3}),
                 none = Canvas::mask(ctx, {1, 64, 64, 1});
    black.fill(0);
    none.fill(0);
    ctx[out] = black.tensor();
    ctx[mask] = none.tensor();
    return;
  }
  if (says_something(state) && !edited)
    ctx.warn("compositor: what was arranged in the editor is of other layers, and is left out");
  const Arrangement arrangement = edited ? *edited : own_arrangement(all, document);
  std::pmr::vector<LayerPixel> canvas(&memory);
  draw_layers(ctx, all, arrangement, canvas);
  give_canvas(ctx, canvas, arrangement.canvas);
}

}  // namespace heddle::image
