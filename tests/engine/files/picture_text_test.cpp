#include "engine/files/picture_text.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/refusal.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(picture_text)

namespace {

const std::string kPrompt = R"({"1":{"class_type":"A","inputs":{}}})";

std::string big(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

std::string little(std::uint32_t number, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 255);
  return bytes;
}

std::string chunk(const std::string& type, const std::string& body) {
  const std::string sealed = type + body;
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(sealed.data()), static_cast<uInt>(sealed.size()));
  return big(static_cast<std::uint32_t>(body.size())) + sealed +
         big(static_cast<std::uint32_t>(sum));
}

std::string png(const std::string& chunks) {
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", std::string(13, '\1')) + chunks + chunk("IEND", "");
}

std::string nul() { return std::string(1, '\0'); }

std::string deflated(const std::string& text) {
  uLongf size = ::compressBound(text.size());
  std::string bytes(size, ' ');
  ::compress(reinterpret_cast<Bytef*>(bytes.data()), &size,
             reinterpret_cast<const Bytef*>(text.data()), text.size());
  bytes.resize(size);
  return bytes;
}

std::string found_in(const std::string& content) {
  return workflow_in_picture(content, "p.png").value_or("no picture");
}

std::string said_of(const std::string& content) {
  return test::refusal_of([&] { workflow_in_picture(content, "p.png"); }).what();
}

// An EXIF block with these texts in tags from 0x0110 downward.
std::string exif(const std::vector<std::string>& texts, bool is_big) {
  const auto number = [&](std::uint32_t n, int size) {
    std::string bytes = little(n, size);
    if (is_big) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  };
  std::string block = (is_big ? "MM" : "II") + number(42, 2) + number(8, 4) +
                      number(static_cast<std::uint32_t>(texts.size()), 2);
  std::string behind;
  const std::size_t start = block.size() + 12 * texts.size();
  std::uint32_t tag = 0x0110;
  for (const std::string& text : texts) {
    block += number(tag--, 2) + number(2, 2) +
             number(static_cast<std::uint32_t>(text.size() + 1), 4) +
             number(static_cast<std::uint32_t>(start + behind.size()), 4);
    behind += text + nul();
  }
  return block + behind;
}

std::string webp(const std::string& exif_block) {
  const std::string chunks = "VP8 " + little(3, 4) + "abc" + nul() + "EXIF" +
                             little(static_cast<std::uint32_t>(exif_block.size()), 4) + exif_block;
  return "RIFF" + little(static_cast<std::uint32_t>(chunks.size() + 4), 4) + "WEBP" + chunks;
}

}  // namespace

BOOST_AUTO_TEST_CASE(other_files_are_no_pictures) {
  for (const char* text : {"", "{}", "RIFF....WAVE", "\x89PNG"})
    BOOST_TEST(!workflow_in_picture(text, "p.png"));
}

BOOST_AUTO_TEST_CASE(texts_of_png_files_are_read_in_all_their_kinds) {
  BOOST_TEST(found_in(png(chunk("tEXt", "prompt" + nul() + kPrompt))) == kPrompt);
  BOOST_TEST(found_in(png(chunk("comf", "prompt" + nul() + kPrompt))) == kPrompt);
  BOOST_TEST(found_in(png(chunk("zTXt", "prompt" + nul() + nul() + deflated(kPrompt)))) == kPrompt);
  const std::string plain = "prompt" + nul() + nul() + nul() + "en" + nul() + "x" + nul();
  BOOST_TEST(found_in(png(chunk("iTXt", plain + kPrompt))) == kPrompt);
  const std::string packed = "prompt" + nul() + "\1" + nul() + nul() + nul() + deflated(kPrompt);
  BOOST_TEST(found_in(png(chunk("iTXt", packed))) == kPrompt);
}

BOOST_AUTO_TEST_CASE(what_was_run_counts_before_what_was_saved) {
  const std::string saved = chunk("tEXt", "workflow" + nul() + "{\"nodes\": []}");
  BOOST_TEST(found_in(png(saved + chunk("tEXt", "prompt" + nul() + kPrompt))) == kPrompt);
  BOOST_TEST(found_in(png(saved)) == "{\"nodes\": []}");
}

BOOST_AUTO_TEST_CASE(latin_1_becomes_utf_8_and_utf_8_stays) {
  BOOST_TEST(found_in(png(chunk("tEXt", "prompt" + nul() + "\"\xe9\""))) == "\"\xc3\xa9\"");
  BOOST_TEST(found_in(png(chunk("tEXt", "prompt" + nul() + "\"\xc3\xa9\""))) == "\"\xc3\xa9\"");
}

BOOST_AUTO_TEST_CASE(webp_files_have_texts_in_their_exif_block) {
  for (const bool is_big : {false, true}) {
    BOOST_TEST(found_in(webp(exif({"prompt:" + kPrompt, "workflow:{}"}, is_big))) == kPrompt);
    BOOST_TEST(found_in(webp(exif({"Camera", "workflow:{\"nodes\": []}"}, is_big))) ==
               "{\"nodes\": []}");
  }
  BOOST_TEST(found_in(webp("Exif" + nul() + nul() + exif({"prompt:" + kPrompt}, true))) == kPrompt);
}

BOOST_AUTO_TEST_CASE(a_picture_without_a_workflow_says_what_it_has) {
  BOOST_TEST(said_of(png(chunk("tEXt", "parameters" + nul() + "steps: 20"))) ==
             "p.png: this picture has no workflow inside: no text called 'prompt' or 'workflow', "
             "only 'parameters'. Pictures lose it when another program saves them again.");
  BOOST_TEST(said_of(webp(exif({}, false))).find("no workflow inside") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(damaged_pictures_are_told) {
  const std::string whole = png(chunk("tEXt", "prompt" + nul() + kPrompt));
  BOOST_TEST(
      said_of(whole.substr(0, 60)) ==
      "p.png: a chunk of the PNG file needs 47 bytes, and the file has 23 more: it is cut off "
      "or damaged.");
  std::string changed = whole;
  changed[50] = '?';
  BOOST_TEST(said_of(changed) ==
             "p.png: the checksum of its tEXt chunk is wrong: the file is damaged.");
  BOOST_TEST(said_of(png(chunk("tEXt", "prompt"))).find("no end of its key") != std::string::npos);
  BOOST_TEST(said_of(png(chunk("zTXt", "prompt" + nul() + nul() + "rubbish"))).find("damaged") !=
             std::string::npos);
  const std::string lying = exif({"prompt:" + kPrompt}, false);
  BOOST_TEST(said_of(webp(lying.substr(0, lying.size() - 9))).find("EXIF block is damaged") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_text_that_unpacks_without_end_is_refused) {
  const std::string bomb = deflated(std::string((64 << 20) + 100000, ' '));
  BOOST_TEST(said_of(png(chunk("zTXt", "prompt" + nul() + nul() + bomb))) ==
             "p.png: a compressed text chunk of it has more than 64.0 MiB.");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::engine
