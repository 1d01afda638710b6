#include "engine/base/json_value.h"

#include <algorithm>
#include <functional>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::engine {

// Members in order plus an index by key: a table of open addressing that holds member number + 1.
// Objects of a few members are searched directly.
class Json::Object {
 public:
  const std::vector<Member>& members() const { return members_; }

  const Member* find(std::string_view key) const {
    if (slots_.empty()) {
      const auto found = std::find_if(members_.begin(), members_.end(),
                                      [&](const Member& m) { return m.key == key; });
      return found == members_.end() ? nullptr : &*found;
    }
    const std::uint32_t number = slots_[slot_of(key)];
    return number == 0 ? nullptr : &members_[number - 1];
  }

  // The member of this key, made when it is not there; `second` tells whether it was made.
  std::pair<Member&, bool> insert(std::string key) {
    if (const Member* old = find(key))
      return {members_[static_cast<std::size_t>(old - members_.data())], false};
    if (members_.empty()) members_.reserve(4);  // most objects are small: grow once, not thrice
    members_.push_back(Member{.key = std::move(key), .value = {}});
    if (members_.size() > kDirect && members_.size() * 2 > slots_.size()) {
      rebuild();
    } else if (!slots_.empty()) {
      slots_[slot_of(members_.back().key)] = static_cast<std::uint32_t>(members_.size());
    }
    return {members_.back(), true};
  }

 private:
  static constexpr std::size_t kDirect = 8;

  // The slot that holds the key, or the free one where it belongs.
  std::size_t slot_of(std::string_view key) const {
    const std::size_t mask = slots_.size() - 1;  // a power of two
    std::size_t slot = std::hash<std::string_view>()(key) & mask;
    while (slots_[slot] != 0 && members_[slots_[slot] - 1].key != key) slot = (slot + 1) & mask;
    return slot;
  }

  void rebuild() {
    slots_.assign(std::max<std::size_t>(32, slots_.size() * 2), 0);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      slots_[slot_of(members_[i].key)] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<Member> members_;
  std::vector<std::uint32_t> slots_;
};

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(std::string text) : content_(std::move(text)) {}
Json::Json(std::string_view text) : content_(std::string(text)) {}
Json::Json(const char* text) : content_(std::string(text)) {}
Json::Json(double number) : content_(number) {}
Json::Json(const Scalar& scalar)
    : content_(std::visit([](auto value) { return Content(value); }, scalar)) {}

Json Json::array() {
  Json json;
  json.content_.emplace<std::vector<Json>>();
  return json;
}

Json Json::object() {
  Json json;
  json.content_ = std::make_unique<Object>();
  return json;
}

Json::Json(const Json& other)
    : content_(std::visit(
          [](const auto& value) -> Content {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::unique_ptr<Object>>) {
              return std::make_unique<Object>(*value);
            } else {
              return value;
            }
          },
          other.content_)),
      line_(other.line_),
      column_(other.column_) {}
Json::Json(Json&& other) noexcept
    : content_(std::move(other.content_)), line_(other.line_), column_(other.column_) {
  other.content_.emplace<std::monostate>();
}
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&& other) noexcept {
  // By way of a local: `other` may be a part of what this assignment destroys.
  Content content = std::move(other.content_);
  other.content_.emplace<std::monostate>();
  line_ = other.line_;
  column_ = other.column_;
  content_ = std::move(content);
  return *this;
}
Json::~Json() = default;

Json Json::wide_integer(double nearest, std::string digits) {
  Json json;
  json.content_ = std::make_shared<const Wide>(Wide{nearest, std::move(digits)});
  return json;
}

const std::string* Json::wide_digits() const {
  const auto* wide = std::get_if<std::shared_ptr<const Wide>>(&content_);
  return wide == nullptr ? nullptr : &(*wide)->digits;
}

Json::Kind Json::kind() const {
  constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::object) + 1;
  return content_.index() < kKinds ? static_cast<Kind>(content_.index()) : Kind::real;
}

std::string Json::where() const { return line_ == 0 ? "" : cat(line_, ":", column_); }

std::string Json::describe() const {
  constexpr std::size_t kLongest = 60;  // bytes of a text shown in a message
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return as_bool() ? "true" : "false";
    case Kind::integer:
      return cat("the integer ", as_int64());
    case Kind::unsigned_integer:
      return cat("the integer ", as_uint64());
    case Kind::real:
      if (const std::string* digits = wide_digits())
        return cat("the integer ", clip(*digits, kLongest));
      return cat("the number ", write_json(*this));
    case Kind::string:
      return cat("the text ", quote(clip(as_string(), kLongest)));
    case Kind::array:
      return cat("an array of ", size(), size() == 1 ? " element" : " elements");
    case Kind::object:
      return cat("an object of ", size(), size() == 1 ? " member" : " members");
  }
  return "a value of unknown kind";
}

