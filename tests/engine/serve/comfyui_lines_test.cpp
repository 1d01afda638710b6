// comfyui_lines.txt names for each statement about ComfyUI's server the test that holds heddle to
// it: each is there.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/base/text.h"

namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(" | ", at), line.size());
    parts.push_back(line.substr(at, end - at));
    at = end + 3;
  }
  return parts;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(comfyui_lines)

BOOST_AUTO_TEST_CASE(each_statement_has_its_test) {
  std::istringstream lines(text_of_file(HEDDLE_TESTS_DIR "/engine/serve/comfyui_lines.txt"));
  std::map<std::string, std::string> files;
  std::size_t held = 0, without = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> parts = columns(line);
    BOOST_TEST_REQUIRE(parts.size() == 3u, line);
    if (parts[1] == "none") {
      BOOST_TEST(!parts[2].empty(), line);
      ++without;
      continue;
    }
    const auto [at, is_new] = files.try_emplace(parts[1]);
    if (is_new) at->second = text_of_file(heddle::engine::cat(HEDDLE_SOURCE_DIR "/", parts[1]));
    const std::string& text = at->second;
    const auto has = [&](const std::string& word) {
      return text.find(word + parts[2] + ",") != std::string::npos ||
             text.find(word + parts[2] + ")") != std::string::npos ||
             text.find(word + parts[2] + "(") != std::string::npos;
    };
    BOOST_TEST((has("TEST_CASE(") || has("def ")), line);
    ++held;
  }
  BOOST_TEST(held >= 138u);
  BOOST_TEST(without == 0u);
  BOOST_TEST_MESSAGE(held << " statements with a test, " << without << " without");
}

BOOST_AUTO_TEST_SUITE_END()
