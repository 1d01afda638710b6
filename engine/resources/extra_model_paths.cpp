#include "engine/resources/extra_model_paths.h"

#ifdef HEDDLE_WITH_YAML
#include <yaml-cpp/yaml.h>
#endif

#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

#ifdef HEDDLE_WITH_YAML

namespace {

namespace fs = std::filesystem;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string with_variables(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool braces = text.starts_with("${");
    std::size_t begin = braces ? 2 : 1, end = begin;
    while (text[0] == '$' && end < text.size() && is_name(text[end])) ++end;
    const bool is_whole = !braces || (end < text.size() && text[end] == '}');
    const char* value = end > begin && is_whole
                            ? std::getenv(std::string(text.substr(begin, end - begin)).c_str())
                            : nullptr;
    const std::size_t size = value != nullptr && braces ? end + 1 : value != nullptr ? end : 1;
    out += value != nullptr ? std::string_view(value) : text.substr(0, 1);
    text.remove_prefix(size);
  }
  return out;
}

fs::path expanded(std::string_view text) {
  const char* home = std::getenv("HOME");
  const bool is_home = text == "~" || text.starts_with("~/");
  if (is_home && home != nullptr) return with_variables(cat(home, text.substr(1)));
  return with_variables(text);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  explicit Reader(const fs::path& file)
      : name_(file.string()), folder_(fs::absolute(file).parent_path()) {}

  ExtraModelPaths read(std::string_view text) {
    try {
      const YAML::Node root = YAML::Load(std::string(text));
      if (root.IsNull()) return {};
      if (!root.IsMap()) refuse(root, "expects sections, each with a name");
      for (const auto& section : root) read_section(section.first, section.second);
      return std::move(paths_);
    } catch (const YAML::Exception& error) {
      throw Error(Code::invalid_argument,
                  cat(name_, ":", error.mark.line + 1, ": ", error.msg, ". Correct the file."));
    }
  }

 private:
  std::string at(const YAML::Node& node) const { return cat(name_, ":", node.Mark().line + 1); }
  [[noreturn]] void refuse(const YAML::Node& node, std::string_view what) const {
    throw Error(Code::invalid_argument, cat(at(node), ": ", what, ". Correct the file."));
  }

  void read_section(const YAML::Node& title, const YAML::Node& section) {
    if (section.IsNull()) return;
    if (!section.IsMap())
      refuse(section, cat("the section ", quote(title.Scalar()),
                          " expects names of folders, each with its paths"));
    const fs::path base = base_of(section);
    std::vector<ModelPlace>& places =
        is_default(section["is_default"]) ? paths_.defaults : paths_.others;
    for (const auto& entry : section) {
      const std::string folder = entry.first.Scalar();
      if (folder == "base_path" || folder == "is_default") continue;
      if (folder == "custom_nodes") {
        paths_.remarks.push_back(
            cat(at(entry.first),
                ": custom_nodes are left out: they are Python, which heddle does "
                "not run."));
        continue;
      }
      for (const std::string& path : lines_of(entry.second, folder))
        places.push_back({(base / path).lexically_normal(), folder});
    }
  }

  fs::path base_of(const YAML::Node& section) const {
    const YAML::Node base = section["base_path"];
    if (!base.IsDefined() || base.IsNull()) return folder_;
    if (!base.IsScalar()) refuse(base, "base_path expects a folder");
    return folder_ / expanded(base.Scalar());
  }

  bool is_default(const YAML::Node& node) const {
    if (!node.IsDefined() || node.IsNull()) return false;
    bool value = false;
    if (!node.IsScalar() || !YAML::convert<bool>::decode(node, value))
      refuse(node, "is_default expects true or false");
    return value;
  }

  // The paths of a folder: a line each, or a list.
  std::vector<std::string> lines_of(const YAML::Node& node, std::string_view folder) const {
    std::vector<std::string> lines;
    if (node.IsNull()) return lines;
    if (node.IsSequence()) {
      for (const YAML::Node& item : node)
        for (std::string& line : lines_of(item, folder)) lines.push_back(std::move(line));
      return lines;
    }
    if (!node.IsScalar()) refuse(node, cat(quote(folder), " expects paths, one a line"));
    std::string_view rest = node.Scalar();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = trimmed(rest.substr(0, end));
      if (!line.empty()) lines.emplace_back(line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return lines;
  }

  const std::string name_;
  const fs::path folder_;  // of the file
  ExtraModelPaths paths_;
};

}  // namespace

bool can_read_extra_model_paths() { return true; }

ExtraModelPaths read_extra_model_paths(std::string_view text, const std::filesystem::path& file) {
  return Reader(file).read(text);
}

#else

bool can_read_extra_model_paths() { return false; }

ExtraModelPaths read_extra_model_paths(std::string_view, const std::filesystem::path& file) {
  throw Error(Code::unsupported, cat(file.string(), ": heddle was built without yaml-cpp"));
}

#endif

}  // namespace heddle::engine
