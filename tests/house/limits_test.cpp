// What one reader can hold in mind: lines of a function.
#include <boost/test/unit_test.hpp>

#include "tests/house/outline.h"
#include "tests/house/sources.h"

namespace house {
namespace {

constexpr int kMostLines = 80;

}  // namespace

BOOST_AUTO_TEST_SUITE(limits)

BOOST_AUTO_TEST_CASE(no_function_is_too_long) {
  std::size_t functions = 0;
  for (const char* folder : {"engine", "plugins", "sdk", "tests"})
    for (const SourceFile& file : sources(folder))
      for (const Function& f : outline_of(file.lines).functions) {
        ++functions;
        BOOST_TEST(f.lines() <= kMostLines, place(file, std::size_t(f.first_line))
                                                << f.name << " has " << f.lines()
                                                << " lines: name its parts");
      }
  BOOST_TEST(functions > 5000u);  // the outline has seen the tree
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace house
