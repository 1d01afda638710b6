// CreateBoundingBoxes: from boxes to a preview, to boxes in whole pixels, and to elements.
#include <algorithm>
#include <cmath>

#include "plugins/image/box_drawing.h"
#include "plugins/image/boxes.h"
#include "plugins/image/draw_box_nodes.h"

namespace heddle::image {
namespace {

constexpr std::int64_t kLongestPreview = 1024;
constexpr double kDimmed = 0.25;
constexpr std::uint32_t kMostOfPalette = 5;

std::int64_t even_rounded(double value) {
  constexpr double kMost = 1e9;
  return std::isfinite(value) ? std::int64_t(std::nearbyint(std::clamp(value, -kMost, kMost))) : 0;
}

// A box in parts of the canvas, and what is to be there.
struct Region {
  double x, y, w, h;
  bool is_text;
  Value text, desc;
  std::vector<std::string> palette;

  std::string words(const Value& value) const {
    return value.is(HEDDLE_KIND_STR) ? value.as<std::string>() : "";
  }
};

std::vector<std::string> palette_of(const Value& given) {
  std::vector<std::string> colours;
  for (std::uint32_t i = 0; i < given.count(); ++i)
    if (given.item(i).is(HEDDLE_KIND_STR) && !given.item(i).text().empty())
      colours.push_back(given.item(i).as<std::string>());
  return colours;
}

std::vector<Region> regions_of(const std::vector<BoundingBox>& boxes, double width, double height) {
  std::vector<Region> regions;
  for (const BoundingBox& box : boxes) {
    const Value about = box.metadata(), type = about.field("type");
    regions.push_back({box.x / width, box.y / height, box.width / width, box.height / height,
                       type.is(HEDDLE_KIND_STR) && type.text() == "text", about.field("text"),
                       about.field("desc"), palette_of(about.field("palette"))});
  }
  return regions;
}

// What is linked, as the editor keeps it.
Value kept_boxes(const std::vector<BoundingBox>& boxes) {
  std::vector<Value> kept;
  for (const BoundingBox& box : boxes) {
    Record one;
    for (const char* key : {"x", "y", "width", "height"})
      one.set(key, box.record.has(key) ? box.record.field(key) : value_of(std::int64_t{0}));
    if (box.metadata().is(HEDDLE_KIND_RECORD)) one.set("metadata", box.metadata());
    kept.push_back(one.value());
  }
  return list_of(kept);
}

bool is_numeric(const Value& value) {
  return value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT);
}

// As JSON: 1 is 1.0, and the order of keys does not count.
bool are_alike(const Value& a, const Value& b) {
  if (is_numeric(a) && is_numeric(b)) return a.as<double>() == b.as<double>();
  if (a.kind() != b.kind() || a.count() != b.count()) return false;
  if (a.is(HEDDLE_KIND_STR)) return a.text() == b.text();
  if (a.is(HEDDLE_KIND_BOOL)) return a.as<bool>() == b.as<bool>();
  for (std::uint32_t i = 0; i < a.count(); ++i) {
    const Value other = a.is(HEDDLE_KIND_RECORD) ? b.field(a.key(i).c_str()) : b.item(i);
    if (!other || !are_alike(a.item(i), other)) return false;
  }
  return true;
}

Value pixel_boxes(const std::vector<Region>& regions, double width, double height) {
  std::vector<Value> frame;
  for (const Region& r : regions)
    frame.push_back(Record()
                        .set("x", value_of(even_rounded((r.w < 0 ? r.x + r.w : r.x) * width)))
                        .set("y", value_of(even_rounded((r.h < 0 ? r.y + r.h : r.y) * height)))
                        .set("width", value_of(even_rounded(std::fabs(r.w) * width)))
                        .set("height", value_of(even_rounded(std::fabs(r.h) * height)))
                        .value());
  return list_of(frame.empty() ? std::vector<Value>() : std::vector<Value>{list_of(frame)});
}

std::string in_capitals(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return text;
}

Value elements_of(const std::vector<Region>& regions) {
  const auto thousandths = [](double part) {
    return std::clamp<std::int64_t>(even_rounded(part * 1000), 0, 1000);
  };
  const Value no_words = value_of("");
  std::vector<Value> elements;
  for (const Region& r : regions) {
    const auto [top, bottom] = std::minmax({thousandths(r.y), thousandths(r.y + r.h)});
    const auto [left, right] = std::minmax({thousandths(r.x), thousandths(r.x + r.w)});
    Record element;
    element.set("type", value_of(r.is_text ? "text" : "obj"))
        .set("bbox", list_of({value_of(top), value_of(left), value_of(bottom), value_of(right)}));
    if (r.is_text) element.set("text", r.text ? r.text : no_words);
    element.set("desc", r.desc ? r.desc : no_words);
    std::vector<Value> colours;
    for (std::size_t i = 0; i < std::min<std::size_t>(r.palette.size(), kMostOfPalette); ++i)
      colours.push_back(value_of(in_capitals(r.palette[i])));
    if (!colours.empty()) element.set("color_palette", list_of(colours));
    elements.push_back(element.value());
  }
  return list_of(elements);
}

// "#rrggbb"; white for anything else.
Rgb hex_colour(std::string text) {
  text.erase(0, text.find_first_not_of('#'));
  const bool is_hex =
      text.size() == 6 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
  const unsigned long number = is_hex ? std::stoul(text, nullptr, 16) : 0xFFFFFF;
  return {std::uint8_t(number >> 16), std::uint8_t(number >> 8), std::uint8_t(number)};
}
double brightness(const Rgb& c) { return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2]; }
// Bright enough to be read on a dark picture.
Rgb readable(const Rgb& colour) {
  constexpr double kReadable = 130;
  const double own = brightness(colour);
  if (own >= kReadable) return colour;
  const double share = (kReadable - own) / (255 - own);
  Rgb bright;
  for (std::size_t i = 0; i < 3; ++i)
    bright[i] = std::uint8_t(even_rounded(colour[i] + (255 - colour[i]) * share));
  return bright;
}

