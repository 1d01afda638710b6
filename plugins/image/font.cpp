#include "plugins/image/font.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_GLYPH_H
#include FT_STROKER_H

#include <algorithm>
#include <heddle/plugin.hpp>

// The assembler puts the bytes of the font's file between two symbols.
asm(".pushsection .rodata\nheddle_font_begin:\n.incbin \"" HEDDLE_FONT
    "\"\nheddle_font_end:\n.byte 0\n.popsection\n");
extern "C" [[gnu::visibility("hidden")]] const unsigned char heddle_font_begin[], heddle_font_end[];

namespace heddle::image {
namespace {

constexpr long kUnit = 64;  // FreeType's of a pixel

void check_font(FT_Error error, const char* what) {
  if (error == FT_Err_Out_Of_Memory) throw std::bad_alloc();
  if (error != 0)
    throw Error(HEDDLE_UNSUPPORTED, std::string("the font: FreeType cannot ") + what + " (error " +
                                        std::to_string(error) + "). Choose another size of text.");
}

long floor_pixels(long units) {
  return units >= 0 ? units / kUnit : -((kUnit - 1 - units) / kUnit);
}
long rounded_pixels(long units) { return floor_pixels(units + kUnit / 2); }

struct FreeGlyph {
  void operator()(FT_Glyph glyph) const { FT_Done_Glyph(glyph); }
};
using HeldGlyph = std::unique_ptr<FT_GlyphRec_, FreeGlyph>;

void add_bitmap(const FT_Bitmap& bitmap, std::int64_t x, std::int64_t y, Coverage& to) {
  for (unsigned row = 0; row < bitmap.rows; ++row) {
    const unsigned char* const from = bitmap.buffer + std::ptrdiff_t(row) * bitmap.pitch;
    for (unsigned column = 0; column < bitmap.width; ++column)
      if (from[column] != 0) to.add(x + column, y + row, from[column]);
  }
}

}  // namespace

void Coverage::add(std::int64_t x, std::int64_t y, std::uint8_t more) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::uint8_t& value = values_[std::size_t(y * width_ + x)];
  value = std::uint8_t(value + more - (value * more + 127) / 255);
  first_ = std::min(first_, y);
  end_ = std::max(end_, y + 1);
}

void Coverage::clear() {
  if (first_ < end_)
    std::fill(values_.begin() + first_ * width_, values_.begin() + end_ * width_, std::uint8_t{0});
  first_ = height_;
  end_ = 0;
}

std::u32string code_points(std::string_view utf8) {
  constexpr char32_t kUnknown = 0xFFFD;
  std::u32string text;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const std::size_t size = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
    char32_t point = size == 1 ? lead : lead & (0xFFu >> (size + 1));
    bool whole = size > 0 && i + size <= utf8.size();
    for (std::size_t k = 1; whole && k < size; ++k) {
      const auto next = static_cast<unsigned char>(utf8[i + k]);
      whole = (next & 0xC0) == 0x80;
      point = point << 6 | (next & 0x3F);
    }
    text += whole ? point : kUnknown;
    i += whole ? size : 1;
  }
  return text;
}

struct Font::Handles {
  FT_Library library = nullptr;
  FT_Face face = nullptr;
  ~Handles() {
    if (face != nullptr) FT_Done_Face(face);
    if (library != nullptr) FT_Done_FreeType(library);
  }
};

Font::Font(int pixels) : handles_(std::make_unique<Handles>()) {
  check_font(FT_Init_FreeType(&handles_->library), "begin");
  check_font(FT_New_Memory_Face(handles_->library, heddle_font_begin,
                                heddle_font_end - heddle_font_begin, 0, &handles_->face),
             "read the font");
  check_font(FT_Set_Pixel_Sizes(handles_->face, 0, FT_UInt(pixels)),
             ("draw letters of " + std::to_string(pixels) + " pixels").c_str());
}
Font::~Font() = default;

