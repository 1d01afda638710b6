// The outline of sources that are written to be misread.
#include "tests/house/outline.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <sstream>
#include <stdexcept>

namespace house {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::map<std::string, int> lengths(const std::string& text) {
  std::map<std::string, int> found;
  for (const Function& f : outline_of(lines_of(text)).functions) found[f.name] = f.lines();
  return found;
}

using Members = std::map<std::string, std::vector<std::string>>;
Members members(const std::string& text) {
  Members found;
  for (const Class& c : outline_of(lines_of(text)).classes) found[c.name] = c.data;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(outline)

BOOST_AUTO_TEST_CASE(functions_are_counted_from_their_type_to_their_brace) {
  BOOST_TEST((lengths("int f() { return 1; }") == std::map<std::string, int>{{"int f", 1}}));
  BOOST_TEST(
      (lengths("template <class T>\nstd::vector<T>\nf(int a = g({1}),\n  int b = 2)\n{\n  if (a) "
               "{\n  }\n}\nvoid g();") == std::map<std::string, int>{{"std :: vector f", 8}}));
  BOOST_TEST((
      lengths(
          "namespace a::b {\nnamespace {\nvoid f() {\n}\n}\nextern \"C\" {\nvoid g() {\n}\n}\n}") ==
      std::map<std::string, int>{{"void f", 2}, {"void g", 2}}));
  BOOST_TEST((lengths("BOOST_AUTO_TEST_CASE(name) {\n  x();\n}") ==
              std::map<std::string, int>{{"BOOST_AUTO_TEST_CASE(name)", 3}}));
}

BOOST_AUTO_TEST_CASE(what_looks_like_a_brace_or_a_function_is_none) {
  BOOST_TEST(lengths("const char* s = \"{ \\\" {\";\nconst char c = '{';\nint n = 1'000;\n// {\n/* "
                     "{ */\n#define X {\nauto r = R\"x({)\" {)x\";")
                 .empty());
  BOOST_TEST(
      lengths(
          "std::function<void(int)> f{nullptr};\nint x[] = {1, 2};\nstd::map<int, int> m{{1, 2}};")
          .empty());
  BOOST_TEST((lengths("struct A {\n  A() : a_{1}, b_(2), c_<int>{3} {\n  }\n  bool operator()(int) "
                      "const { return {}; }\n  operator bool() const { return true; }\n};") ==
              std::map<std::string, int>{{"A", 2}, {"bool operator", 1}, {"operator bool", 1}}));
  BOOST_CHECK_THROW(outline_of({"void f() {"}), std::runtime_error);
  BOOST_CHECK_THROW(outline_of({"}"}), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(members_are_data_of_objects) {
  BOOST_TEST(
      (members(
           "class A {\n public:\n  int f() const;\n  using T = int;\n  static int s;\n  friend "
           "class B;\n  int a, *b = nullptr, c[3];\n  std::map<int, std::function<void(int)>> d;\n"
           "  void (*e)(int) = nullptr;\n  struct In { int x; };\n  enum class E { one, two } "
           "g{E::one};\n  std::vector<int> h{1, 2};\n  Mutex m;\n"
           "  int i HEDDLE_GUARDED_BY(m) = 0;\n  unsigned j : 3, k : 5;\n  int value() { int l = "
           "0; struct Local { int y; }; return l; }\n};") ==
       Members{{"A", {"a", "b", "c", "d", "g", "h", "m", "i", "j", "k"}},
               {"In", {"x"}},
               {"Local", {"y"}}}));
  BOOST_TEST(
      (members(
           "typedef struct c_options {\n  int a;\n  void (*f)(void* user, int b);\n} c_options;") ==
       Members{{"c_options", {"a"}}}));
  BOOST_TEST((members("class HEDDLE_THREAD(capability(\"mutex\")) M final : public N<int> {\n  int "
                      "a;\n};\nstruct Declared;\nenum E { x };") == Members{{"M", {"a"}}}));
}

BOOST_AUTO_TEST_CASE(the_comment_before_a_class_is_its_own) {
  const Outline found =
      outline_of(lines_of("// Of nobody.\n\n// First line.\n// Second line.\ntemplate <class "
                          "T>\nclass A {\n  int a;\n};\nclass B {};"));
  BOOST_TEST_REQUIRE(found.classes.size() == 2u);
  BOOST_TEST(found.classes[0].comment == " First line.\n Second line.\n");
  BOOST_TEST(found.classes[0].line == 5);
  BOOST_TEST(found.classes[1].comment.empty());
  BOOST_TEST(
      outline_of({"/* In C. */", "typedef struct c {", "  int a;", "} c;"}).classes.at(0).comment ==
      " In C. */\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace house
