#include "regex.h"

#include <oniguruma.h>

#include <array>
#include <heddle/plugin.hpp>
#include <mutex>
#include <new>
#include <vector>

#include "characters.h"

namespace heddle::loaders {
namespace {

constexpr std::size_t kLongestPattern = 1 << 16;       // bytes
constexpr unsigned long kMostBacktracks = 50'000'000;  // of one search: about a second

const OnigUChar* onig_bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string onig_message(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int size = onig_error_code_to_str(text.data(), code, info);
  return {reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size)};
}

void start_onig() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    onig_initialize(&encoding, 1);
    onig_set_warn_func(onig_null_warn);
    onig_set_verb_warn_func(onig_null_warn);
  });
}

// Oniguruma takes nothing but UTF-8.
std::string valid_text(std::string_view text) {
  const std::vector<Character> all = characters_of(text);
  return text_of_characters(all.data(), all.data() + all.size());
}

}  // namespace

struct Regex::Compiled {
  explicit Compiled(regex_t* owned) : handle(owned) {}
  ~Compiled() { onig_free(handle); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  regex_t* handle;
};

std::optional<Regex> Regex::read(std::string_view pattern, const RegexOptions& options,
                                 std::string* why) {
  start_onig();
  if (pattern.size() > kLongestPattern) {
    if (why != nullptr) *why = "it has more than 65536 bytes";
    return std::nullopt;
  }
  const std::string text = valid_text(pattern);
  OnigOptionType flags = ONIG_OPTION_CAPTURE_GROUP;
  if (options.ignores_case) flags |= ONIG_OPTION_IGNORECASE;
  if (options.by_line) flags |= ONIG_OPTION_NEGATE_SINGLELINE;
  if (options.dot_takes_lines) flags |= ONIG_OPTION_MULTILINE;
  regex_t* handle = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&handle, onig_bytes(text), onig_bytes(text) + text.size(), flags,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_PYTHON, &info);
  if (code == ONIG_NORMAL) return Regex(std::make_shared<const Compiled>(handle));
  if (why != nullptr) *why = onig_message(code, &info);
  return std::nullopt;
}

std::size_t Regex::groups() const {
  return static_cast<std::size_t>(onig_number_of_captures(compiled_->handle));
}

std::size_t Regex::group_named(std::string_view name) const {
  int* numbers = nullptr;
  const int count = onig_name_to_group_numbers(compiled_->handle, onig_bytes(name),
                                               onig_bytes(name) + name.size(), &numbers);
  return count > 0 ? static_cast<std::size_t>(numbers[0]) : 0;
}

struct RegexSearch::State {
  State(const Regex& pattern, std::string_view of) : regex(pattern), text(valid_text(of)) {
    if (region == nullptr || param == nullptr) throw std::bad_alloc();
    onig_initialize_match_param(param);
    onig_set_retry_limit_in_match_of_match_param(param, kMostBacktracks);
    onig_set_retry_limit_in_search_of_match_param(param, kMostBacktracks);
  }
  ~State() {
    onig_region_free(region, 1);
    onig_free_match_param(param);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const OnigUChar* at(std::size_t place) const { return onig_bytes(text) + place; }
  bool succeeded(int code) const {
    if (code >= 0) return true;
    if (code == ONIG_MISMATCH) return false;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "regex_pattern: the search failed: " + onig_message(code, nullptr) +
                    ". Write a pattern that backtracks less.");
  }
  bool search(std::size_t from) {
    onig_region_clear(region);
    return succeeded(static_cast<int>(
        onig_search_with_param(regex.compiled_->handle, at(0), at(text.size()), at(from),
                               at(text.size()), region, ONIG_OPTION_NONE, param)));
  }
  // A match at this place alone, that takes at least a character.
  bool match_some(std::size_t from) {
    onig_region_clear(region);
    return succeeded(static_cast<int>(onig_match_with_param(regex.compiled_->handle, at(0),
                                                            at(text.size()), at(from), region,
                                                            ONIG_OPTION_FIND_NOT_EMPTY, param)));
  }

  const Regex regex;
  const std::string text;
  OnigRegion* region = onig_region_new();
  OnigMatchParam* param = onig_new_match_param();
  std::size_t from = 0;
  bool was_empty = false, is_over = false;
};

RegexSearch::RegexSearch(const Regex& regex, std::string_view text)
    : state_(std::make_unique<State>(regex, text)) {}
RegexSearch::~RegexSearch() = default;

// After an empty match the next one either takes characters at the same place or begins later.
bool RegexSearch::next() {
  State& s = *state_;
  if (s.is_over) return false;
  bool found = false;
  if (s.was_empty) {
    found = s.match_some(s.from);
    if (!found && s.from < s.text.size()) {
      std::size_t later = s.from + 1;
      while (later < s.text.size() && (static_cast<unsigned char>(s.text[later]) & 0xC0) == 0x80)
        ++later;
      found = s.search(later);
    }
  } else {
    found = s.search(s.from);
  }
  s.is_over = !found;
  if (!found) return false;
  s.was_empty = begin() == end();
  s.from = end();
  return true;
}

