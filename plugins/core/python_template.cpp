#include <charconv>

#include "python_format.h"
#include "python_text.h"

namespace heddle::loaders {
namespace {

[[noreturn]] void refuse_field(const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "f_string: " + why + ". See Python's format strings.");
}

// Replacement fields may stand in the format of another one, not deeper.
constexpr int kDeepestField = 2;

class FieldReader {
 public:
  FieldReader(std::string_view text, const std::function<Value(const std::string&)>& named)
      : text_(text), named_(named) {}

  // Up to the end of the text, or, in the format of a field, up to its '}'.
  std::string read(int depth) {
    std::string result;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '}' && depth > 0) return result;
      ++at_;
      if (c == '{' && !(depth == 0 && take('{'))) {
        result += field(depth + 1);
      } else if (c == '}' && !take('}')) {
        refuse_field("there is a single '}'; write '}}' for one that is text");
      } else {
        result += c;
      }
    }
    if (depth > 0) refuse_field("a '{' has no '}'");
    return result;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Behind the '{'.
  std::string field(int depth) {
    if (depth > kDeepestField) refuse_field("fields are nested too deep");
    Value value = named_value();
    if (take('!')) {
      const char how = at_ < text_.size() ? text_[at_++] : ' ';
      if (how != 's' && how != 'r' && how != 'a')
        refuse_field(std::string("there is no conversion '") + how + "', only s, r and a");
      value = value_of(how == 's' ? python_str(value) : python_repr(value, how == 'a'));
    }
    std::string spec;
    if (take(':')) spec = read(depth);
    if (!take('}')) refuse_field("a '{' has no '}'");
    return python_format(value, spec);
  }
  // A name, and what is taken of its value: "a", "a[0]", "a[key]".
  Value named_value() {
    const std::size_t end = std::min(text_.find_first_of("[.!:{}", at_), text_.size());
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    Value value = named_(name);
    while (take('[')) {
      const std::size_t close = text_.find(']', at_);
      if (close == text_.npos) refuse_field("'" + name + "[' has no ']'");
      value = item_of(value, std::string(text_.substr(at_, close - at_)), name);
      at_ = close + 1;
    }
    if (at_ < text_.size() && text_[at_] == '.')
      refuse_field("the value of '" + name + "' has no attributes");
    return value;
  }
  static Value item_of(const Value& value, const std::string& key, const std::string& name) {
    std::uint32_t index = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    const bool is_index = error == std::errc() && end == key.data() + key.size();
    if (value.is(HEDDLE_KIND_LIST) && is_index && index < value.count()) return value.item(index);
    if (value.is(HEDDLE_KIND_RECORD) && value.has(key.c_str())) return value.field(key.c_str());
    refuse_field("the value of '" + name + "' has no item '" + key + "'");
  }

  std::string_view text_;
  const std::function<Value(const std::string&)>& named_;
  std::size_t at_ = 0;
};

}  // namespace

std::string python_format_text(std::string_view pattern,
                               const std::function<Value(const std::string&)>& named) {
  return FieldReader(pattern, named).read(0);
}

}  // namespace heddle::loaders
