#include "glyph_texts.h"

#include <set>

namespace heddle::encoders {
namespace {

struct Quotation {
  std::string_view open, close;
  std::size_t hopeless_until = 0;  // no mark before this place is closed in its line
};

// The text that begins behind the open mark at `at`; nothing where the line ends before it does.
bool find_end(std::string_view prompt, std::size_t at, Quotation& marks, std::size_t& end) {
  const std::size_t begin = at + marks.open.size();
  const std::size_t line_end = std::min(prompt.find('\n', begin), prompt.size());
  const std::size_t found = prompt.substr(0, line_end).find(marks.close, begin);
  if (found == prompt.npos) {
    marks.hopeless_until = line_end;
    return false;
  }
  end = found;
  return true;
}

}  // namespace

std::string glyph_text(std::string_view prompt) {
  Quotation kinds[] = {{"\"", "\""}, {"\u201c", "\u201d"}};
  std::set<std::string_view> seen;
  std::string sentences;
  for (std::size_t at = 0; at < prompt.size();) {
    std::size_t next = at + 1;
    for (Quotation& marks : kinds) {
      std::size_t end = 0;
      if (at < marks.hopeless_until || !prompt.substr(at).starts_with(marks.open)) continue;
      if (!find_end(prompt, at, marks, end)) continue;
      const std::size_t begin = at + marks.open.size();
      const std::string_view text = prompt.substr(begin, end - begin);
      if (seen.insert(text).second) sentences += "Text \"" + std::string(text) + "\". ";
      next = end + marks.close.size();
      break;
    }
    at = next;
  }
  return sentences;
}

}  // namespace heddle::encoders
