// What one reader can hold in mind: lines of a function, members of a class.
#include <boost/test/unit_test.hpp>

#include "tests/house/outline.h"
#include "tests/house/sources.h"

namespace house {
namespace {

constexpr int kMostLines = 80;
constexpr std::size_t kMostMembers = 15;
// The last lines of the comment directly before a class may begin with it and say why they belong
// together.
constexpr const char* kExcuse = "Over 15 members:";

// Of the reason; 0: none is given.
std::size_t excuse_length(const Class& of) {
  const std::size_t at = of.comment.find(kExcuse);
  return at == std::string::npos ? 0 : of.comment.size() - at - std::string(kExcuse).size();
}

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

BOOST_AUTO_TEST_CASE(no_class_has_too_many_members_without_a_reason) {
  std::size_t classes = 0;
  for (const char* folder : {"engine", "plugins", "sdk", "tests"})
    for (const SourceFile& file : sources(folder))
      for (const Class& c : outline_of(file.lines).classes) {
        ++classes;
        const std::string what = place(file, std::size_t(c.line)) + c.name + " has " +
                                 std::to_string(c.data.size()) + " data members: ";
        const bool is_large = c.data.size() > kMostMembers;
        BOOST_TEST((!is_large || excuse_length(c) > 20),
                   what << "split it, or say before it, after \"" << kExcuse << "\", why not");
        BOOST_TEST((is_large || excuse_length(c) == 0), what << "its excuse can go");
      }
  BOOST_TEST(classes > 1000u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace house
