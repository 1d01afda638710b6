// JSON text as Python writes it.
#include "plugins/blocks/json_text.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

namespace heddle::blocks {
BOOST_AUTO_TEST_SUITE(blocks_json_text)

BOOST_AUTO_TEST_CASE(json_is_written_as_python_writes_it) {
  std::ifstream file(std::string(HEDDLE_TESTS_DIR) + "/plugins/image/data/json.txt",
                     std::ios::binary);
  std::size_t from = 0, to = 0;
  int count = 0;
  while (file >> from >> to) {
    file.ignore();
    std::string text(from, ' '), expected(to, ' ');
    file.read(text.data(), static_cast<std::streamsize>(from));
    file.read(expected.data(), static_cast<std::streamsize>(to));
    BOOST_TEST(python_json(text) == expected);
    ++count;
  }
  BOOST_TEST(count == 7);
  BOOST_TEST(python_json("\"a\\/b\"") == "\"a/b\"");
  BOOST_TEST(python_json("\"\xff\xe4\xb8\"") == "\"\\ufffd\\ufffd\"");
}

BOOST_AUTO_TEST_CASE(text_becomes_a_json_string) {
  BOOST_TEST(json_string("a\"\\\n\x01\x7f") == "\"a\\\"\\\\\\n\\u0001\\u007f\"");
  BOOST_TEST(json_string("\xc3\xa9\xf0\x9f\x99\x82") == "\"\\u00e9\\ud83d\\ude42\"");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::blocks
