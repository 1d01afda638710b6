#include "plugins/image/text_overlay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "plugins/image/font.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

using Rgba = std::array<std::uint8_t, 4>;
constexpr Rgba kBlack{0, 0, 0, 255};

Rgba colour_of(const std::string& text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  const std::size_t digits = text.empty() ? 0 : text.size() - 1;
  const bool is_short = digits == 3 || digits == 4;
  bool is_colour = text.starts_with('#') && (is_short || digits == 6 || digits == 8);
  for (std::size_t i = 1; i < text.size(); ++i) is_colour = is_colour && digit(text[i]) >= 0;
  if (!is_colour)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "color: '" + text + "' is none. Give it as #rrggbb or #rrggbbaa.");
  Rgba colour = kBlack;
  for (std::size_t i = 0; i < (is_short ? digits : digits / 2); ++i) {
    const int high = digit(text[is_short ? 1 + i : 1 + 2 * i]);
    const int low = is_short ? high : digit(text[2 + 2 * i]);
    colour[i] = std::uint8_t(16 * high + low);
  }
  return colour;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// "\n" and "\t" may be written out.
std::u32string unescaped(const std::string& given) {
  std::u32string text;
  const std::u32string points = code_points(given);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const char32_t next = i + 1 < points.size() ? points[i + 1] : U'\0';
    const bool is_escape = points[i] == U'\\' && (next == U'n' || next == U't');
    text += !is_escape ? points[i] : next == U'n' ? U'\n' : U'\t';
    i += is_escape ? 1 : 0;
  }
  return text;
}

// Words of a line, broken into lines of at most that length; a word that is longer is cut.
class LineBreaker {
 public:
  LineBreaker(const Font& font, double most) : font_(font), most_(most) {}

  void add_line(std::u32string_view line) {
    bool is_empty = true;
    current_.clear();
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::size_t(
          std::find_if(line.begin() + std::ptrdiff_t(begin), line.end(), is_space) - line.begin());
      if (end > begin) add_word(std::u32string(line.substr(begin, end - begin)));
      is_empty = is_empty && end == begin;
      begin = end + 1;
    }
    if (is_empty || !current_.empty()) lines_.push_back(current_);
  }
  std::vector<std::u32string> take() { return std::move(lines_); }

 private:
  void add_word(std::u32string word) {
    while (word.size() > 1 && font_.length(word) > most_) {
      std::size_t cut = 1;
      while (cut < word.size() && font_.length(word.substr(0, cut + 1)) <= most_) ++cut;
      finish();
      lines_.push_back(word.substr(0, cut));
      word = word.substr(cut);
    }
    const std::u32string longer = current_.empty() ? word : current_ + U' ' + word;
    if (!current_.empty() && font_.length(longer) > most_) {
      finish();
      current_ = word;
    } else {
      current_ = longer;
    }
  }
  void finish() {
    if (!current_.empty()) lines_.push_back(current_);
    current_.clear();
  }

  const Font& font_;
  const double most_;
  std::u32string current_;
  std::vector<std::u32string> lines_;
};

std::vector<std::u32string> lines_of(std::u32string_view text, const Font& font, double most) {
  LineBreaker breaker(font, most);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(U'\n', begin), text.size());
    breaker.add_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return breaker.take();
}

std::int64_t rounded_to_even(double value) { return std::int64_t(std::nearbyint(value)); }

// A text in lines, as large as it fits: at least 10 pixels or 2 % of the height, unless less was
// asked for.
struct TextBlock {
  std::unique_ptr<Font> font;
  std::vector<std::u32string> lines;
  int stroke = 0;
  std::int64_t advance = 0, margin = 0;  // from line to line; at the picture's edges
  Font::Rows rows;                       // of all lines, from the top of the first
};

TextBlock laid_out(std::u32string_view text, const blocks::GridSize& size, double percent,
                   bool has_outline) {
  TextBlock block;
  const auto height = double(size.height);
  block.margin = rounded_to_even(0.01 * double(std::min(size.width, size.height)));
  const std::int64_t widest = std::max<std::int64_t>(1, size.width - 2 * block.margin),
                     highest = std::max<std::int64_t>(1, size.height - 2 * block.margin);
  auto pixels = std::max<std::int64_t>(1, rounded_to_even(percent / 100 * height));
  const std::int64_t least =
      std::min(pixels, std::max<std::int64_t>(10, rounded_to_even(0.02 * height)));
  while (true) {
    block.font = std::make_unique<Font>(int(pixels));
    block.stroke =
        has_outline ? int(std::max<std::int64_t>(1, rounded_to_even(double(pixels) * 0.04))) : 0;
    block.lines = lines_of(text, *block.font, double(widest));
    block.advance = rounded_to_even(double(pixels) * 1.2);
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      const Font::Rows ink = block.font->rows(block.lines[i]);
      const std::int64_t at = std::int64_t(i) * block.advance, top = at + ink.top - block.stroke,
                         bottom = at + ink.bottom + block.stroke;
      block.rows.top = i == 0 ? top : std::min(block.rows.top, top);
      block.rows.bottom = i == 0 ? bottom : std::max(block.rows.bottom, bottom);
    }
    if (block.rows.bottom - block.rows.top <= highest || pixels <= least) return block;
    pixels = std::max(least, std::int64_t(double(pixels) * 0.9));
  }
}

