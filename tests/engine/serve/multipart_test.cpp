#include "engine/serve/multipart.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(multipart)

BOOST_AUTO_TEST_CASE(parts_are_found) {
  const std::string content("\x89PNG\r\n--b\0 \r\n-- b", 17);
  const std::string body =
      "--b0\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a \\\"b\\\".png\"\r\n"
      "Content-Type: image/png\r\n\r\n" +
      content +
      "\r\n--b0\r\ncontent-disposition: form-data; name=type\r\n\r\ninput\r\n"
      "--b0\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--b0--\r\n";
  const auto parts = read_form("multipart/form-data; boundary=b0", body);
  BOOST_TEST_REQUIRE(parts.has_value());
  BOOST_TEST(parts->size() == 3u);
  const FormPart* image = find_part(*parts, "image");
  BOOST_TEST_REQUIRE((image != nullptr));
  BOOST_TEST(image->file_name == "a \"b\".png");
  BOOST_TEST((image->content == content));
  BOOST_TEST(find_part(*parts, "type")->content == "input");
  BOOST_TEST(find_part(*parts, "type")->file_name == "");
  BOOST_TEST(find_part(*parts, "empty")->content == "");
  BOOST_TEST(find_part(*parts, "none") == nullptr);
  // The whole of it, or nothing.
  for (std::size_t size = 0; size + 4 < body.size(); ++size)
    BOOST_TEST(!read_form("multipart/form-data; boundary=b0", body.substr(0, size)), size);
}

BOOST_AUTO_TEST_CASE(what_stands_in_quotes_is_no_name) {
  const auto name_of = [](const std::string& parameters) -> std::string {
    const std::string body =
        "--b\r\nContent-Disposition: form-data" + parameters + "\r\n\r\nx\r\n--b--";
    const auto parts = read_form("multipart/form-data; boundary=b", body);
    return parts ? parts->at(0).name + "|" + parts->at(0).file_name : "none";
  };
  BOOST_TEST(name_of("; filename=\"a; name=b\"; name=\"c\"") == "c|a; name=b");
  BOOST_TEST(name_of(";name = a") == "none");
  BOOST_TEST(name_of(";x;name=a; ;filename=b ") == "a|b");
  BOOST_TEST(name_of("; filename=\"a; name=b") == "none");
  BOOST_TEST(name_of("; filename=a; name=\"b") == "none");
  BOOST_TEST(name_of("; name*=x; name=y") == "y|");
}

BOOST_AUTO_TEST_CASE(what_is_no_form_is_refused) {
  const std::string body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--";
  BOOST_TEST(read_form("Multipart/Form-Data; charset=utf-8; boundary=\"b\"", body).has_value());
  BOOST_TEST(!read_form("application/json", body));
  BOOST_TEST(!read_form("multipart/form-data", body));
  BOOST_TEST(!read_form("multipart/form-data; boundary=", body));
  BOOST_TEST(!read_form("multipart/form-data; boundary=c", body));
  BOOST_TEST(!read_form("multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--b--"));
  BOOST_TEST(!read_form("multipart/form-data; boundary=b", "--b\r\nX: y\r\n\r\nx\r\n--b--"));
  BOOST_TEST(!read_form("multipart/form-data; boundary=b", ""));
}

BOOST_AUTO_TEST_SUITE_END()