// Regions on a picture, numbered, each with its colours and words.
class PreviewDrawing {
 public:
  PreviewDrawing(BytePicture& picture, const blocks::GridSize& size)
      : picture_(picture),
        size_(size),
        line_(int(std::max<std::int64_t>(10, even_rounded(double(size.height) / 64)))),
        words_(line_),
        number_(std::max(9, line_ - 2)) {}

  void draw(const Region& r, std::size_t index) {
    const Rgb colour = r.palette.empty() ? Rgb{140, 140, 140} : hex_colour(r.palette[0]);
    const Box box = place_of(r);
    picture_.outline(box, colour, 2);
    draw_swatches(box, r.palette);
    std::string tag = std::to_string(index + 1);
    if (tag.size() < 2) tag = "0" + tag;
    const auto width = std::int64_t(number_.length(code_points(tag)));
    picture_.fill({box.left, box.top, box.left + width + 6, box.top + line_ + 2}, colour);
    picture_.text(number_, tag, box.left + 3, box.top + 1,
                  brightness(colour) > 140 ? Rgb{0, 0, 0} : Rgb{255, 255, 255});
    std::string body = r.words(r.desc);
    if (r.is_text && !r.words(r.text).empty())
      body = "\"" + r.words(r.text) + "\"" + (body.empty() ? "" : " \u2014 " + body);
    if (!body.empty() && box.right - box.left > 8) draw_words(body, box, readable(colour));
  }

 private:
  Box place_of(const Region& r) const {
    const auto side = [](double part, std::int64_t length) {
      return std::clamp<std::int64_t>(even_rounded(part * double(length)), 0, length);
    };
    const auto [left, right] = std::minmax({side(r.x, size_.width), side(r.x + r.w, size_.width)});
    const auto [top, bottom] =
        std::minmax({side(r.y, size_.height), side(r.y + r.h, size_.height)});
    return {left, top, right, bottom};
  }
  void draw_swatches(const Box& box, const std::vector<std::string>& palette) {
    const std::size_t count = std::min<std::size_t>(palette.size(), kMostOfPalette);
    if (count == 0 || box.right - box.left <= 2) return;
    const double width = double(box.right - box.left) / double(count);
    for (std::size_t i = 0; i < count; ++i)
      picture_.fill(
          {box.left + even_rounded(double(i) * width), box.top,
           box.left + even_rounded(double(i + 1) * width), box.top + std::max(5, line_ / 2)},
          hex_colour(palette[i]));
  }
  void draw_words(const std::string& body, const Box& box, const Rgb& colour) {
    const double most = double(box.right - box.left - 8);
    std::int64_t y = box.top + line_ + 5;
    std::string line;
    const auto finish = [&] {
      if (y <= box.bottom) picture_.text(words_, line, box.left + 4, y, colour);
      y += line_ + 2;
      line.clear();
    };
    for (std::size_t begin = 0; begin <= body.size();) {
      const std::size_t end = std::min(body.find_first_of(" \t\r\n", begin), body.size());
      const std::string word = body.substr(begin, end - begin);
      const std::string longer = line.empty() ? word : line + " " + word;
      if (!word.empty() && !line.empty() && words_.length(code_points(longer)) > most) finish();
      if (!word.empty()) line = line.empty() ? word : line + " " + word;
      if (end == body.size() || body[end] == '\n') finish();
      begin = end + 1;
    }
  }

