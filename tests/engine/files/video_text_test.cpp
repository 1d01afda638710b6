#include "engine/files/video_text.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>

#include "tests/support/refusal.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(video_text)

namespace {

const std::string kRun = R"({"1":{"class_type":"A","inputs":{}}})";
const std::string kSaved = R"({"nodes":[]})";

std::string four(std::uint64_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

std::string box(const std::string& type, const std::string& body) {
  return four(8 + body.size()) + type + body;
}
std::string wide_box(const std::string& type, const std::string& body) {
  return four(1) + type + four(0) + four(16 + body.size()) + body;
}

using Tagged = std::vector<std::pair<std::string, std::string>>;

std::string meta(const Tagged& tags, bool is_quicktime) {
  std::string keys = four(0) + four(tags.size()), items;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    keys += box("mdta", tags[i].first);
    items += box(four(i + 1), box("data", four(1) + four(0) + tags[i].second));
  }
  return box("meta", (is_quicktime ? "" : four(0)) + box("hdlr", std::string(25, '\0')) +
                         box("keys", keys) + box("ilst", items));
}

std::string mp4(const std::string& moov) {
  return box("ftyp", "isom" + four(0)) + box("mdat", std::string(100, 'x')) + moov;
}

std::string element(const std::string& id, const std::string& body) {
  std::string size = four(body.size());
  size[0] = static_cast<char>(size[0] | 0x10);
  return id + size + body;
}

std::string tags(const Tagged& all) {
  std::string body;
  for (const auto& [name, text] : all)
    body += element("\x73\x73",
                    element("\x67\xc8", element("\x45\xa3", name) + element("\x44\x87", text)));
  return element("\x12\x54\xc3\x67", body);
}

const std::string kHead = element("\x1a\x45\xdf\xa3", "webm");
const std::string kSegmentId = "\x18\x53\x80\x67", kClusterId = "\x1f\x43\xb6\x75";
const std::string kUnknownSize = "\x01" + std::string(7, '\xff');

std::string found_in(const std::string& content) {
  return workflow_in_video(content, "v.mp4").value_or("no video");
}
std::string said_of(const std::string& content) {
  return test::refusal_of([&] { workflow_in_video(content, "v.mp4"); }).what();
}
bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(mp4_has_it_in_moov) {
  const Tagged both{{"workflow", kSaved}, {"prompt", kRun}};
  BOOST_TEST(found_in(mp4(box("moov", box("udta", meta(both, false))))) == kRun);
  BOOST_TEST(found_in(mp4(box("moov", meta({{"workflow", kSaved}}, true)))) == kSaved);
  BOOST_TEST(found_in(mp4(wide_box("moov", box("udta", meta(both, false))))) == kRun);
}

BOOST_AUTO_TEST_CASE(matroska_has_it_in_its_tags) {
  const Tagged both{{"WORKFLOW", kSaved}, {"PROMPT", kRun}};
  const std::string cluster = element(kClusterId, std::string(300, 'x'));
  BOOST_TEST(found_in(kHead + element(kSegmentId, cluster + tags(both))) == kRun);
  BOOST_TEST(found_in(kHead + element(kSegmentId, tags({{"Workflow", kSaved}}))) == kSaved);
  // As programs write that send a file while they make it.
  BOOST_TEST(found_in(kHead + kSegmentId + kUnknownSize + kClusterId + kUnknownSize +
                      element("\xa3", "a block") + tags(both)) == kRun);
}

BOOST_AUTO_TEST_CASE(files_of_the_plugin_are_read) {
  const std::string folder = std::string(HEDDLE_TESTS_DIR) + "/engine/files/videos/";
  for (const char* name : {"tagged.mp4", "tagged.webm"}) {
    std::ifstream stream(folder + name, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    BOOST_TEST(found_in(content) == R"({"1": {"class_type": "A", "inputs": {"text": "\u00e9"}}})");
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_video_is_told_apart) {
  for (const char* content : {"", "{}", "ftyp", "\x89PNG\r\n\x1a\n"})
    BOOST_TEST(!workflow_in_video(content, "x"));
  BOOST_TEST(is_video(mp4("")));
  BOOST_TEST(is_video(kHead));
}

BOOST_AUTO_TEST_CASE(a_video_without_a_workflow_says_what_it_has) {
  const std::string other = said_of(mp4(box("moov", meta({{"title", "x"}}, false))));
  BOOST_TEST(says(other, "v.mp4: this video has no workflow inside"), other);
  BOOST_TEST(says(other, "only 'title'"), other);
  BOOST_TEST(says(said_of(kHead), "no workflow inside"));
}

BOOST_AUTO_TEST_CASE(a_damaged_video_says_so) {
  const std::string whole = mp4(box("moov", box("udta", meta({{"prompt", kRun}}, false))));
  for (std::size_t size = 12; size < whole.size(); ++size)
    BOOST_TEST(says(said_of(whole.substr(0, size)), "v.mp4: "), size);
  BOOST_TEST(says(said_of(whole.substr(0, whole.size() - 1)), "cut off"));
  const std::string webm = kHead + element(kSegmentId, tags({{"PROMPT", kRun}}));
  for (std::size_t size = kHead.size() + 1; size < webm.size(); ++size)
    BOOST_TEST(says(said_of(webm.substr(0, size)), "v.mp4: "), size);
  BOOST_TEST(says(said_of(mp4(four(3) + "moov")), "cut off"));
  BOOST_TEST(says(said_of(kHead + "\x18\x53\x80\x67" + std::string(1, '\0')), "cut off"));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::engine
