#include "regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <new>

#include "regex_dialect.h"
#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr std::size_t kLongestText = std::numeric_limits<int>::max();
constexpr std::size_t kLongestPattern = 8192;  // bytes; published tokenizers stay below 1000

// Steps back that a search may take: so many, and as many a byte of the text. All searches in a
// text together have their own share; what a search takes is not told, so it is tried with a small
// allowance first, and with larger ones when that was too little.
constexpr unsigned long kBacktracksFree = 100'000;
constexpr unsigned long kBacktracksPerByte = 32, kBacktracksPerByteInAll = 256;
constexpr unsigned long kFirstAllowance = 256, kAllowanceGrowth = 8;

// Entries on the stack of a search, of 40 bytes. A loop over one class of characters takes one for
// each of them.
constexpr unsigned long kStackFree = 16'384, kStackPerByte = 1;
constexpr unsigned long kLargestStack = 1UL << 30;

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string message_of(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int size = onig_error_code_to_str(text.data(), code, info);
  return std::string(reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size));
}

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    onig_initialize(&encoding, 1);
    onig_set_warn_func(onig_null_warn);
    onig_set_verb_warn_func(onig_null_warn);
  });
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(R"(\.+*?()|[]{}^$#&-~)").find(c) != std::string_view::npos) {
      out.push_back('\\');
    }
    out.push_back(c);
  }
  return out;
}

}  // namespace

struct Regex::Compiled {
  explicit Compiled(regex_t* owned) : handle(owned) {}
  ~Compiled() { onig_free(handle); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  regex_t* handle;  // owned; Oniguruma only reads it while searching
};

Regex::Regex(std::shared_ptr<const Compiled> compiled, std::string where)
    : compiled_(std::move(compiled)), where_(std::move(where)) {}

Regex Regex::compile(std::string_view pattern, const std::string& where) {
  if (pattern.size() > kLongestPattern) {
    throw TextError(where + ": the pattern has " + std::to_string(pattern.size()) +
                    " bytes, at most " + std::to_string(kLongestPattern) +
                    " are accepted. Check that the file is a tokenizer.json.");
  }
  if (!is_valid_utf8(pattern)) {
    throw TextError(where + ": the pattern is not valid UTF-8. Download the file again.");
  }
  start_library();
  const std::string wide = possessive_pattern(widened_pattern(pattern));
  regex_t* handle = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&handle, bytes_of(wide), bytes_of(wide) + wide.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, OnigDefaultSyntax, &info);
  if (code != ONIG_NORMAL) {
    throw TextError(where + ": the pattern '" + std::string(pattern) + "' does not compile (" +
                    message_of(code, &info) + "). Correct it or download the file again.");
  }
  return Regex(std::make_shared<const Compiled>(handle), where);
}

Regex Regex::literal(std::string_view text, const std::string& where) {
  return compile(escaped(text), where);
}

// A search that goes on where the last match was.
struct Regex::Search {
  struct RegionFree {
    void operator()(OnigRegion* freed) const { onig_region_free(freed, 1); }
  };
  struct ParamFree {
    void operator()(OnigMatchParam* freed) const { onig_free_match_param(freed); }
  };

  Search(const Regex& regex, std::string_view in)
      : pattern(regex),
        text(in),
        region(onig_region_new()),
        param(onig_new_match_param()),
        left(kBacktracksFree + kBacktracksPerByteInAll * in.size()) {
    if (region == nullptr || param == nullptr) throw std::bad_alloc();
    onig_initialize_match_param(param.get());
    const unsigned long stack = kStackFree + kStackPerByte * in.size();
    onig_set_match_stack_limit_size_of_match_param(
        param.get(), static_cast<unsigned int>(std::min(stack, kLargestStack)));
  }

  // The place of the first match from `from` on, or a code of Oniguruma.
  int search_with(unsigned long allowance) {
    onig_set_retry_limit_in_match_of_match_param(param.get(), allowance);
    onig_set_retry_limit_in_search_of_match_param(param.get(), allowance);
    onig_region_clear(region.get());
    const OnigUChar* begin = bytes_of(text);
    const OnigUChar* end = begin + text.size();
    return static_cast<int>(onig_search_with_param(pattern.compiled_->handle, begin, end,
                                                   begin + from, end, region.get(),
                                                   ONIG_OPTION_NONE, param.get()));
  }

  int search() {
    const unsigned long most = kBacktracksFree + kBacktracksPerByte * text.size();
    for (unsigned long allowance = kFirstAllowance;; allowance *= kAllowanceGrowth) {
      allowance = std::min({allowance, most, left});
      const int at = search_with(allowance);
      if (allowance > kFirstAllowance) left -= allowance;
      const bool too_little =
          at == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || at == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
      if (!too_little || allowance == most || left == 0) return at;
      if (left < kFirstAllowance) return at;
    }
  }

  const Regex& pattern;
  const std::string_view text;
  const std::unique_ptr<OnigRegion, RegionFree> region;
  const std::unique_ptr<OnigMatchParam, ParamFree> param;
  unsigned long left;  // of the steps back in all searches together
  std::size_t from = 0;
  std::optional<std::size_t> last_end;  // of the match before
};

Regex::Matches::Matches(std::unique_ptr<Search> search) : search_(std::move(search)) {}
Regex::Matches::Matches(Matches&&) noexcept = default;
Regex::Matches::~Matches() = default;

Regex::Matches Regex::matches(std::string_view text) const {
  if (text.size() > kLongestText) {
    throw TextError(where_ + ": a text of " + std::to_string(text.size()) +
                    " bytes is too long to be searched, at most " + std::to_string(kLongestText) +
                    " are accepted. Shorten the text.");
  }
  return Matches(std::make_unique<Search>(*this, text));
}

std::optional<Span> Regex::Matches::next() {
  Search& s = *search_;
  while (s.from <= s.text.size()) {
    const int at = s.search();
    if (at == ONIG_MISMATCH) break;
    if (at < 0) {
      throw TextError(s.pattern.where_ + ": searching a text of " + std::to_string(s.text.size()) +
                      " bytes failed (" + message_of(at, nullptr) +
                      "). Shorten the text or use a simpler pattern.");
    }
    const Span span{static_cast<std::size_t>(s.region->beg[0]),
                    static_cast<std::size_t>(s.region->end[0])};
    if (span.begin == span.end && s.last_end == span.end) {
      s.from += s.from < s.text.size() ? decode_at(s.text, s.from).size : 1;
      continue;
    }
    s.from = span.end;
    s.last_end = span.end;
    return span;
  }
  s.from = s.text.size() + 1;
  return std::nullopt;
}

}  // namespace heddle::text
