// Texts in DejaVu Sans, drawn by FreeType: one line at a time, laid out and rounded as Pillow's
// basic layout does (hinted advances, glyphs at whole pixels), whose pictures ComfyUI's nodes make.
// The font is part of the plugin. A Font belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::image {

// How much of each pixel of a picture a text covers, 0 to 255.
class Coverage {
 public:
  Coverage(std::int64_t width, std::int64_t height, std::pmr::memory_resource& memory)
      : width_(width),
        height_(height),
        first_(height),
        values_(std::size_t(width * height), 0, &memory) {}

  std::int64_t width() const { return width_; }
  // Rows from first to end are covered somewhere.
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return end_; }
  const std::uint8_t* row(std::int64_t y) const { return values_.data() + y * width_; }
  // On top of what is there, of which 255 - more is left to be seen. Places outside are left out.
  void add(std::int64_t x, std::int64_t y, std::uint8_t more);
  void clear();

 private:
  std::int64_t width_, height_, first_, end_ = 0;
  std::pmr::vector<std::uint8_t> values_;
};

// Code points of UTF-8; each byte that belongs to none is U+FFFD.
std::u32string code_points(std::string_view utf8);

enum class Anchor { left, middle, right };

class Font {
 public:
  // Throws HEDDLE_UNSUPPORTED where FreeType refuses the size.
  explicit Font(int pixels);
  Font(const Font&) = delete;
  Font& operator=(const Font&) = delete;
  ~Font();

  // From the top of a line, where it is drawn, to the line that letters stand on. Pixels.
  int ascent() const;
  // The sum of advances, in pixels.
  double length(std::u32string_view text) const;
  // Where ink is, in rows from the top of the line; of no glyphs, 0 to 0.
  struct Rows {
    std::int64_t top = 0, bottom = 0;
  };
  Rows rows(std::u32string_view text) const;
  // Draws a line whose top is at y, and whose beginning, middle or end at x. stroke: by how much
  // glyphs are made wider on all sides, in pixels.
  void draw(std::u32string_view text, std::int64_t x, std::int64_t y, Anchor anchor, int stroke,
            Coverage& to) const;

 private:
  struct Handles;
  // Where each glyph begins, in 64ths of a pixel, and last where the text ends.
  std::vector<long> places(std::u32string_view text) const;
  std::unique_ptr<Handles> handles_;
};

}  // namespace heddle::image
