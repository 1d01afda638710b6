#include "plugins/image/draw_box_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "plugins/blocks/pixel_limit.h"
#include "plugins/image/box_drawing.h"
#include "plugins/image/boxes.h"

namespace heddle::image {
namespace {

// The 80 classes of the data set COCO, in its order; a label's colour goes by its place.
constexpr std::string_view kCocoClasses[] = {"person",        "bicycle",      "car",
                                             "motorcycle",    "airplane",     "bus",
                                             "train",         "truck",        "boat",
                                             "traffic light", "fire hydrant", "stop sign",
                                             "parking meter", "bench",        "bird",
                                             "cat",           "dog",          "horse",
                                             "sheep",         "cow",          "elephant",
                                             "bear",          "zebra",        "giraffe",
                                             "backpack",      "umbrella",     "handbag",
                                             "tie",           "suitcase",     "frisbee",
                                             "skis",          "snowboard",    "sports ball",
                                             "kite",          "baseball bat", "baseball glove",
                                             "skateboard",    "surfboard",    "tennis racket",
                                             "bottle",        "wine glass",   "cup",
                                             "fork",          "knife",        "spoon",
                                             "bowl",          "banana",       "apple",
                                             "sandwich",      "orange",       "broccoli",
                                             "carrot",        "hot dog",      "pizza",
                                             "donut",         "cake",         "chair",
                                             "couch",         "potted plant", "bed",
                                             "dining table",  "toilet",       "tv",
                                             "laptop",        "mouse",        "remote",
                                             "keyboard",      "cell phone",   "microwave",
                                             "oven",          "toaster",      "sink",
                                             "refrigerator",  "book",         "clock",
                                             "vase",          "scissors",     "teddy bear",
                                             "hair drier",    "toothbrush"};
constexpr Rgb kLabelColours[] = {{255, 0, 0},   {0, 200, 0},   {0, 0, 255},    {255, 165, 0},
                                 {128, 0, 128}, {0, 255, 255}, {255, 20, 147}, {100, 149, 237}};
constexpr int kLabelPixels = 16, kBoxEdge = 3;
constexpr std::int64_t kEmptySide = 640;  // of a picture without any box

// A place in pixels, without what follows the point.
std::int64_t pixel_of(double place) {
  constexpr double kMost = 1e9;
  return std::isfinite(place) ? std::int64_t(std::clamp(place, -kMost, kMost)) : 0;
}

void draw_labelled(BytePicture& picture, const BoundingBox& box, const Font& font) {
  const Value given = box.record.field("label");
  const std::string label = given.is(HEDDLE_KIND_STR) ? given.as<std::string>() : "";
  const auto* const found = std::ranges::find(kCocoClasses, label);
  const bool is_known = found != std::end(kCocoClasses);
  const auto index = std::size_t(is_known ? found - std::begin(kCocoClasses) : 0);
  const Rgb& colour = kLabelColours[index % std::size(kLabelColours)];
  picture.outline({pixel_of(box.x), pixel_of(box.y), pixel_of(box.right()), pixel_of(box.bottom())},
                  colour, kBoxEdge);
  if (!is_known) return;
  char score[32];
  std::snprintf(score, sizeof score, " %.2f", number_in(box.record, "score", 1.0));
  picture.text(font, label + score, pixel_of(box.x + 2), pixel_of(box.y + 2), colour);
}

// A black picture that holds all boxes.
Extent extent_around(const std::vector<BoundingBox>& boxes) {
  Extent e{1, boxes.empty() ? kEmptySide : 1, boxes.empty() ? kEmptySide : 1, 3};
  for (const BoundingBox& box : boxes) {
    e.width = std::max(e.width, pixel_of(box.right()));
    e.height = std::max(e.height, pixel_of(box.bottom()));
  }
  if (std::uint64_t(e.width) * std::uint64_t(e.height) > blocks::most_pixels())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "bboxes: a picture that holds them has " + std::to_string(e.width) + " x " +
                    std::to_string(e.height) +
                    " pixels, which is too large. Link the picture that they belong to.");
  return e;
}

void check_drawable(const Extent& e, const char* port) {
  if (e.channels != 3 && e.channels != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(port) + ": it has " +
                                             std::to_string(e.channels) +
                                             " channels. Link a picture of three or four.");
}

}  // namespace

void DrawBBoxes::execute(Context& ctx) {
  const Value given = ctx[bboxes];
  std::vector<std::vector<BoundingBox>> boxes;
  if (!given.is(HEDDLE_KIND_NONE)) boxes = boxes_by_picture(given, "bboxes");
  if (boxes.empty()) boxes.emplace_back();
  std::optional<Pixels> from;
  if (ctx.has(image)) from = Pixels::image(ctx, ctx[image], "image");
  const Extent e = from ? from->extent() : extent_around(boxes[0]);
  check_drawable(e, "image");
  const Canvas to = Canvas::image(ctx, e);
  HostMemory memory(ctx);
  BytePicture picture({1, e.height, e.width, e.channels}, memory);
  const Font font(kLabelPixels);
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    if (from) picture.read(*from, i);
    // One list is for all pictures; of several, what is missing is empty.
    std::vector<BoundingBox> own;
    if (boxes.size() == 1) own = boxes[0];
    if (boxes.size() > 1 && std::size_t(i) < boxes.size()) own = boxes[std::size_t(i)];
    std::ranges::stable_sort(
        own, {}, [](const BoundingBox& b) { return number_in(b.record, "score", 1.0); });
    for (const BoundingBox& box : own) draw_labelled(picture, box, font);
    picture.write(to, i);
  }
  ctx[out] = to.tensor();
}

}  // namespace heddle::image
