#include "engine/base/json.h"

// RapidJSON's stack, while still empty, compares a null pointer plus an offset. That is harmless
// and not ours to change, so clang's sanitizer is told to look away there, and only there.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json_memory.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// What RapidJSON reads from. Unlike its own streams it is not copied while a token is read, so that
// position() is the end of the token when an event arrives.
class TextStream {
 public:
  using Ch = char;

  explicit TextStream(std::string_view text) : text_(text) {}

  Ch Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  Ch Take() {
    const Ch c = Peek();
    ++at_;
    return c;
  }
  std::size_t Tell() const { return at_; }

  // The half of the stream concept that only in-place parsing calls.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// Line and column of offsets that only grow: one pass over the text in all.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  struct Place {
    std::uint32_t line, column;
  };

  Place of(std::size_t offset) {
    while (seen_ < offset) {
      const void* found = std::memchr(text_.data() + seen_, '\n', offset - seen_);
      if (found == nullptr) break;
      seen_ = static_cast<std::size_t>(static_cast<const char*>(found) - text_.data()) + 1;
      line_start_ = seen_;
      ++line_;
    }
    seen_ = std::max(seen_, offset);
    return {line_, static_cast<std::uint32_t>(offset - line_start_ + 1)};
  }

 private:
  std::string_view text_;
  std::size_t seen_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

// A number's text as RapidJSON has checked it; nothing when it is too large for a double.
std::optional<Json> number_of(std::string_view text) {
  const char* const end = text.data() + text.size();
  const bool minus = text.front() == '-';
  const char first = text[minus ? 1 : 0];
  if (first == 'N') return Json(std::numeric_limits<double>::quiet_NaN());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (first == 'I') return Json(minus ? -kInfinity : kInfinity);
  const bool is_whole = text.find_first_of(".eE") == std::string_view::npos;
  if (is_whole) {
    std::int64_t whole = 0;
    if (std::from_chars(text.data(), end, whole).ec == std::errc()) return Json(whole);
    std::uint64_t large = 0;
    if (!minus && std::from_chars(text.data(), end, large).ec == std::errc()) return Json(large);
  }
  double real = 0;
  if (std::from_chars(text.data(), end, real).ec == std::errc())
    return is_whole ? Json::wide_integer(real, std::string(text)) : Json(real);
  // from_chars does not say on which side the number left the range; the wider type still tells a
  // large one from a small.
  long double wide = 0;
  std::from_chars(text.data(), end, wide);
  if (std::abs(wide) > 1) return std::nullopt;
  return Json(minus ? -0.0 : 0.0);
}

// Receives RapidJSON's events and builds the value. An event that returns false ends the parsing;
// `failure` says why.
class Builder {
 public:
  Builder(std::string_view text, const TextStream& stream, const JsonTaker& take)
      : text_(text), stream_(stream), take_(take), places_(text) {
    open_.reserve(8);
  }

  bool Null() { return add(Json(), stream_.Tell() - 4); }
  bool Bool(bool value) { return add(Json(value), stream_.Tell() - (value ? 4 : 5)); }
  bool RawNumber(const char* text, unsigned length, bool) {
    const std::size_t start = stream_.Tell() - length;
    std::optional<Json> number = number_of({text, length});
    if (!number) return fail(start, "the number is too large");
    return add(*std::move(number), start);
  }
  bool String(const char* text, unsigned length, bool) {
    const std::size_t start = string_start();
    return is_sound(text, length, start) && add(Json(std::string_view(text, length)), start);
  }
  bool Key(const char* text, unsigned length, bool) {
    const std::size_t start = string_start();
    if (!is_sound(text, length, start)) return false;
    const Places::Place place = places_.of(start);
    const auto [member, is_new] = open_.back().json->insert(std::string(text, length));
    if (is_new) {
      member.line = place.line;
      member.column = place.column;
    } else {
      member.repeated = true;
    }
    open_.back().member = &member;
    return true;
  }
  bool StartObject() { return start(Json::object()); }
  bool StartArray() { return start(Json::array()); }
  bool EndObject(unsigned) {
    open_.pop_back();
    if (!take_ || open_.empty() || open_.size() > 2) return true;
    Json::Member *const outer = open_.front().member, *const member = open_.back().member;
    if (outer == nullptr || member == nullptr) return true;  // it stands in an array
    if (take_(outer == member ? std::string_view() : outer->key, *member)) member->value = Json();
    return true;
  }
  bool EndArray(unsigned) {
    open_.pop_back();
    return true;
  }

