#include "unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "unicode_versions.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr char32_t kFirstMark = 0x300;             // below it nothing combines
constexpr char32_t kFirstDecomposed = 0xA0;        // below it nothing decomposes
constexpr std::size_t kLongestDecomposition = 32;  // U+FDFA has 18

enum class Kind { kCanonical, kCompatible };

void decompose(char32_t c, Kind kind, std::vector<char32_t>& out) {
  if (c < kFirstDecomposed || is_in(kNeverDecomposed, c)) {
    out.push_back(c);
    return;
  }
  std::array<utf8proc_int32_t, kLongestDecomposition> parts{};
  int last_boundary = 0;
  const int options =
      UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (kind == Kind::kCompatible ? UTF8PROC_COMPAT : 0);
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                              static_cast<utf8proc_option_t>(options), &last_boundary);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
    out.push_back(c);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) out.push_back(static_cast<char32_t>(parts[i]));
}

int combining_class(char32_t c) {
  if (c < kFirstMark || is_in(kNeverReordered, c)) return 0;
  return static_cast<int>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
}

struct Mark {
  char32_t value;
  int combining_class;
};

// The primary composite of the pair, or 0.
char32_t composite_of(char32_t first, char32_t second) {
  if (second < kFirstMark) return 0;
  std::array<utf8proc_int32_t, 3> pair{static_cast<utf8proc_int32_t>(first),
                                       static_cast<utf8proc_int32_t>(second), 0};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair.data(), 2, options) != 1) return 0;
  const auto composite = static_cast<char32_t>(pair[0]);
  return is_in(kNeverDecomposed, composite) ? 0 : composite;
}

// Puts decomposed characters into canonical order (Unicode 3.11, D109) and, if wanted, together
// again (D117), a starter with what combines with it at a time.
class Arranger {
 public:
  Arranger(bool composes, std::string& out) : composes_(composes), out_(out) {}

  void add(char32_t c) {
    const Mark mark{c, combining_class(c)};
    if (mark.combining_class != 0) {
      marks_.push_back(mark);
      return;
    }
    finish_marks();
    compose(mark);
  }

  void finish() {
    finish_marks();
    write();
  }

 private:
  // utf8proc sorts by exchanging neighbours, which takes quadratic time on a long run of marks; a
  // stable sort does not.
  void finish_marks() {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    for (const Mark& mark : marks_) compose(mark);
    marks_.clear();
  }

  void compose(const Mark& mark) {
    if (!composes_) {
      append_utf8(out_, mark.value);
      return;
    }
    if (has_starter_ && last_class_ < mark.combining_class) {
      if (const char32_t composite = composite_of(open_.front(), mark.value)) {
        open_.front() = composite;
        return;
      }
    }
    if (mark.combining_class == 0) {
      write();
      has_starter_ = true;
      last_class_ = -1;
    } else {
      last_class_ = mark.combining_class;
    }
    open_.push_back(mark.value);
  }

  void write() {
    for (const char32_t c : open_) append_utf8(out_, c);
    open_.clear();
  }

  const bool composes_;
  std::string& out_;
  std::vector<Mark> marks_;     // since the last starter, not in order yet
  std::vector<char32_t> open_;  // the starter, and behind it what did not combine with it
  bool has_starter_ = false;
  int last_class_ = -1;  // of what stands between the starter and here; -1: nothing
};

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

void append_lower_case(std::string& out, char32_t c) {
  if (c == 0x130) {  // the only letter whose lower case is two characters
    out += "i\xCC\x87";
    return;
  }
  for (const CaseRange& range : kNewerLowerCase) {
    if (c >= range.first && c <= range.last) {
      append_utf8(out, static_cast<char32_t>(static_cast<int>(c) + range.to_lower));
      return;
    }
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const auto is_plain = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  Arranger arranger(compose, out);
  std::vector<char32_t> parts;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = decode_at(text, at);
    parts.clear();
    decompose(next.value, compatible ? Kind::kCompatible : Kind::kCanonical, parts);
    for (const char32_t c : parts) arranger.add(c);
    at += next.size;
  }
  arranger.finish();
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = decode_at(text, at);
    append_lower_case(out, next.value);
    at += next.size;
  }
  return out;
}

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_number(char32_t c) {
  const utf8proc_category_t found = category(c);
  if (found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
      found == UTF8PROC_CATEGORY_NO) {
    return true;
  }
  for (const CategoryRange& range : kNewerCategories) {
    if (c >= range.first && c <= range.last) return range.category[0] == 'N';
  }
  return false;
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  CodePoint last = decode_at(text, at);
  std::size_t end = at + last.size;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const CodePoint next = decode_at(text, end);
    const auto before = static_cast<utf8proc_int32_t>(last.value);
    const auto after = static_cast<utf8proc_int32_t>(next.value);
    const bool is_control = last.value < 0x20 || category(last.value) == UTF8PROC_CATEGORY_CC;
    const bool is_break = utf8proc_grapheme_break_stateful(before, after, &state);
    if (is_break && (is_control || !is_in(kNewerExtenders, next.value))) break;
    last = next;
    end += next.size;
  }
  return end;
}

}  // namespace heddle::text
