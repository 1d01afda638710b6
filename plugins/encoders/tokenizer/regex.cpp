#include "regex.h"

#include <oniguruma.h>

#include <array>
#include <mutex>

#include "regex_dialect.h"
#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr std::size_t kLongestPattern = 8192;  // bytes; published tokenizers stay below 1000
constexpr unsigned long kBacktracksPerSearch =
    100'000;  // and as many per byte of the text as below
constexpr unsigned long kBacktracksPerByte = 32;

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

struct RegionFree {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};

struct ParamFree {
  void operator()(OnigMatchParam* param) const { onig_free_match_param(param); }
};

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
  const std::string wide = widened_pattern(pattern);
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

std::vector<Span> Regex::find_all(std::string_view text) const {
  std::unique_ptr<OnigRegion, RegionFree> region(onig_region_new());
  std::unique_ptr<OnigMatchParam, ParamFree> param(onig_new_match_param());
  const unsigned long share = kBacktracksPerSearch + kBacktracksPerByte * text.size();
  onig_initialize_match_param(param.get());
  onig_set_retry_limit_in_match_of_match_param(param.get(), share);
  onig_set_retry_limit_in_search_of_match_param(param.get(), share);

  std::vector<Span> found;
  const OnigUChar* begin = bytes_of(text);
  const OnigUChar* end = begin + text.size();
  for (std::size_t from = 0; from <= text.size();) {
    onig_region_clear(region.get());
    const auto at = onig_search_with_param(compiled_->handle, begin, end, begin + from, end,
                                           region.get(), ONIG_OPTION_NONE, param.get());
    if (at == ONIG_MISMATCH) break;
    if (at < 0) {
      throw TextError(where_ + ": searching a text of " + std::to_string(text.size()) +
                      " bytes failed (" + message_of(static_cast<int>(at), nullptr) +
                      "). Shorten the text or use a simpler pattern.");
    }
    const Span span{static_cast<std::size_t>(region->beg[0]),
                    static_cast<std::size_t>(region->end[0])};
    if (span.begin == span.end && !found.empty() && found.back().end == span.end) {
      from += from < text.size() ? decode_at(text, from).size : 1;
      continue;
    }
    found.push_back(span);
    from = span.end;
  }
  return found;
}

}  // namespace heddle::text
