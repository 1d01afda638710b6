#include "engine/cli/layer.h"

#include <algorithm>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

bool is_repeated(OptionKind kind) {
  return kind == OptionKind::words || kind == OptionKind::paths || kind == OptionKind::pairs ||
         kind == OptionKind::assignments;
}
bool adds_up(OptionKind kind) {
  return kind == OptionKind::pairs || kind == OptionKind::assignments;
}

// Reads the JSON value of one option into a layer.
class JsonValue {
 public:
  JsonValue(const OptionSpec& option, Origin origin, std::string where, Layer& layer)
      : option_(option), origin_(origin), where_(std::move(where)), layer_(layer) {}

  void read(const Json& json) const {
    if (option_.kind == OptionKind::flag) {
      if (!json.is_bool()) refuse(json, "true or false");
      return add(json, json.as_bool() ? "true" : "false");
    }
    if (option_.kind == OptionKind::number) {
      if (!is_whole(json)) refuse(json, "a whole number");
      return add(json, engine::write_json(json));
    }
    if (adds_up(option_.kind) && json.is_object()) return read_members(json);
    if (is_repeated(option_.kind) && json.is_array()) {
      for (const Json& element : json.as_array()) {
        if (!element.is_string()) refuse(element, "a string");
        add(element, element.as_string());
      }
      return;
    }
    if (option_.kind == OptionKind::size && is_whole(json))
      return add(json, engine::write_json(json));
    if (!json.is_string()) refuse(json, wanted());
    add(json, json.as_string());
  }

 private:
  void read_members(const Json& json) const {
    for (const Json::Member& member : json.members()) {
      const Json& value = member.value;
      const bool is_size = option_.name == "budget" || option_.name == "reserve";
      const bool fits = option_.kind == OptionKind::assignments || value.is_string() ||
                        (is_size && is_whole(value));
      if (!fits) refuse(value, "a string");
      add(value, cat(member.key, "=", value.is_string() ? value.as_string() : write_json(value)));
    }
  }

  // Whoever reads the option says how large it may be.
  static bool is_whole(const Json& json) {
    return json.is_integer() || json.wide_digits() != nullptr;
  }

  std::string_view wanted() const {
    if (adds_up(option_.kind)) return "an object, a string or an array of strings";
    return is_repeated(option_.kind) ? "a string or an array of strings" : "a string";
  }

  std::string place(const Json& json) const {
    return json.line() == 0 || origin_ == Origin::environment ? where_
                                                              : cat(where_, ":", json.where());
  }

  void add(const Json& json, std::string text) const {
    layer_.add(option_, {std::move(text), origin_, place(json)});
  }

  [[noreturn]] void refuse(const Json& json, std::string_view wanted) const {
    throw Error(Code::invalid_argument, cat(place(json), ": ", engine::quote(option_.name),
                                            " expects ", wanted, ", got ", json.describe(), "."));
  }

  const OptionSpec& option_;
  Origin origin_;
  std::string where_;
  Layer& layer_;
};

std::vector<std::string> separate(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    if (end != 0 && !text.empty()) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

void read_variable(const OptionSpec& option, const std::string& text, Layer& layer) {
  const std::string where = environment_name(option);
  if (is_repeated(option.kind) && (text[0] == '[' || text[0] == '{'))
    return JsonValue(option, Origin::environment, where, layer)
        .read(engine::parse_json(text, where));
  std::vector<std::string> parts{text};
  if (option.kind == OptionKind::paths) parts = separate(text, ':');
  if (option.kind == OptionKind::words || option.kind == OptionKind::pairs)
    parts = separate(text, ',');
  // NODE=cpu:0,cpu:1 is one pair: a comma begins another one only where a "=" follows.
  for (std::size_t i = 1; option.kind == OptionKind::pairs && i < parts.size();) {
    if (parts[i].find('=') != std::string::npos) {
      ++i;
      continue;
    }
    parts[i - 1] += cat(",", parts[i]);
    parts.erase(parts.begin() + std::ptrdiff_t(i));
  }
  for (std::string& part : parts) layer.add(option, {std::move(part), Origin::environment, where});
}

}  // namespace

void Layer::add(const OptionSpec& option, Given given) {
  auto entry = std::ranges::find(entries_, &option, &Entry::option);
  if (entry == entries_.end()) entry = entries_.insert(entry, {&option, {}});
  entry->given.push_back(std::move(given));
}

