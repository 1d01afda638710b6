// The protocol-buffer wire format, read-only and without a schema: the fields of one message in
// order. Every length is checked against the message. Values over borrowed bytes, one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::text {

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;  // of the three number types, little-endian bits
  std::string_view bytes;   // of kBytes: a string or a nested message
  std::size_t at = 0;       // byte of the file where the field starts

  bool as_bool() const { return value != 0; }
  float as_float() const;  // REQUIRES: kFixed32
};

class WireReader {
 public:
  // `bytes` starts at byte `offset` of the file `name`.
  WireReader(std::string_view bytes, std::size_t offset, std::string name)
      : bytes_(bytes), offset_(offset), name_(std::move(name)) {}

  bool at_end() const { return at_ == bytes_.size(); }

  // Throws TextError for a field that is not whole or of a type that does not exist.
  WireField next();

  // The fields of a nested message. REQUIRES: `field` came from this reader and is kBytes.
  WireReader nested(const WireField& field) const;

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t size);
  std::string_view take(std::uint64_t size);
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view bytes_;
  std::size_t offset_;
  std::size_t at_ = 0;
  std::string name_;
};

}  // namespace heddle::text
