// A JSON value that knows the place in the text it came from, so that whoever refuses it can say
// where. Made by parse_json() or in code; written by write_json() (both in json.h). A plain value:
// copies are deep, const functions may be called by any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle::engine {

class Json {
 public:
  enum class Kind : std::uint8_t {
    null,
    boolean,
    integer,
    unsigned_integer,
    real,
    string,
    array,
    object
  };
  struct Member;

  // Values made in code convert without ceremony: object.set("steps", 20). They have no place (line
  // 0).
  Json() noexcept;
  Json(std::nullptr_t) noexcept;
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  Json(double number);
  template <std::same_as<bool> T>
  Json(T boolean) : Json(Scalar(boolean)) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T number) : Json(to_scalar(number)) {}
  static Json array();
  static Json object();

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  // A whole number outside of 64 bits, as it is written. It is real, of the nearest value, but is
  // told and written with all of its digits.
  static Json wide_integer(double nearest, std::string digits);

  // unsigned_integer is an integer above 2^63-1, so every whole number has one kind. 5.0 and 5e0
  // are real; so is a whole number outside of 64 bits.
  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer || kind() == Kind::unsigned_integer; }
  bool is_number() const { return is_integer() || kind() == Kind::real; }
  // The digits of a whole number outside of 64 bits; nullptr for everything else.
  const std::string* wide_digits() const;
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  // Of the first character, counted from 1; columns count bytes. 0 for a value made in code.
  std::uint32_t line() const { return line_; }
  std::uint32_t column() const { return column_; }
  std::string where() const;     // "31:20", or "" for a value made in code
  std::string describe() const;  // "the integer 5", "an object of 3 members": for messages

  // The content. Every accessor throws Error(invalid_argument) "31:20: expected a string, got the
  // integer 5".
  bool as_bool() const;
  std::int64_t as_int64() const;         // integers in range; never a real
  std::uint64_t as_uint64() const;       // integers in range; never a real
  double as_double() const;              // reals and integers (rounded to the nearest)
  const std::string& as_string() const;  // may hold NUL bytes
  const std::vector<Json>& as_array() const;
  const std::vector<Member>& members() const;  // of an object, in the order of the text

  // Elements of an array or members of an object; 0 for everything else.
  std::size_t size() const;

  // The member's value, or nullptr; also nullptr when this is not an object. Constant time.
  const Json* find(std::string_view key) const;
  // The member's value; throws when this is not an object or has no such member (with a
  // did-you-mean).
  const Json& at(std::string_view key) const;
  // The element; throws when this is not an array or is shorter.
  const Json& at(std::size_t index) const;

  // Sets a member and returns *this. A key that is there keeps its position. REQUIRES: an object.
  Json& set(std::string key, Json value);
  // Appends an element and returns *this. REQUIRES: an array.
  Json& push(Json value);
  // Appends an element and returns it: valid until the next one. REQUIRES: an array.
  Json& append(Json value);

  // For readers. The place of this value; the member of this key, made with the value null when it
  // is not there (second: whether it was made). The reference lives until the next insert() or
  // set(). REQUIRES: an object.
  void set_place(std::uint32_t line, std::uint32_t column);
  std::pair<Member&, bool> insert(std::string key);

  // Same kind and content wherever they stand in a text; members in any order; 5 and 5.0 differ;
  // NaN differs from itself.
  friend bool operator==(const Json& a, const Json& b);

 private:
  class Object;
  using Scalar = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double>;
  struct Wide {
    double nearest;
    std::string digits;
  };
  using Content =
      std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                   std::vector<Json>, std::unique_ptr<Object>, std::shared_ptr<const Wide>>;

  explicit Json(const Scalar& scalar);
  template <std::integral T>
  static Scalar to_scalar(T number) {
    if (std::in_range<std::int64_t>(number)) return static_cast<std::int64_t>(number);
    return static_cast<std::uint64_t>(number);
  }
  std::string expected(std::string_view what) const;
  const Object& as_object() const;
  Object& editable_object();

  Content content_;
  std::uint32_t line_ = 0;
  std::uint32_t column_ = 0;
};

struct Json::Member {
  std::string key;
  Json value;
  std::uint32_t line = 0;  // of the key
  std::uint32_t column = 0;
  // The text held this key more than once: the value is the last one, the position the first one's,
  // as in Python.
  bool repeated = false;
};

}  // namespace heddle::engine
