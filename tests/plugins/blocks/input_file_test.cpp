// Names of input files, and a hash of what is in them.
#include "plugins/blocks/input_file.h"

#include <boost/test/unit_test.hpp>

namespace heddle::blocks {
BOOST_AUTO_TEST_SUITE(blocks_input_file)

BOOST_AUTO_TEST_CASE(a_tag_behind_a_name_says_the_folder) {
  const auto parts = [](const char* name) {
    const FileName file = annotated(name);
    return file.folder + ":" + file.name;
  };
  BOOST_TEST(parts("cat.png") == "input:cat.png");
  BOOST_TEST(parts("sub/cat.png [output]") == "output:sub/cat.png");
  BOOST_TEST(parts("cat.png [temp]") == "temp:cat.png");
  BOOST_TEST(parts("cat.png [input]") == "input:cat.png");
  BOOST_TEST(parts("cat [other]") == "input:cat [other]");
  BOOST_TEST(parts("[temp]") == "temp:");
}

BOOST_AUTO_TEST_CASE(files_are_hashed_by_content) {
  // The published test vectors of FNV-1a.
  BOOST_TEST(content_hash({}) == 0xcbf29ce484222325u);
  BOOST_TEST(content_hash(std::vector<std::uint8_t>{'a'}) == 0xaf63dc4c8601ec8cu);
  BOOST_TEST(content_hash(std::vector<std::uint8_t>{'f', 'o', 'o', 'b', 'a', 'r'}) ==
             0x85944171f73967e8u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::blocks