std::optional<std::string_view> RegexSearch::group(std::size_t which) const {
  const OnigRegion& region = *state_->region;
  if (which >= static_cast<std::size_t>(region.num_regs) || region.beg[which] < 0)
    return std::nullopt;
  const auto first = static_cast<std::size_t>(region.beg[which]),
             last = static_cast<std::size_t>(region.end[which]);
  return std::string_view(state_->text).substr(first, last - first);
}
std::size_t RegexSearch::begin() const { return static_cast<std::size_t>(state_->region->beg[0]); }
std::size_t RegexSearch::end() const { return static_cast<std::size_t>(state_->region->end[0]); }

namespace {

[[noreturn]] void refuse_template(const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "replace: " + what + ". Write \\\\ for a backslash.");
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_figure(char c) { return c >= '0' && c <= '9'; }

// A replacement, in parts: texts, and groups of the match.
struct TemplatePart {
  std::string text;
  std::optional<std::size_t> group;
};

struct TemplateReader {
  const Regex& regex;
  std::string_view rest;
  std::vector<TemplatePart> parts;

  void add_text(std::string_view text) {
    if (parts.empty() || parts.back().group) parts.emplace_back();
    parts.back().text += text;
  }
  void add_group(std::size_t number) {
    if (number > regex.groups())
      refuse_template("the pattern has no group " + std::to_string(number));
    parts.push_back({"", number});
  }
  void add_character(unsigned code) {
    const Character one = code;
    add_text(text_of_characters(&one, &one + 1));
  }
  // After "\g".
  void read_named() {
    const std::size_t close = rest.find('>');
    if (!rest.starts_with('<') || close == rest.npos || close == 1)
      refuse_template("\\g needs a group, as \\g<1> or \\g<name>");
    const std::string name(rest.substr(1, close - 1));
    rest.remove_prefix(close + 1);
    if (name.size() < 4 && name.find_first_not_of("0123456789") == name.npos)
      return add_group(std::stoul(name));
    const std::size_t number = regex.group_named(name);
    if (number == 0) refuse_template("the pattern has no group '" + name + "'");
    add_group(number);
  }
  // After a backslash, where a figure comes: a group, or a character by its octal number.
  void read_figures() {
    std::size_t size = 1;
    const bool is_code = rest[0] == '0' || (rest.size() > 2 && is_octal(rest[0]) &&
                                            is_octal(rest[1]) && is_octal(rest[2]));
    if (is_code)
      while (size < std::min<std::size_t>(3, rest.size()) && is_octal(rest[size])) ++size;
    else
      size = rest.size() > 1 && is_figure(rest[1]) ? 2 : 1;
    const std::string figures(rest.substr(0, size));
    rest.remove_prefix(size);
    if (is_code)
      add_character(static_cast<unsigned>(std::stoul(figures, nullptr, 8) & 0xFF));
    else
      add_group(std::stoul(figures));
  }
  void read_escape() {
    if (rest.empty()) refuse_template("it ends in a backslash");
    constexpr std::string_view kLetters = "abfnrtv\\", kMeant = "\a\b\f\n\r\t\v\\";
    const char c = rest[0];
    if (is_figure(c)) return read_figures();
    rest.remove_prefix(1);
    if (c == 'g') return read_named();
    const std::size_t at = kLetters.find(c);
    if (at != kLetters.npos) return add_text(kMeant.substr(at, 1));
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      refuse_template(std::string("there is no escape \\") + c);
    add_text(std::string("\\") + c);
  }
  void read() {
    while (!rest.empty()) {
      const std::size_t next = rest.find('\\');
      add_text(rest.substr(0, next));
      rest.remove_prefix(std::min(rest.size(), next));
      if (rest.empty()) break;
      rest.remove_prefix(1);
      read_escape();
    }
  }
};

}  // namespace

std::string regex_replaced(const Regex& regex, const std::string& text, std::string_view pattern,
                           std::size_t most) {
  TemplateReader reader{regex, pattern, {}};
  reader.read();
  const std::string whole = valid_text(text);
  RegexSearch search(regex, whole);
  std::string changed;
  std::size_t done = 0;
  for (std::size_t count = 0; (most == 0 || count < most) && search.next(); ++count) {
    changed.append(whole, done, search.begin() - done);
    for (const TemplatePart& part : reader.parts)
      changed += part.group ? search.group(*part.group).value_or("") : std::string_view(part.text);
    done = search.end();
  }
  return changed.append(whole, done);
}

}  // namespace heddle::loaders
