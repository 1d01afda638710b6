// Pictures of what models make, beside them and in them.
#include "engine/serve/model_files.h"

#include "tests/engine/serve/service_fixture.h"
#include "tests/support/golden_files.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::model_preview;

namespace {

std::string safetensors(const std::string& header) {
  std::string content;
  for (int i = 0; i < 8; ++i) content += char(std::uint64_t(header.size()) >> (8 * i));
  return content + header;
}

struct Models : Serving {
  const std::string picture =
      read_text(HEDDLE_TESTS_DIR "/fuzz/corpus/png/colour6_depth8_adam7.png");
  Models() { std::filesystem::create_directories(folder / "models/loras/sub"); }
  void write(const std::string& name, const std::string& content) {
    folder.write("models/loras/" + name, content);
  }
  std::string preview(const std::string& name) const {
    return model_preview(folder / "models/loras" / name).value_or("none");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(model_files)

BOOST_FIXTURE_TEST_CASE(a_picture_beside_a_model_shows_it, Models) {
  write("a.safetensors", safetensors("{}"));
  BOOST_TEST(preview("a.safetensors") == "none");
  write("a.preview.jpg", "second");
  write("ab.png", "of another");
  BOOST_TEST(preview("a.safetensors") == "second");
  write("a.webp", "first");
  BOOST_TEST(preview("a.safetensors") == "first");
  BOOST_TEST(preview("a.pt") == "first");
}

BOOST_FIXTURE_TEST_CASE(a_picture_in_the_header_shows_it_where_there_is_no_other, Models) {
  const auto covers = [&](const std::string& list) {
    write("a.safetensors",
          safetensors("{\"__metadata__\": {\"ssmd_cover_images\": " + list + "}}"));
    return preview("a.safetensors");
  };
  BOOST_TEST(covers("\"[\\\"aGVkZGxl\\\", \\\"eA==\\\"]\"") == "heddle");
  BOOST_TEST(covers("\"[\\\"eA==\\\"]\"") == "x");
  BOOST_TEST(covers("\"[\\\"eHk=\\\"]\"") == "xy");
  for (const char* none :
       {"\"[]\"", "\"no list\"", "\"[5]\"", "5", "\"[\\\"a\\\"]\"", "\"[\\\"*GVk\\\"]\""})
    BOOST_TEST(covers(none) == "none", none);
  write("a.png", "beside");
  BOOST_TEST(covers("\"[\\\"eA==\\\"]\"") == "beside");
}

BOOST_FIXTURE_TEST_CASE(previews_are_webp, Models) {
  write("sub/a.safetensors", safetensors("{}"));
  write("sub/a.png", picture);
  write("broken.png", picture.substr(0, picture.size() / 2));
  write("text.png", "no picture");
  folder.write("secret.png", picture);
  for (const char* prefix : {"", "/api"}) {
    const auto asked = [&](const std::string& rest) {
      return get(cat(prefix, "/experiment/models/preview/", rest));
    };
    const Reply reply = asked("loras/0/sub/a.safetensors");
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.header("content-type") == "image/webp");
    BOOST_TEST(reply.body.substr(0, 4) + reply.body.substr(8, 4) == "RIFFWEBP");
    BOOST_TEST(asked("loras/0/sub%2Fa.safetensors").status == 200);
    for (const char* none :
         {"none/0/sub/a.safetensors", "loras/99/sub/a.safetensors", "loras/x/sub/a.safetensors",
          "loras/0/a.safetensors", "loras/0/broken.safetensors", "loras/0/text.safetensors",
          "loras/0/..%2F..%2Fsecret.safetensors", "loras/-1/sub/a.safetensors"})
      BOOST_TEST(asked(none).status == 404, none);
  }
}

BOOST_AUTO_TEST_SUITE_END()
