#include "plugins/image/boxes.h"

#include <algorithm>
#include <cmath>

namespace heddle::image {
namespace {

bool is_number(const Value& value) {
  return value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT);
}

[[noreturn]] void refuse_boxes(const char* port, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              std::string(port) + ": " + why +
                  ". Link bounding boxes {x, y, width, height}, elements with a bbox, or JSON text "
                  "of these.");
}

BoundingBox box_of(const Value& record) {
  return {number_in(record, "x"), number_in(record, "y"), number_in(record, "width"),
          number_in(record, "height"), record};
}

std::vector<BoundingBox> boxes_in(const Value& list) {
  std::vector<BoundingBox> boxes;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    if (list.item(i).is(HEDDLE_KIND_RECORD)) boxes.push_back(box_of(list.item(i)));
  return boxes;
}

bool is_element(const Value& record) {
  const Value bbox = record.field("bbox");
  return bbox.is(HEDDLE_KIND_LIST) && bbox.count() == 4;
}

bool is_box(const Value& record) {
  return record.has("x") && record.has("y") && record.has("width") && record.has("height");
}

// What is missing in it has its default.
Value or_else(const Value& value, const Value& otherwise) { return value ? value : otherwise; }

BoundingBox box_of_element(const Value& element, double width, double height, const char* port) {
  const Value bbox = element.field("bbox");
  double part[4] = {};  // ymin, xmin, ymax, xmax
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (!is_element(element) || !is_number(bbox.item(i)))
      refuse_boxes(port, "the bbox of an element has to be four numbers, ymin, xmin, ymax, xmax");
    part[i] = bbox.item(i).as<double>() / 1000;
  }
  const bool is_text =
      element.field("type").is(HEDDLE_KIND_STR) && element.field("type").text() == "text";
  const Value none = value_of(""), no_colours = list_of({});
  BoundingBox box{std::nearbyint(std::min(part[1], part[3]) * width),
                  std::nearbyint(std::min(part[0], part[2]) * height),
                  std::nearbyint(std::fabs(part[3] - part[1]) * width),
                  std::nearbyint(std::fabs(part[2] - part[0]) * height),
                  {}};
  box.record =
      Record()
          .set("x", value_of(std::int64_t(box.x)))
          .set("y", value_of(std::int64_t(box.y)))
          .set("width", value_of(std::int64_t(box.width)))
          .set("height", value_of(std::int64_t(box.height)))
          .set("metadata", Record()
                               .set("type", value_of(is_text ? "text" : "obj"))
                               .set("text", is_text ? or_else(element.field("text"), none) : none)
                               .set("desc", or_else(element.field("desc"), none))
                               .set("palette", or_else(element.field("color_palette"), no_colours))
                               .value())
          .value();
  return box;
}

}  // namespace

double number_in(const Value& record, const char* key, double otherwise) {
  const Value value = record.field(key);
  return is_number(value) ? value.as<double>() : otherwise;
}

std::int64_t whole_in(const Value& record, const char* key, std::int64_t otherwise) {
  constexpr double kMost = 1e15;
  const double number = number_in(record, key, double(otherwise));
  return std::isfinite(number) ? std::int64_t(std::clamp(number, -kMost, kMost)) : otherwise;
}

std::vector<std::vector<BoundingBox>> boxes_by_picture(const Value& value, const char* port) {
  if (value.is(HEDDLE_KIND_RECORD)) return {{box_of(value)}};
  if (!value.is(HEDDLE_KIND_LIST)) refuse_boxes(port, "it holds no boxes");
  if (value.count() > 0 && value.item(0).is(HEDDLE_KIND_RECORD)) return {boxes_in(value)};
  std::vector<std::vector<BoundingBox>> pictures;
  for (std::uint32_t i = 0; i < value.count(); ++i) pictures.push_back(boxes_in(value.item(i)));
  return pictures;
}

Value json_of_text(const std::string& text, const char* port) {
  heddle_value* parsed = nullptr;
  check(service<heddle_json_service>().parse(services.host, {text.data(), text.size()}, port,
                                             &parsed));
  return Value::adopt(parsed);
}

bool has_elements(const Value& value) {
  Value list = value;
  if (list.is(HEDDLE_KIND_LIST) && list.count() > 0 && list.item(0).is(HEDDLE_KIND_LIST))
    list = list.item(0);
  if (list.is(HEDDLE_KIND_RECORD)) return list.field("bbox").is(HEDDLE_KIND_LIST);
  for (std::uint32_t i = 0; list.is(HEDDLE_KIND_LIST) && i < list.count(); ++i)
    if (list.item(i).field("bbox").is(HEDDLE_KIND_LIST)) return true;
  return false;
}

std::vector<BoundingBox> boxes_of(const Value& given, std::int64_t width, std::int64_t height,
                                  const char* port) {
  if (given.is(HEDDLE_KIND_NONE)) return {};
  Value value = given;
  if (value.is(HEDDLE_KIND_STR)) {
    if (value.text().find_first_not_of(" \t\r\n\f\v") == std::string_view::npos) return {};
    value = json_of_text(value.as<std::string>(), port);
  }
  const Value list = value.is(HEDDLE_KIND_RECORD) ? list_of({value}) : value;
  if (!list.is(HEDDLE_KIND_LIST)) refuse_boxes(port, "it holds no boxes");
  if (list.count() == 0) return {};
  const Value first = list.item(0);
  if (first.is(HEDDLE_KIND_LIST)) return boxes_in(first);
  if (is_element(first)) {
    std::vector<BoundingBox> boxes;
    for (std::uint32_t i = 0; i < list.count(); ++i)
      if (list.item(i).is(HEDDLE_KIND_RECORD))
        boxes.push_back(box_of_element(list.item(i), double(width), double(height), port));
    return boxes;
  }
  if (!is_box(first)) refuse_boxes(port, "what it holds is no box");
  return boxes_in(list);
}

}  // namespace heddle::image
