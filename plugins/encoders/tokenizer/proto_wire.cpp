#include "proto_wire.h"

#include <bit>

#include "text_error.h"

namespace heddle::text {

float WireField::as_float() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

void WireReader::fail(const std::string& what) const {
  throw TextError(name_ + ": byte " + std::to_string(offset_ + at_) + ": " + what +
                  ". The file is damaged or not a SentencePiece model; download it again.");
}

std::string_view WireReader::take(std::uint64_t size) {
  const std::size_t left = bytes_.size() - at_;
  if (size > left) {
    fail("a field of " + std::to_string(size) + " bytes, but " + std::to_string(left) +
         " are left");
  }
  const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(size));
  at_ += taken.size();
  return taken;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number of more than 10 bytes");
}

std::uint64_t WireReader::fixed(std::size_t size) {
  const std::string_view bytes = take(size);
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

WireField WireReader::next() {
  WireField field;
  field.at = offset_ + at_;
  const std::uint64_t tag = varint();
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  if (field.number == 0) fail("a field with the number 0");
  switch (field.type) {
    case WireType::kVarint:
      field.value = varint();
      return field;
    case WireType::kFixed64:
      field.value = fixed(8);
      return field;
    case WireType::kFixed32:
      field.value = fixed(4);
      return field;
    case WireType::kBytes:
      field.bytes = take(varint());
      return field;
  }
  fail("a field of the unknown wire type " + std::to_string(tag & 7));
}

WireReader WireReader::nested(const WireField& field) const {
  const auto within = static_cast<std::size_t>(field.bytes.data() - bytes_.data());
  return {field.bytes, offset_ + within, name_};
}

}  // namespace heddle::text
