// Every source is formatted as .clang-format says, by the clang-format of Debian 12: others would
// have it otherwise.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include "tests/house/sources.h"
#include "tests/support/temporary_folder.h"

namespace house {
namespace {

// What a command of the shell prints.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  BOOST_TEST_REQUIRE((pipe != nullptr));
  char block[4096];
  while (const std::size_t got = std::fread(block, 1, sizeof block, pipe)) text.append(block, got);
  ::pclose(pipe);
  return text;
}

// "" when there is none of version 14.
std::string formatter() {
  for (const char* name : {"clang-format-14", "clang-format"})
    if (output_of(std::string(name) + " --version 2>&1").find("clang-format version 14.") !=
        std::string::npos)
      return name;
  return "";
}

boost::test_tools::assertion_result has_formatter(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!formatter().empty());
  result.message() << "there is no clang-format 14; install the package clang-format-14";
  return result;
}

// Those of the files, paths relative to the root, that clang-format would write otherwise.
std::set<std::string> unformatted(const std::vector<std::string>& files) {
  const heddle::test::TemporaryFolder folder;
  std::string list;
  for (const std::string& file : files) list += file + '\n';
  const std::string command =
      "cd '" + kRoot.string() + "' && xargs -d '\\n' -a '" + folder.write("files", list).string() +
      "' -n 16 -P " + std::to_string(std::max(1u, std::thread::hardware_concurrency())) + " " +
      formatter() + " --dry-run -Werror --ferror-limit=1 --style=file 2>&1";
  std::set<std::string> found;
  const std::string text = output_of(command);
  static const std::regex finding("(?:^|\n)([^:\n]+):\\d+:\\d+: error: ");
  for (std::sregex_iterator at(text.begin(), text.end(), finding), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(format, *boost::unit_test::precondition(has_formatter))

BOOST_AUTO_TEST_CASE(every_source_is_as_clang_format_writes_it) {
  std::vector<std::string> files;
  for (const char* folder : {"engine", "plugins", "sdk", "tests"})
    for (const SourceFile& file : sources(folder)) files.push_back(file.path);
  BOOST_TEST(files.size() > 500u);
  for (const std::string& file : unformatted(files))
    BOOST_TEST(false, file << " is not formatted: " << formatter() << " -i " << file);
}

BOOST_AUTO_TEST_CASE(a_source_that_is_not_formatted_is_found) {
  const heddle::test::TemporaryFolder folder;
  std::ofstream(folder / ".clang-format") << std::ifstream(kRoot / ".clang-format").rdbuf();
  const std::string good = folder.write("good.cpp", "int f() { return 1; }\n"),
                    bad = folder.write("bad.cpp", "int  f(){return 1 ;}\n");
  BOOST_TEST((unformatted({good, bad}) == std::set<std::string>{bad}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace house