  // With kParseNumbersAsStringsFlag numbers come by RawNumber only.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

  struct Failure {
    std::size_t offset;
    std::string what;
  };
  const std::optional<Failure>& failure() const { return failure_; }
  Places& places() { return places_; }
  Json take_root() { return std::move(root_); }

 private:
  bool fail(std::size_t offset, std::string what) {
    failure_ = {offset, std::move(what)};
    return false;
  }

  // Offset of the opening quote of the string that ends here. Looking back, a quote inside has an
  // odd number of backslashes before it, and before the opening one there can be none.
  std::size_t string_start() const {
    std::size_t quote = stream_.Tell() - 1;
    for (;;) {
      quote = text_.rfind('"', quote - 1);
      std::size_t slashes = 0;
      while (slashes < quote && text_[quote - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) return quote;
    }
  }

  // The text itself was checked before; a \u escape can still have made half of a surrogate pair.
  bool is_sound(const char* text, std::size_t length, std::size_t start) {
    if (length + 2 == stream_.Tell() - start) return true;  // no escapes
    if (!find_invalid_utf8({text, length})) return true;
    return fail(start, "the text holds an unpaired surrogate (\\udc00 to \\udfff)");
  }

  bool start(Json container) {
    const std::size_t offset = stream_.Tell();  // this event comes before the bracket is taken
    if (open_.size() == kMaxJsonDepth) {
      return fail(offset, cat("arrays and objects are nested more than ", kMaxJsonDepth, " deep"));
    }
    const Places::Place place = places_.of(offset);
    container.set_place(place.line, place.column);
    open_.push_back({&put(std::move(container)), nullptr});
    return true;
  }

  bool add(Json value, std::size_t offset) {
    const Places::Place place = places_.of(offset);
    value.set_place(place.line, place.column);
    put(std::move(value));
    return true;
  }

  // Where it stands now, until another value is put beside it.
  Json& put(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    const Open& around = open_.back();
    if (around.member != nullptr) return around.member->value = std::move(value);
    return around.json->append(std::move(value));
  }

  // A container around the current place. Containers are filled where they stand: nothing is put
  // beside one that is open, so it does not move.
  struct Open {
    Json* json;
    Json::Member* member;  // of an object: the one that waits for its value, or has it
  };

  std::string_view text_;
  const TextStream& stream_;
  const JsonTaker& take_;
  Places places_;
  std::vector<Open> open_;  // outermost first
  Json root_;
  std::optional<Failure> failure_;
};

std::string_view explain(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
      return "the text is empty";
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return "there is more text behind the value";
    case rapidjson::kParseErrorValueInvalid:
      return "expected a value";
    case rapidjson::kParseErrorObjectMissName:
      return "expected a key in double quotes or '}'";
    case rapidjson::kParseErrorObjectMissColon:
      return "expected ':' after the key";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}' in the object";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']' in the array";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return "expected four hexadecimal digits after \\u";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return "unpaired surrogate in a \\u escape";
    case rapidjson::kParseErrorStringEscapeInvalid:
      return "invalid escape or bare control character in a text";
    case rapidjson::kParseErrorStringMissQuotationMark:
      return "the text's closing quote is missing";
    case rapidjson::kParseErrorStringInvalidEncoding:
      return "invalid UTF-8";
    case rapidjson::kParseErrorNumberTooBig:
      return "the number is too large";
    case rapidjson::kParseErrorNumberMissFraction:
      return "expected a digit after the decimal point";
    case rapidjson::kParseErrorNumberMissExponent:
      return "expected a digit in the exponent";
    default:
      return "syntax error";
  }
}

