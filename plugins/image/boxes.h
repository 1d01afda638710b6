// BOUNDING_BOX and ARRAY values: boxes in pixels {x, y, width, height, metadata}, lists of them,
// one list for each picture, or elements of prompts {type, bbox: [ymin, xmin, ymax, xmax] in
// thousandths, text, desc, color_palette}. Pure; any thread. All throw HEDDLE_INVALID_ARGUMENT,
// with the port's name, for what is none of these.
#pragma once

#include <heddle/node.hpp>
#include <vector>

namespace heddle::image {

struct BoundingBox {
  double x = 0, y = 0, width = 0, height = 0;
  Value record;  // all of it

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  Value metadata() const { return record.field("metadata"); }
};

// Numbers of a record; `otherwise` for what is missing or no number.
double number_in(const Value& record, const char* key, double otherwise = 0);
// The same, without what follows the point.
std::int64_t whole_in(const Value& record, const char* key, std::int64_t otherwise = 0);

// A list for each picture: one box, one list of boxes, or lists of them.
std::vector<std::vector<BoundingBox>> boxes_by_picture(const Value& value, const char* port);

// One list: boxes, the first list of lists, elements (brought to a canvas of that size), or JSON
// text of any of these. Values that are None or empty give none.
std::vector<BoundingBox> boxes_of(const Value& value, std::int64_t width, std::int64_t height,
                                  const char* port);
// Whether it has elements, which are relative to a canvas.
bool has_elements(const Value& value);

// The value of a JSON text.
Value json_of_text(const std::string& text, const char* port);

}  // namespace heddle::image