  BytePicture& picture_;
  const blocks::GridSize size_;
  const int line_;
  const Font words_, number_;
};

blocks::GridSize preview_size(std::int64_t width, std::int64_t height) {
  const double scale =
      std::min(1.0, double(kLongestPreview) / double(std::max({width, height, std::int64_t{1}})));
  return {std::max<std::int64_t>(1, even_rounded(double(height) * scale)),
          std::max<std::int64_t>(1, even_rounded(double(width) * scale))};
}

// The first picture of a batch, dimmed; grey without one.
Tensor preview_of(Context& ctx, const std::vector<Region>& regions) {
  using Node = CreateBoundingBoxes;
  std::optional<Pixels> behind;
  if (ctx.has(Node::background)) {
    const Tensor batch = ctx[Node::background];
    behind = Pixels::image(ctx, batch.slice(0, 0, std::min<std::int64_t>(1, batch.size(0))),
                           "background");
  }
  const blocks::GridSize size = behind
                                    ? preview_size(behind->extent().width, behind->extent().height)
                                    : preview_size(ctx[Node::width], ctx[Node::height]);
  if (behind && !(behind->extent().size() == size)) behind->resize(ctx, size, "lanczos");
  HostMemory memory(ctx);
  BytePicture picture({1, size.height, size.width, 3}, memory);
  for (std::int64_t y = 0; y < size.height; ++y)
    for (std::int64_t x = 0; x < size.width; ++x)
      for (std::int64_t c = 0; c < 3; ++c) {
        const double own =
            behind ? behind->at(0, y, x)[c % behind->extent().channels] : 128.0 / 255;
        picture.at(x, y)[c] = std::uint8_t(std::clamp(std::floor(own * 255), 0.0, 255.0) * kDimmed);
      }
  PreviewDrawing drawing(picture, size);
  for (std::size_t i = 0; i < regions.size(); ++i) drawing.draw(regions[i], i);
  const Canvas to = Canvas::image(ctx, {1, size.height, size.width, 3});
  picture.write(to, 0);
  return to.tensor();
}

std::string text_of_json(const Value& value) {
  heddle_value* text = nullptr;
  check(service<heddle_json_service>().write(services.host, value.raw(), &text));
  return Value::adopt(text).as<std::string>();
}

}  // namespace

void CreateBoundingBoxes::execute(Context& ctx) {
  const std::int64_t w = ctx[width], h = ctx[height];
  const Value linked = ctx.has(bboxes) ? ctx[bboxes] : Value();
  const std::vector<BoundingBox> given = boxes_of(linked, w, h, "bboxes");
  const Value incoming = kept_boxes(given),
              last = ctx.has(last_incoming) ? ctx[last_incoming] : Value();
  const bool is_new = !given.empty() && !(last.is(HEDDLE_KIND_LIST) && are_alike(incoming, last));
  std::vector<BoundingBox> boxes = given;
  if (!is_new) {
    const Value drawn = ctx[editor_state];
    boxes.clear();
    if (drawn.is(HEDDLE_KIND_LIST) && drawn.count() > 0)
      boxes = boxes_by_picture(drawn, "editor_state")[0];
  }
  const std::vector<Region> regions = regions_of(boxes, double(w), double(h));
  ctx[preview] = preview_of(ctx, regions);
  ctx[boxes_out] = pixel_boxes(regions, double(w), double(h));
  ctx[elements] = elements_of(regions);
  Record shown;
  shown.set("dims", list_of({value_of(w), value_of(h)}));
  if (!given.empty()) shown.set("input_bboxes", incoming);
  service<heddle_report_service>().wrote(ctx.raw(), nullptr, text_of_json(shown.value()).c_str());
}

}  // namespace heddle::image