// A picture in RGBA of 8 bits that begins as nothing at all.
class TextLayer {
 public:
  TextLayer(const blocks::GridSize& size, std::pmr::memory_resource& memory)
      : coverage_(size.width, size.height, memory),
        pixels_(std::size_t(size.width * size.height), Rgba{}, &memory) {}

  Coverage& coverage() { return coverage_; }
  const Rgba* row(std::int64_t y) const { return pixels_.data() + y * coverage_.width(); }

  // Paints what is covered, which begins anew then. As Pillow: where nothing was, the colour comes
  // whole, and only its alpha is mixed.
  void paint(const Rgba& colour) {
    for (std::int64_t y = coverage_.first(); y < coverage_.end(); ++y)
      for (std::int64_t x = 0; x < coverage_.width(); ++x) {
        const int share = coverage_.row(y)[x];
        if (share == 0) continue;
        Rgba& pixel = pixels_[std::size_t(y * coverage_.width() + x)];
        const int of_colour = pixel[3] == 0 ? 255 : share;
        for (std::size_t c = 0; c < 4; ++c)
          pixel[c] = mixed(c == 3 ? share : of_colour, pixel[c], colour[c]);
      }
    coverage_.clear();
  }

 private:
  static std::uint8_t mixed(int share, int below, int above) {
    const int sum = below * (255 - share) + above * share + 128;
    return std::uint8_t(((sum >> 8) + sum) >> 8);
  }

  Coverage coverage_;
  std::pmr::vector<Rgba> pixels_;
};

void draw_block(const TextBlock& block, const blocks::GridSize& size, const std::string& position,
                const std::string& align, const Rgba& colour, TextLayer& layer) {
  const Anchor anchor = align == "left"    ? Anchor::left
                        : align == "right" ? Anchor::right
                                           : Anchor::middle;
  const std::int64_t x = anchor == Anchor::left    ? block.margin
                         : anchor == Anchor::right ? size.width - block.margin
                                                   : size.width / 2;
  std::int64_t y = position == "bottom" ? size.height - block.margin - block.rows.bottom
                                        : block.margin - block.rows.top;
  for (const std::u32string& line : block.lines) {
    if (block.stroke > 0) {
      block.font->draw(line, x, y, anchor, block.stroke, layer.coverage());
      layer.paint(kBlack);
    }
    block.font->draw(line, x, y, anchor, 0, layer.coverage());
    layer.paint(colour);
    y += block.advance;
  }
}

// Over pictures of any number of channels; the fourth is straight alpha.
void compose(const TextLayer& layer, const Pixels& from, const Canvas& to) {
  const Extent& e = from.extent();
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        const Rgba& over = layer.row(y)[x];
        const float* const below = from.at(i, y, x);
        float* const result = to.at(i, y, x);
        const float alpha = float(over[3]) / 255.0f;
        const float behind = e.channels == 4 ? below[3] : 1.0f;
        const float whole = alpha + (1.0f - alpha) * behind;
        for (std::int64_t c = 0; c < std::min<std::int64_t>(e.channels, 3); ++c) {
          const float colour = float(over[std::size_t(c)]) / 255.0f;
          const float mixed = below[c] * behind * (1.0f - alpha) + colour * alpha;
          result[c] = e.channels != 4 ? mixed
                      : whole > 1e-5f ? std::clamp(mixed / whole, 0.0f, 1.0f)
                                      : 0.0f;
        }
        if (e.channels == 4) result[3] = whole;
      }
}

}  // namespace

void TextOverlay::execute(Context& ctx) {
  const Tensor pictures = ctx[images];
  const std::u32string written = unescaped(ctx[text]);
  const Rgba colour = colour_of(ctx[color]);
  if (std::ranges::all_of(written, is_space)) {
    ctx[out] = pictures;
    return;
  }
  const Pixels from = Pixels::image(ctx, pictures, "images");
  const Extent& e = from.extent();
  if (e.channels < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: they have " + std::to_string(e.channels) +
                                             " channels. Link pictures of three or four.");
  HostMemory memory(ctx);
  TextLayer layer(e.size(), memory);
  const TextBlock block = laid_out(written, e.size(), ctx[font_size], ctx[outline]);
  check_cancelled(ctx);
  draw_block(block, e.size(), ctx[position], ctx[align], colour, layer);
  const Canvas to = Canvas::image(ctx, e);
  if (e.channels > 4) to.copy(from);
  compose(layer, from, to);
  ctx[out] = to.tensor();
}

void TextOverlay::infer(Infer& question) { infer_like(question, images, out); }

}  // namespace heddle::image
