// SentencePiece models written by hand in the wire format. Expectations follow from the scores.
#include "plugins/encoders/tokenizer/spiece.h"

#include <bit>
#include <boost/test/unit_test.hpp>

#include "plugins/encoders/tokenizer/text_error.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(spiece)

namespace {

enum : std::uint64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6 };

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string field(std::uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string field(std::uint64_t number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string piece(std::string_view text, float score, std::uint64_t kind = kNormal) {
  std::string bits;
  for (int i = 0; i < 4; ++i) {
    bits.push_back(static_cast<char>(std::bit_cast<std::uint32_t>(score) >> (8 * i)));
  }
  return field(1, field(1, text) + varint(2 << 3 | 5) + bits + field(3, kind));
}

const std::string kSpace = "\xE2\x96\x81";  // U+2581

// 0 </s>, 1 <unk>, 2 space, 3 "a", 4 "b", 5 "ab", 6 space + "a"
std::string model() {
  return piece("</s>", 0, kControl) + piece("<unk>", 0, kUnknown) + piece(kSpace, -2) +
         piece("a", -3) + piece("b", -3) + piece("ab", -4) + piece(kSpace + "a", -3);
}

std::vector<std::int32_t> ids(const std::string& file, std::string_view text) {
  return read_spiece(file, "spiece.model").encode(text);
}

using Ids = std::vector<std::int32_t>;

void check(const std::string& file, std::string_view text, const Ids& expected) {
  const Ids found = ids(file, text);
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

std::string error_of(const std::string& file) {
  try {
    read_spiece(file, "spiece.model");
  } catch (const TextError& error) {
    return error.what();
  }
  return "no error";
}

void check_error(const std::string& file, const std::string& part) {
  const std::string error = error_of(file);
  BOOST_TEST(error.find(part) != std::string::npos, error << " does not contain " << part);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_cut_with_the_best_sum_wins) {
  check(model(), "ab", {2, 5});  // -2 - 4, against -3 - 3: equal, and the first found stays
  check(model(), "ba a", {2, 4, 3, 6});
  check(model(), "", {});
}

BOOST_AUTO_TEST_CASE(a_run_of_unknown_characters_is_one_token) {
  check(model(), "xyz", {2, 1});
  check(model(), "axa", {6, 1, 3});
}

BOOST_AUTO_TEST_CASE(white_space_is_collapsed_and_trimmed_when_the_model_says_so) {
  check(model(), "  a   a ", {6, 6});
  check(model(), "   ", {});
  const std::string keep = model() + field(3, field(4, std::uint64_t{0}));
  check(keep, "  a", {2, 2, 6});
  const std::string bare = model() + field(3, field(3, std::uint64_t{0}));
  check(bare, "a a", {3, 6});
  const std::string suffix = model() + field(2, field(24, std::uint64_t{1}));
  check(suffix, "a", {3, 2});
}

BOOST_AUTO_TEST_CASE(control_unused_and_byte_pieces_are_not_found_in_texts) {
  const std::string file = model() + piece("c", -1, kUnused) + piece("d", -1, kByte);
  check(file, "</s>", {2, 1});
  check(file, "c", {2, 1});
  check(file, "d", {2, 1});
}

BOOST_AUTO_TEST_CASE(user_defined_pieces_are_preferred) {
  check(model() + piece("aba", -50, kUser), "abab", {2, 7, 4});
}

BOOST_AUTO_TEST_CASE(byte_fallback_writes_bytes) {
  std::string file = model() + field(2, field(35, std::uint64_t{1}));
  for (int i = 0; i < 256; ++i) file += piece(byte_piece(static_cast<unsigned char>(i)), 0, kByte);
  check(file, "\xC3\xA9", {2, 7 + 0xC3, 7 + 0xA9});
}

BOOST_AUTO_TEST_CASE(the_end_piece_is_the_suffix) {
  const Tokenizer tokenizer = read_spiece(model(), "spiece.model");
  BOOST_TEST(tokenizer.suffix() == Ids{0}, boost::test_tools::per_element());
  BOOST_TEST(tokenizer.prefix().empty());
  BOOST_TEST(tokenizer.find("ab").value() == 5);
  BOOST_TEST(tokenizer.id_count() == 7U);
}

BOOST_AUTO_TEST_CASE(damaged_models_are_errors_that_say_what_is_wrong) {
  check_error("", "no pieces");
  check_error(piece("a", 0), "no unknown piece");
  check_error(model() + piece("<u>", 0, kUnknown), "both the unknown piece");
  check_error(model() + piece("a", 0), "are the same");
  check_error(model() + piece("", 0), "is empty");
  check_error(model() + piece("z", 0, 9), "unknown type 9");
  check_error(model() + piece("z", std::bit_cast<float>(0x7FC00000)), "not a finite number");
  check_error(model() + piece(std::string(5000, 'z'), 0), "has 5000 bytes");
  check_error(model() + field(2, field(3, std::uint64_t{3})), "word model");
  check_error(model() + field(2, field(3, std::uint64_t{77})), "type 77 model");
  check_error(model() + field(2, field(35, std::uint64_t{1})), "<0x00>");
  check_error(model() + field(3, field(2, "abc")), "precompiled_charsmap");
  check_error(model() + "\x0B", "wire type 3");
  check_error(model() + std::string(1, '\0'), "number 0");
  check_error(model() + varint(1 << 3 | 2) + varint(~0ULL), "bytes, but 0 are left");
  check_error(model() + "\x08" + std::string(12, '\xFF'), "more than 10 bytes");
}

BOOST_AUTO_TEST_CASE(every_truncation_gives_an_error_or_a_smaller_model) {
  const std::string file = model() + field(3, field(4, std::uint64_t{1}));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string error = error_of(file.substr(0, size));
    BOOST_TEST(!error.empty());
    if (error != "no error") BOOST_TEST(error.starts_with("spiece.model: "));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
