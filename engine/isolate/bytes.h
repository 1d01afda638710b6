// Messages between the engine and its workers, as bytes: numbers in the machine's own order, texts
// behind their lengths. Both ends are of one build. What is read may come from a plugin that has
// gone wild, so every read is held against the end. One thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/base/error.h"

namespace heddle::engine {

class BytesWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void flag(bool value) { number(std::uint8_t(value ? 1 : 0)); }
  void text(std::string_view value) {
    number(std::uint64_t(value.size()));
    bytes_.append(value);
  }
  void append(const BytesWriter& other) { bytes_.append(other.bytes_); }
  // Room for so many bytes; whoever asked fills them before anything else is written.
  std::byte* room(std::size_t bytes) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    return reinterpret_cast<std::byte*>(bytes_.data() + at);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws internal where the message ends too early. What it gives as a view lives as long as the
// bytes.
class BytesReader {
 public:
  explicit BytesReader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  bool flag() { return number<std::uint8_t>() != 0; }
  std::string_view text() { return take(number<std::uint64_t>()); }
  std::string_view take(std::uint64_t bytes) {
    if (bytes > rest_.size())
      throw Error(Code::internal, "a message between the engine and a worker is cut off");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest() const { return rest_; }
  // Of things that take at least a byte each.
  std::uint32_t count() {
    const auto count = number<std::uint32_t>();
    if (count > rest_.size())
      throw Error(Code::internal, "a message between the engine and a worker counts too many");
    return count;
  }

 private:
  std::string_view rest_;
};

}  // namespace heddle::engine
