#include "packed_model.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "pre_tokenizer.h"
#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

class PackedReader {
 public:
  PackedReader(std::string_view packed, const std::string& name) : rest_(packed), name_(name) {}

  bool is_done() const { return rest_.empty(); }

  std::uint32_t number() {  // LEB128
    std::uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1).front());
      value |= std::uint32_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  float f32() {
    std::uint32_t bits = 0;
    const std::string_view four = bytes(4);
    for (std::size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(four[i]);
    return std::bit_cast<float>(bits);
  }

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[noreturn]] void fail() const {
    throw TextError(name_ + ": the packed vocabulary is damaged, " + std::to_string(rest_.size()) +
                    " bytes before its end. Build it again.");
  }

 private:
  std::string_view rest_;
  const std::string& name_;
};

std::vector<std::string> byte_alphabet(const std::string& suffix) {
  std::vector<char32_t> characters;
  for (int byte = 0; byte < 256; ++byte)
    characters.push_back(byte_level_character(static_cast<unsigned char>(byte)));
  std::sort(characters.begin(), characters.end());
  std::vector<std::string> tokens;
  for (const char32_t character : characters) append_utf8(tokens.emplace_back(), character);
  if (suffix.empty()) return tokens;
  for (std::size_t i = 0; i < characters.size(); ++i) tokens.push_back(tokens[i] + suffix);
  return tokens;
}

}  // namespace

void read_packed_merges(std::string_view packed, const std::string& name, BpeOptions& options) {
  PackedReader reader(packed, name);
  const std::vector<std::string> alphabet = byte_alphabet(options.end_of_word_suffix);
  const std::size_t most = alphabet.size() + packed.size() / 2;
  std::vector<std::string_view> tokens;  // as the vocabulary keeps them
  const auto add = [&](std::string_view token) {
    tokens.push_back(options.vocabulary.add(token, static_cast<std::int32_t>(tokens.size())));
  };
  tokens.reserve(most);
  options.vocabulary.reserve(alphabet.size() + packed.size() / 4);  // ids of two bytes
  options.merged_ids.reserve(packed.size() / 2);
  for (const std::string& token : alphabet) add(token);
  std::string merged;
  while (!reader.is_done()) {
    const std::uint32_t left = reader.number(), right = reader.number();
    if (left >= tokens.size() || right >= tokens.size()) reader.fail();
    options.merged_ids.push_back({static_cast<std::int32_t>(left), static_cast<std::int32_t>(right),
                                  static_cast<std::int32_t>(tokens.size())});
    merged = tokens[left];
    merged += tokens[right];
    add(merged);
  }
}

std::vector<UnigramPiece> read_packed_pieces(std::string_view packed, const std::string& name) {
  PackedReader reader(packed, name);
  constexpr std::size_t kUsualBytes = 12;  // of a piece, as it is packed
  std::vector<UnigramPiece> pieces;
  pieces.reserve(packed.size() / kUsualBytes);
  while (!reader.is_done()) {
    const double score = static_cast<double>(reader.f32());
    const std::uint32_t size = reader.number();
    pieces.push_back({std::string(reader.bytes(size)), score});
  }
  return pieces;
}

}  // namespace heddle::text
