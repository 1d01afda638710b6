// The documents, held against the tree: paths and links lead somewhere, functions stand in the
// files that are named with them, options exist, and none is longer than a reader's patience.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {
namespace docs {

namespace fs = std::filesystem;

const fs::path kTop = HEDDLE_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Line {
  std::string where;  // "engine/README.md:12: "
  std::string text;
};

struct Document {
  fs::path path;            // relative to the top
  std::vector<Line> lines;  // all of them
  std::vector<Line> prose;  // without what stands between fences
};

Document read(const fs::path& path) {
  Document document{path, {}, {}};
  std::ifstream in(kTop / path);
  bool is_fenced = false;
  for (std::string text; std::getline(in, text);) {
    document.lines.push_back(
        {path.generic_string() + ":" + std::to_string(document.lines.size() + 1) + ": ", text});
    if (text.starts_with("```"))
      is_fenced = !is_fenced;
    else if (!is_fenced)
      document.prose.push_back(document.lines.back());
  }
  return document;
}

std::vector<Document> documents() {
  std::vector<Document> all{read("README.md")};
  for (const char* folder : {"engine", "plugins", "sdk", "tests", "graphs"})
    for (const auto& entry : fs::recursive_directory_iterator(kTop / folder))
      if (entry.path().filename() == "README.md")
        all.push_back(read(entry.path().lexically_relative(kTop)));
  return all;
}

std::vector<std::string> found(const std::string& text, const std::regex& what) {
  std::vector<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), what), end; at != end; ++at)
    all.push_back((*at)[1]);
  return all;
}

std::vector<std::string> quoted(const std::string& text) {
  static const std::regex quotes("`([^`]+)`");
  return found(text, quotes);
}

bool is_path(const std::string& text) {
  static const std::regex path(R"((engine|plugins|sdk|tests|graphs)/[\w./*-]+)");
  return std::regex_match(text, path);
}

// With one "*", or NAME, in the last part: any file that fits.
bool exists(const std::string& path) {
  const fs::path whole = kTop / path;
  const std::string name = std::regex_replace(whole.filename().string(), std::regex("NAME"), "*");
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return fs::exists(whole);
  if (!fs::is_directory(whole.parent_path())) return false;
  return std::ranges::any_of(
      fs::directory_iterator(whole.parent_path()), [&](const fs::directory_entry& entry) {
        const std::string there = entry.path().filename().string();
        return there.starts_with(name.substr(0, star)) && there.ends_with(name.substr(star + 1));
      });
}

std::set<std::string> options() {
  static const std::regex row(R"re(\{"([a-z-]+)", OptionKind)re"), literal("--([a-z][a-z-]*)");
  std::set<std::string> names{"help"};
  for (const std::string& name : found(text_of(kTop / "engine/cli/option_table.cpp"), row))
    names.insert(name);
  for (const char* file : {"engine/cli/command_line.cpp", "heddle"})
    for (const std::string& name : found(text_of(kTop / file), literal)) names.insert(name);
  return names;
}

BOOST_AUTO_TEST_SUITE(documents_)

BOOST_AUTO_TEST_CASE(every_path_in_them_exists) {
  std::size_t paths = 0;
  for (const Document& document : documents())
    for (const Line& line : document.prose)
      for (const std::string& path : quoted(line.text)) {
        if (!is_path(path)) continue;
        ++paths;
        BOOST_TEST(exists(path), line.where << "there is no " << path);
      }
  BOOST_TEST(paths > 100u);
}

BOOST_AUTO_TEST_CASE(every_link_in_them_leads_somewhere) {
  static const std::regex links(R"(\]\(([^)\s]+)\))");
  for (const Document& document : documents())
    for (const Line& line : document.prose)
      for (const std::string& link : found(line.text, links)) {
        if (link.find("://") != std::string::npos) continue;
        const std::size_t hash = std::min(link.find('#'), link.size());
        const fs::path path =
            hash == 0 ? document.path : document.path.parent_path() / link.substr(0, hash);
        BOOST_TEST(fs::exists(kTop / path), line.where << "there is no " << path.generic_string());
        if (hash == link.size() || !fs::exists(kTop / path)) continue;
        const Document other = read(path.lexically_normal());
        const bool has_heading = std::ranges::any_of(other.prose, [&](const Line& heading) {
          if (!heading.text.starts_with("#")) return false;
          std::string name;
          for (const char c :
               heading.text.substr(std::min(heading.text.find(' ') + 1, heading.text.size())))
            if (c == ' ' || c == '-')
              name += '-';
            else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
              name += char(std::tolower(static_cast<unsigned char>(c)));
          return name == link.substr(hash + 1);
        });
        BOOST_TEST(has_heading,
                   line.where << path.generic_string() << " has no heading " << link.substr(hash));
      }
}

// A function is looked for in the files that stand on its line.
BOOST_AUTO_TEST_CASE(every_function_stands_in_a_file_beside_it) {
  static const std::regex function(R"((?:\w+::)*(\w+)\(\))");
  std::size_t functions = 0;
  for (const Document& document : documents())
    for (const Line& line : document.prose) {
      std::string sources;
      for (const std::string& path : quoted(line.text))
        if (is_path(path) && fs::is_regular_file(kTop / path)) sources += text_of(kTop / path);
      if (sources.empty()) continue;
      for (const std::string& name : quoted(line.text)) {
        std::smatch match;
        if (!std::regex_match(name, match, function)) continue;
        ++functions;
        BOOST_TEST((sources.find(match[1].str() + "(") != std::string::npos),
                   line.where << name << " is in none of the files on this line");
      }
    }
  BOOST_TEST(functions > 40u);
}

BOOST_AUTO_TEST_CASE(every_option_for_users_exists) {
  static const std::regex option("(?:^|[ `])--([a-z][a-z-]*)");
  const std::set<std::string> known = options();
  BOOST_TEST(known.size() > 20u);
  for (const Document& document : documents()) {
    const std::string path = document.path.generic_string();
    if (path != "README.md" && !path.starts_with("graphs/README") && !path.starts_with("engine/"))
      continue;
    for (const Line& line : document.lines)
      for (const std::string& name : found(line.text, option))
        BOOST_TEST(known.contains(name), line.where << "there is no option --" << name);
  }
}

BOOST_AUTO_TEST_CASE(they_are_short) {
  for (const Document& document : documents()) {
    const std::size_t most = document.path == "README.md" ? 150 : 120;
    BOOST_TEST(document.lines.size() <= most, document.path.generic_string()
                                                  << " has " << document.lines.size() << " lines");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace docs
}  // namespace