std::string Json::expected(std::string_view what) const {
  return cat(where(), line_ == 0 ? "" : ": ", "expected ", what, ", got ", describe());
}

bool Json::as_bool() const {
  if (const bool* value = std::get_if<bool>(&content_)) return *value;
  throw Error(Code::invalid_argument, expected("true or false"));
}

std::int64_t Json::as_int64() const {
  if (const auto* value = std::get_if<std::int64_t>(&content_)) return *value;
  throw Error(Code::invalid_argument, expected(is_integer()    ? "an integer below 2^63"
                                               : wide_digits() ? "an integer of 64 bits"
                                                               : "an integer"));
}

std::uint64_t Json::as_uint64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&content_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&content_)) {
    if (*value >= 0) return static_cast<std::uint64_t>(*value);
  }
  throw Error(Code::invalid_argument,
              expected(wide_digits() ? "an integer of 64 bits" : "an integer of at least 0"));
}

double Json::as_double() const {
  if (const auto* value = std::get_if<double>(&content_)) return *value;
  if (const auto* wide = std::get_if<std::shared_ptr<const Wide>>(&content_))
    return (*wide)->nearest;
  if (const auto* value = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&content_)) return static_cast<double>(*value);
  throw Error(Code::invalid_argument, expected("a number"));
}

const std::string& Json::as_string() const {
  if (const auto* value = std::get_if<std::string>(&content_)) return *value;
  throw Error(Code::invalid_argument, expected("a text"));
}

const std::vector<Json>& Json::as_array() const {
  if (const auto* value = std::get_if<std::vector<Json>>(&content_)) return *value;
  throw Error(Code::invalid_argument, expected("an array"));
}

const Json::Object& Json::as_object() const {
  if (const auto* value = std::get_if<std::unique_ptr<Object>>(&content_)) return **value;
  throw Error(Code::invalid_argument, expected("an object"));
}

Json::Object& Json::editable_object() { return const_cast<Object&>(as_object()); }

const std::vector<Json::Member>& Json::members() const { return as_object().members(); }

std::size_t Json::size() const {
  if (is_array()) return as_array().size();
  if (is_object()) return members().size();
  return 0;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const Member* member = as_object().find(key);
  return member == nullptr ? nullptr : &member->value;
}

const Json& Json::at(std::string_view key) const {
  if (const Member* member = as_object().find(key)) return member->value;
  std::vector<std::string_view> keys;
  for (const Member& member : members()) keys.push_back(member.key);
  const std::string hint = did_you_mean(key, keys);
  throw Error(Code::invalid_argument,
              cat(where(), line_ == 0 ? "" : ": ", "the object has no member ", quote(key),
                  hint.empty() ? "" : ".", hint));
}

const Json& Json::at(std::size_t index) const {
  const std::vector<Json>& elements = as_array();
  if (index < elements.size()) return elements[index];
  throw Error(Code::invalid_argument,
              expected(cat("an array of at least ", index + 1, " elements")));
}

Json& Json::set(std::string key, Json value) {
  editable_object().insert(std::move(key)).first.value = std::move(value);
  return *this;
}

std::pair<Json::Member&, bool> Json::insert(std::string key) {
  return editable_object().insert(std::move(key));
}

void Json::set_place(std::uint32_t line, std::uint32_t column) {
  line_ = line;
  column_ = column;
}

Json& Json::push(Json value) {
  append(std::move(value));
  return *this;
}

Json& Json::append(Json value) {
  auto& elements = const_cast<std::vector<Json>&>(as_array());
  if (elements.empty()) elements.reserve(2);  // links, most of them
  return elements.emplace_back(std::move(value));
}

bool operator==(const Json& a, const Json& b) {
  if (a.kind() != b.kind()) return false;
  if (const std::string* wide = a.wide_digits(), *other = b.wide_digits(); wide || other)
    return wide && other && *wide == *other;
  if (!a.is_object()) return a.content_ == b.content_;
  if (a.size() != b.size()) return false;
  return std::all_of(a.members().begin(), a.members().end(), [&](const Json::Member& member) {
    const Json* other = b.find(member.key);
    return other != nullptr && *other == member.value;
  });
}

}  // namespace heddle::engine