const std::vector<Given>& Layer::of(std::string_view option) const {
  static const std::vector<Given> kNone;
  for (const Entry& entry : entries_)
    if (entry.option->name == option) return entry.given;
  return kNone;
}

Layer read_environment(const Lookup& lookup) {
  Layer layer;
  for (const OptionSpec& option : all_options()) {
    const std::optional<std::string> text = lookup(environment_name(option));
    if (text && !text->empty()) read_variable(option, *text, layer);
  }
  return layer;
}

bool is_no_folder(std::string_view text) { return text.empty() || text == "none"; }

Layer read_configuration(std::string_view text, const std::filesystem::path& file) {
  const std::string name = file.string();
  const Json json = engine::parse_json(text, name);
  if (!json.is_object())
    throw Error(Code::invalid_argument,
                cat(name, ": a configuration is an object of options, got ", json.describe(), "."));
  Layer layer;
  for (const Json::Member& member : json.members()) {
    const OptionSpec* option = find_option(member.key);
    if (option == nullptr) {
      std::vector<std::string_view> names;
      for (const OptionSpec& known : all_options()) names.push_back(known.name);
      // An object under the name of a kind of device: options of its own. Which kinds there are is
      // known when plugins are loaded.
      if (member.value.is_object() && engine::nearest(member.key, names).empty()) {
        layer.add(*find_option("options"),
                  {cat(member.key, "=", engine::write_json(member.value)), Origin::configuration,
                   cat(name, ":", member.line, ":", member.column)});
        continue;
      }
      throw Error(Code::invalid_argument,
                  cat(name, ":", member.line, ":", member.column, ": there is no option ",
                      engine::quote(member.key), ".", engine::did_you_mean(member.key, names),
                      " The options are those of `heddle run --help`."));
    }
    Layer values;
    JsonValue(*option, Origin::configuration, name, values).read(member.value);
    const bool relative_to_file = option->kind == OptionKind::path ||
                                  (option->kind == OptionKind::paths && option->name != "plugins");
    for (Given given : values.of(option->name)) {
      const bool is_none = option->name == "cache" && is_no_folder(given.text);
      if (relative_to_file && !is_none) given.text = (file.parent_path() / given.text).string();
      layer.add(*option, std::move(given));
    }
  }
  return layer;
}

std::vector<std::filesystem::path> configuration_files(const std::filesystem::path& workflow,
                                                       const Lookup& lookup) {
  std::vector<std::filesystem::path> files;
  if (!workflow.empty()) files.push_back(workflow.parent_path() / "heddle.json");
  const std::optional<std::string> config = lookup("XDG_CONFIG_HOME");
  const std::optional<std::string> home = lookup("HOME");
  if (config && !config->empty()) {
    files.push_back(std::filesystem::path(*config) / "heddle/config.json");
  } else if (home && !home->empty()) {
    files.push_back(std::filesystem::path(*home) / ".config/heddle/config.json");
  }
  std::error_code ignored;
  std::erase_if(files, [&](const auto& file) { return !std::filesystem::exists(file, ignored); });
  return files;
}

std::filesystem::path default_costs_file(const Lookup& lookup) {
  const std::filesystem::path folder = default_cache_folder(lookup);
  return folder.empty() ? folder : folder / "costs.json";
}

std::filesystem::path default_cache_folder(const Lookup& lookup) {
  const std::optional<std::string> cache = lookup("XDG_CACHE_HOME");
  const std::optional<std::string> home = lookup("HOME");
  if (cache && !cache->empty()) return std::filesystem::path(*cache) / "heddle";
  if (home && !home->empty()) return std::filesystem::path(*home) / ".cache/heddle";
  return {};
}

Layer lay_over(const std::vector<Layer>& layers) {
  Layer all;
  for (const OptionSpec& option : all_options()) {
    if (adds_up(option.kind)) {
      for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
        for (const Given& given : layer->of(option.name)) all.add(option, given);
      continue;
    }
    const auto first = std::ranges::find_if(
        layers, [&](const Layer& layer) { return !layer.of(option.name).empty(); });
    if (first == layers.end()) continue;
    for (const Given& given : first->of(option.name)) all.add(option, given);
  }
  return all;
}

}  // namespace heddle::cli