int Font::ascent() const { return int(rounded_pixels(handles_->face->size->metrics.ascender)); }

// Pillow's basic layout divides the kerning between two letters by 64 once too often, so that it
// hardly counts.
std::vector<long> Font::places(std::u32string_view text) const {
  std::vector<long> places{0};
  FT_Face face = handles_->face;
  FT_UInt last = 0;
  for (const char32_t point : text) {
    const FT_UInt index = FT_Get_Char_Index(face, point);
    FT_Vector kerning{0, 0};
    if (last != 0 && index != 0 && FT_HAS_KERNING(face) &&
        FT_Get_Kerning(face, last, index, FT_KERNING_DEFAULT, &kerning) == 0)
      places.back() += rounded_pixels(kerning.x);
    check_font(FT_Load_Glyph(face, index, FT_LOAD_DEFAULT | FT_LOAD_NO_BITMAP), "load a letter");
    places.push_back(places.back() + face->glyph->metrics.horiAdvance);
    last = index;
  }
  return places;
}

double Font::length(std::u32string_view text) const {
  return double(places(text).back()) / double(kUnit);
}

Font::Rows Font::rows(std::u32string_view text) const {
  if (text.empty()) return {};
  FT_Face face = handles_->face;
  long most = 0, least = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    check_font(FT_Load_Char(face, text[i], FT_LOAD_DEFAULT | FT_LOAD_NO_BITMAP), "load a letter");
    FT_Glyph raw = nullptr;
    check_font(FT_Get_Glyph(face->glyph, &raw), "load a letter");
    const HeldGlyph glyph(raw);
    FT_BBox box;
    FT_Glyph_Get_CBox(raw, FT_GLYPH_BBOX_PIXELS, &box);
    most = i == 0 ? box.yMax : std::max(most, box.yMax);
    least = i == 0 ? box.yMin : std::min(least, box.yMin);
  }
  return {ascent() - most, ascent() - least};
}

void Font::draw(std::u32string_view text, std::int64_t x, std::int64_t y, Anchor anchor, int stroke,
                Coverage& to) const {
  FT_Face face = handles_->face;
  const std::vector<long> at = places(text);
  if (anchor == Anchor::middle) x -= rounded_pixels(at.back() / 2);
  if (anchor == Anchor::right) x -= rounded_pixels(at.back());
  FT_Stroker stroker = nullptr;
  if (stroke > 0) check_font(FT_Stroker_New(handles_->library, &stroker), "draw outlines");
  const std::unique_ptr<FT_StrokerRec_, void (*)(FT_Stroker)> held(stroker, &FT_Stroker_Done);
  if (stroke > 0)
    FT_Stroker_Set(stroker, stroke * kUnit, FT_STROKER_LINECAP_ROUND, FT_STROKER_LINEJOIN_ROUND, 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    check_font(FT_Load_Char(face, text[i], FT_LOAD_DEFAULT | FT_LOAD_NO_BITMAP), "load a letter");
    FT_Glyph raw = nullptr;
    check_font(FT_Get_Glyph(face->glyph, &raw), "load a letter");
    HeldGlyph glyph(raw);
    // On success these two put another glyph in the place of the first one.
    if (stroke > 0) {
      raw = glyph.release();
      const FT_Error failed = FT_Glyph_StrokeBorder(&raw, stroker, 0, 1);
      glyph.reset(raw);
      check_font(failed, "draw an outline");
    }
    raw = glyph.release();
    const FT_Error failed = FT_Glyph_To_Bitmap(&raw, FT_RENDER_MODE_NORMAL, nullptr, 1);
    glyph.reset(raw);
    check_font(failed, "draw a letter");
    const auto& drawn = *reinterpret_cast<FT_BitmapGlyph>(raw);
    add_bitmap(drawn.bitmap, x + rounded_pixels(at[i]) + drawn.left, y + ascent() - drawn.top, to);
  }
}

}  // namespace heddle::image