[[noreturn]] void refuse(std::string_view name, Places::Place place, std::string_view what) {
  throw Error(Code::invalid_argument, cat(name, ":", place.line, ":", place.column, ": ", what));
}

std::string real_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::string text = cat(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename Writer>
void write_text(Writer& writer, std::string_view text, bool is_key) {
  std::string repaired;
  if (find_invalid_utf8(text)) {
    repaired = to_valid_utf8(text);
    text = repaired;
  }
  const auto length = static_cast<rapidjson::SizeType>(text.size());
  is_key ? writer.Key(text.data(), length) : writer.String(text.data(), length);
}

template <typename Writer>
void write_value(Writer& writer, const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null:
      writer.Null();
      break;
    case Json::Kind::boolean:
      writer.Bool(json.as_bool());
      break;
    case Json::Kind::integer:
      writer.Int64(json.as_int64());
      break;
    case Json::Kind::unsigned_integer:
      writer.Uint64(json.as_uint64());
      break;
    case Json::Kind::real: {
      const std::string* wide = json.wide_digits();
      const std::string text = wide != nullptr ? *wide : real_text(json.as_double());
      writer.RawValue(text.data(), text.size(), rapidjson::kNumberType);
      break;
    }
    case Json::Kind::string:
      write_text(writer, json.as_string(), false);
      break;
    case Json::Kind::array:
      writer.StartArray();
      for (const Json& element : json.as_array()) write_value(writer, element);
      writer.EndArray();
      break;
    case Json::Kind::object:
      writer.StartObject();
      for (const Json::Member& member : json.members()) {
        write_text(writer, member.key, true);
        write_value(writer, member.value);
      }
      writer.EndObject();
      break;
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view name_for_errors) {
  return parse_json(text, name_for_errors, {});
}

Json parse_json(std::string_view text, std::string_view name_for_errors, const JsonTaker& take) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(Code::unsupported, cat(name_for_errors, ": ", format_bytes(text.size()),
                                       " of JSON are too much; the limit is 4.0 GiB"));
  }
  if (const std::optional<std::size_t> invalid = find_invalid_utf8(text))
    refuse(name_for_errors, Places(text).of(*invalid),
           explain(rapidjson::kParseErrorStringInvalidEncoding));
  TextStream stream(text);
  Builder builder(text, stream, take);
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, JsonMemory> reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (builder.failure()) {
    refuse(name_for_errors, builder.places().of(builder.failure()->offset),
           builder.failure()->what);
  }
  // Errors are rare: their place is found by a second pass, as RapidJSON may name an offset before
  // the last event's.
  if (result.IsError())
    refuse(name_for_errors, Places(text).of(std::min(result.Offset(), text.size())),
           explain(result.Code()));
  // A NUL byte ends the text for RapidJSON.
  if (stream.Tell() < text.size()) {
    refuse(name_for_errors, Places(text).of(stream.Tell()),
           explain(rapidjson::kParseErrorDocumentRootNotSingular));
  }
  return builder.take_root();
}

std::string write_json(const Json& json, int indent) {
  using Text = rapidjson::UTF8<>;
  using Buffer = rapidjson::GenericStringBuffer<Text, JsonMemory>;
  Buffer buffer;
  if (indent <= 0) {
    rapidjson::Writer<Buffer, Text, Text, JsonMemory> writer(buffer);
    write_value(writer, json);
  } else {
    rapidjson::PrettyWriter<Buffer, Text, Text, JsonMemory> writer(buffer);
    writer.SetIndent(' ', static_cast<unsigned>(indent));
    write_value(writer, json);
  }
  return std::string(buffer.GetString(), buffer.GetSize());
}

}  // namespace heddle::engine
