#include "token_texts.h"

#include <array>
#include <charconv>

#include "utf8.h"

namespace heddle::text {
namespace {

constexpr char32_t kSpace = 0x2581;  // as pieces of SentencePiece write it
constexpr std::size_t kByteCharacters = 0x144;

// The byte that each character of byte-level BPE stands for; -1: none.
std::array<std::int16_t, kByteCharacters> bytes_by_character() {
  std::array<std::int16_t, kByteCharacters> bytes;
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte)
    bytes[byte_level_character(static_cast<unsigned char>(byte))] = static_cast<std::int16_t>(byte);
  return bytes;
}

std::string byte_level_bytes(std::string_view piece) {
  static const std::array<std::int16_t, kByteCharacters> table = bytes_by_character();
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const CodePoint next = decode_at(piece, at);
    const bool is_byte = next.value < table.size() && table[next.value] >= 0;
    if (is_byte)
      bytes += static_cast<char>(table[next.value]);
    else
      bytes += piece.substr(at, next.size);
    at += next.size;
  }
  return bytes;
}

// "<0x0A>", or a piece in which a mark stands for each space.
std::string piece_bytes(std::string_view piece) {
  unsigned byte = 0;
  if (piece.size() == 6 && piece.starts_with("<0x") && piece.back() == '>') {
    const char* const end = piece.data() + 5;
    if (std::from_chars(piece.data() + 3, end, byte, 16).ptr == end)
      return std::string(1, static_cast<char>(byte));
  }
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const CodePoint next = decode_at(piece, at);
    if (next.value == kSpace)
      bytes += ' ';
    else
      bytes += piece.substr(at, next.size);
    at += next.size;
  }
  return bytes;
}

}  // namespace

TokenTexts::TokenTexts(const Tokenizer& tokenizer) : bytes_(tokenizer.id_count()) {
  const bool is_byte_level = tokenizer.is_byte_level();
  tokenizer.vocabulary().each([&](std::string_view piece, std::int32_t id) {
    if (id >= 0)
      bytes_[std::size_t(id)] = is_byte_level ? byte_level_bytes(piece) : piece_bytes(piece);
  });
  for (const std::int32_t id : tokenizer.silent()) bytes_[std::size_t(id)].clear();
  // Pieces of SentencePiece's users are added tokens, and have marks for spaces, too.
  tokenizer.added().each([&](const AddedToken& token, std::int32_t id) {
    std::string& bytes = bytes_[std::size_t(id)];
    if (token.special)
      bytes.clear();
    else
      bytes = is_byte_level ? token.content : piece_bytes(token.content);
  });
}

std::string TokenTexts::text(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids)
    if (id >= 0 && std::size_t(id) < bytes_.size()) bytes += bytes_[std::size_t(id)];
  return valid_utf8(bytes);
}

}  // namespace heddle::text
