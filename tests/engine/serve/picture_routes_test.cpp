// Pictures that are made of others on their way: /view with `preview` and `channel`, /upload/mask.
#include <boost/crc.hpp>

#include "tests/engine/serve/service_fixture.h"
#include "tests/support/golden_files.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;

namespace {

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n", kJpeg = "\xff\xd8\xff";
constexpr std::size_t kColourType = 25;        // of a PNG: 2 is RGB, 6 RGBA
constexpr std::size_t kBehindHeader = 8 + 25;  // its other chunks begin there

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(number >> shift & 0xff);
  return bytes;
}

std::string with_text(std::string png, const std::string& key, const std::string& text) {
  const std::string content = cat("tEXt", key, std::string(1, '\0'), text);
  boost::crc_32_type sum;
  sum.process_bytes(content.data(), content.size());
  return png.insert(kBehindHeader, big_endian(std::uint32_t(content.size() - 4)) + content +
                                       big_endian(std::uint32_t(sum.checksum())));
}

struct SeeThrough : Serving {
  // RGBA, and the same without its alpha.
  const std::string picture =
      read_text(HEDDLE_TESTS_DIR "/fuzz/corpus/png/colour6_depth8_adam7.png");
  std::string opaque;

  SeeThrough() {
    folder.write("output/a.png", picture);
    opaque = get("/view?filename=a.png&channel=rgb").body;
    folder.write("output/opaque.png", opaque);
    folder.write("output/broken.png", picture.substr(0, picture.size() / 2));
    folder.write("output/text.txt", "no picture");
  }
  static std::string part(const std::string& head, const std::string& content) {
    return "--XX\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
  }
  Reply mask(const std::string& content, const std::string& original,
             const std::string& target = "/upload/mask") const {
    std::string body = part("name=\"image\"; filename=\"masked.png\"", content);
    if (!original.empty()) body += part("name=original_ref", original);
    return ask(port(), "POST", target, body + "--XX--\r\n",
               "Host: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=XX\r\n");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(picture_routes)

BOOST_FIXTURE_TEST_CASE(a_channel_of_a_picture_is_a_png, SeeThrough) {
  const Reply rgb = get("/api/view?filename=a.png&channel=rgb");
  BOOST_TEST(rgb.header("content-type") == "image/png");
  BOOST_TEST(rgb.header("content-disposition") == "filename=\"a.png\"");
  BOOST_TEST_REQUIRE(rgb.body.starts_with(kPng));
  BOOST_TEST(int(rgb.body[kColourType]) == 2);
  const std::string alpha = get("/view?filename=a.png&channel=a").body;
  BOOST_TEST_REQUIRE(alpha.starts_with(kPng));
  BOOST_TEST(int(alpha[kColourType]) == 6);
  BOOST_TEST(get("/view?filename=a.png&channel=rgba").body == picture);  // as it is
  // Without alpha all of it is 255: another picture, of the same size.
  const std::string full = get("/view?filename=opaque.png&channel=a").body;
  BOOST_TEST(int(full[kColourType]) == 6);
  BOOST_TEST((full != alpha));
  BOOST_TEST(full.substr(16, 8) == alpha.substr(16, 8));
}

BOOST_FIXTURE_TEST_CASE(a_preview_is_a_smaller_file, SeeThrough) {
  const auto preview = [&](const char* query) { return get(cat("/view?filename=a.png&", query)); };
  const Reply webp = preview("preview=webp;75");
  BOOST_TEST(webp.header("content-type") == "image/webp");
  BOOST_TEST(webp.body.substr(8, 4) == "WEBP");
  const Reply jpeg = preview("preview=jpeg;80&channel=rgb");
  BOOST_TEST(jpeg.header("content-type") == "image/jpeg");
  BOOST_TEST(jpeg.body.starts_with(kJpeg));
  BOOST_TEST((preview("preview=jpeg;20").body != preview("preview=jpeg;100").body));
  BOOST_TEST((preview("preview=jpeg").body == preview("preview=jpeg;90").body));
  // What has alpha, and formats that are none, are WebP.
  for (const char* query : {"preview=jpeg;80&channel=rgba", "preview=bmp", "preview=webp;x"})
    BOOST_TEST(preview(query).header("content-type") == "image/webp", query);
}

BOOST_FIXTURE_TEST_CASE(what_is_no_picture_is_not_converted, SeeThrough) {
  for (const char* file : {"broken.png", "text.txt"}) {
    const Reply reply = get(cat("/view?channel=rgb&filename=", file));
    BOOST_TEST(reply.status == 400, file);
    BOOST_TEST(reply.body.find("picture") != std::string::npos, reply.body);
  }
  BOOST_TEST(get("/view?filename=none.png&channel=rgb").status == 404);
  BOOST_TEST(get("/view?filename=a.png&subfolder=..&channel=rgb").status == 403);
}

// A picture that says that it is huge is refused by what it says.
BOOST_FIXTURE_TEST_CASE(a_picture_of_too_many_pixels_is_not_decoded, SeeThrough) {
  std::string header =
      "IHDR" + big_endian(60'000) + big_endian(60'000) + std::string("\x08\x06\0\0\0", 5);
  boost::crc_32_type sum;
  sum.process_bytes(header.data(), header.size());
  const std::string huge = std::string(kPng) + big_endian(13) + header +
                           big_endian(std::uint32_t(sum.checksum())) +
                           picture.substr(kBehindHeader);
  folder.write("output/huge.png", huge);
  for (const char* query : {"channel=rgb", "channel=a", "preview=webp"}) {
    const Reply reply = get(cat("/view?filename=huge.png&", query));
    BOOST_TEST(reply.status == 400, query);
    BOOST_TEST(reply.body.find("pixels") != std::string::npos, reply.body);
  }
  BOOST_TEST(mask(huge, R"({"filename": "a.png", "type": "output"})").status == 400);
  BOOST_TEST(get("/view?filename=huge.png").body == huge);  // as it is
}

BOOST_FIXTURE_TEST_CASE(a_mask_is_the_alpha_of_its_picture, SeeThrough) {
  folder.write("output/opaque.png", with_text(opaque, "workflow", "{\"nodes\": []}"));
  for (const char* target : {"/upload/mask", "/api/upload/mask"}) {
    const Reply reply = mask(picture, R"({"filename": "opaque.png", "type": "output"})", target);
    BOOST_TEST(reply.body == "{\"name\":\"masked.png\",\"subfolder\":\"\",\"type\":\"input\"}");
  }
  const auto seen = [&](const char* query) { return get(cat("/view?", query)).body; };
  const std::string masked = seen("filename=masked.png&type=input");
  BOOST_TEST(masked.find(cat("workflow", std::string(1, '\0'), "{\"nodes\": []}")) !=
             std::string::npos);
  BOOST_TEST(
      (seen("filename=masked.png&type=input&channel=a") == seen("filename=a.png&channel=a")));
  BOOST_TEST((seen("filename=masked.png&type=input&channel=rgb") ==
              seen("filename=opaque.png&channel=rgb")));
}

BOOST_FIXTURE_TEST_CASE(a_mask_without_its_picture_is_refused, SeeThrough) {
  BOOST_TEST(mask(picture, "").status == 400);
  BOOST_TEST(mask(picture, "no JSON").status == 400);
  BOOST_TEST(mask(picture, "[]").status == 400);
  BOOST_TEST(mask(picture, R"({"filename": 1})").status == 400);
  BOOST_TEST(mask(picture, R"({"filename": "none.png"})").status == 404);
  BOOST_TEST(mask(picture, R"({"filename": "a.png", "subfolder": ".."})").status == 403);
  BOOST_TEST(mask("no picture", R"({"filename": "a.png"})").status == 400);
  // Of another size.
  folder.write("output/small.png", read_text(HEDDLE_TESTS_DIR "/fuzz/corpus/png/one_pixel.png"));
  const Reply reply = mask(picture, R"({"filename": "small.png"})");
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(reply.body.find("one size") != std::string::npos, reply.body);
  BOOST_TEST(!std::filesystem::exists(folder / "input/masked.png"));
}

BOOST_AUTO_TEST_SUITE_END()
