#include "engine/cli/kept_options.h"

#include <algorithm>

#include "engine/base/json.h"
#include "engine/base/own_folder.h"

namespace heddle::cli {
namespace {

using engine::Json;

constexpr std::string_view kOfOneCall[] = {"trace", "json", "quiet", "log-level", "checkpoint"};

std::string kept_text(const OptionSpec& option, const Given& given) {
  const bool is_path = option.kind == OptionKind::path || option.kind == OptionKind::paths;
  if (!is_path || (option.name == "cache" && is_no_folder(given.text))) return given.text;
  const std::filesystem::path path = given.text;
  if (option.name == "plugins" && given.origin == Origin::configuration && path.is_relative())
    return (engine::program_folder() / path).string();
  return std::filesystem::absolute(path).string();
}

}  // namespace

std::string kept_options(const Layer& options) {
  Json kept = Json::object();
  for (const OptionSpec& option : all_options()) {
    if ((option.commands & kResume) == 0) continue;
    if (std::ranges::find(kOfOneCall, option.name) != std::end(kOfOneCall)) continue;
    const std::vector<Given>& given = options.of(option.name);
    if (given.empty()) continue;
    const std::string name(option.name);
    if (option.kind == OptionKind::flag) {
      kept.set(name, given.back().text == "true");
    } else if (option.kind == OptionKind::number) {
      kept.set(name, engine::parse_json(given.back().text, name));
    } else if (option.kind == OptionKind::word || option.kind == OptionKind::size ||
               option.kind == OptionKind::path) {
      kept.set(name, kept_text(option, given.back()));
    } else {
      Json list = Json::array();
      for (const Given& one : given) list.push(kept_text(option, one));
      kept.set(name, std::move(list));
    }
  }
  for (const char* folder : {"input", "output"})
    if (options.of(folder).empty() && options.of("comfyui").empty())
      kept.set(folder, std::filesystem::absolute(folder).string());
  return engine::write_json(kept);
}

Layer read_kept_options(const std::string& text, const std::filesystem::path& file) {
  return text.empty() ? Layer() : read_configuration(text, file);
}

}  // namespace heddle::cli
