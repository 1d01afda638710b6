#include "engine/cli/server_uploads.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/hash.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/cli/variants.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;
using engine::cat;
using engine::Json;

constexpr engine::FileKind kInputFile{"an input file", std::uint64_t{1} << 30};

fs::path input_folder(const Settings& settings) {
  if (!settings.engine.input_dir.empty()) return settings.engine.input_dir;
  return settings.engine.comfyui_dir.empty() ? fs::path("input")
                                             : settings.engine.comfyui_dir / "input";
}

bool has_class(const Json& node) {
  const Json* type = node.find("class_type");
  return type != nullptr && type->is_string();
}

// In ComfyUI's API format, perhaps within "prompt".
const Json* api_nodes(const Json& workflow) {
  const Json* const inner = workflow.find("prompt");
  const Json& nodes =
      inner != nullptr && inner->is_object() && !has_class(*inner) ? *inner : workflow;
  if (!nodes.is_object()) return nullptr;
  for (const Json::Member& node : nodes.members())
    if (node.value.is_object() && has_class(node.value)) return &nodes;
  return nullptr;
}

// Something that no file has in it.
std::string boundary() {
  std::random_device random;
  std::string text = "heddle-";
  for (int i = 0; i < 32; ++i) text += "0123456789abcdef"[random() % 16];
  return text;
}

// "a \"b\".png" in a header of a part.
std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// What is below a folder and not hidden, by its names there, which are sorted.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto add = [&](const engine::FolderEntry& entry, int) {
    const bool is_hidden = entry.name().starts_with('.');
    if (!is_hidden && entry.is_file()) files.push_back(entry.path.lexically_relative(folder));
    return !is_hidden;
  };
  engine::walk(folder, engine::Links::stay, add, error);
  if (error) throw engine::system_error(folder.string(), error.value());
  std::ranges::sort(files);
  return files;
}

class Uploads {
 public:
  Uploads(const Settings& settings, const ServerClient& server)
      : input_(input_folder(settings)), output_(output_folder(settings)), server_(server) {}

  // The name to say instead; nothing: it is no file or folder that is here.
  std::optional<std::string> named(const std::string& value) {
    static constexpr std::string_view kInput = " [input]", kOutput = " [output]";
    std::string name = value;
    const bool is_output = value.ends_with(kOutput);
    for (const std::string_view mark : {kInput, kOutput})
      if (value.ends_with(mark)) name.resize(value.size() - mark.size());
    const fs::path relative(name), path = (is_output ? output_ : input_) / relative;
    const auto is_nothing = [](const fs::path& part) { return part.empty() || part == "."; };
    // "." would be all that is here.
    if (std::ranges::all_of(relative, is_nothing) || relative.is_absolute() ||
        std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; }))
      return std::nullopt;
    std::error_code ignored;
    const bool is_folder = !is_output && fs::is_directory(path, ignored);
    if (!is_folder && !fs::is_regular_file(path, ignored)) return std::nullopt;
    const auto [at, is_new] = names_.try_emplace(path.string());
    if (is_new) at->second = is_folder ? upload_folder(path) : upload(path, relative.parent_path());
    return at->second.empty() ? std::nullopt : std::optional(at->second);
  }

  // Whether a value of this input may be such a file. As ComfyUI tells it: the input says that
  // files can be uploaded for it, or lists names to choose of, and the value is none of them.
  bool may_be_file(const std::string& type, const std::string& input, const std::string& value) {
    const Json* declared = declaration(type, input);
    if (declared == nullptr || !declared->is_array() || declared->size() == 0) return false;
    const Json none = Json::object();
    const Json& options = declared->size() > 1 ? declared->at(std::size_t{1}) : none;
    const Json* choices = &declared->at(std::size_t{0});
    if (choices->is_string()) choices = options.find("options");
    if (options.is_object())
      for (const Json::Member& option : options.members())
        if (option.key.ends_with("_upload") && option.value.is_bool() && option.value.as_bool())
          return true;
    if (choices == nullptr || !choices->is_array()) return false;
    return std::ranges::none_of(choices->as_array(), [&](const Json& choice) {
      return choice.is_string() && choice.as_string() == value;
    });
  }

 private:
  const Json* declaration(const std::string& type, const std::string& input) {
    const auto [at, is_new] = classes_.try_emplace(type);
    if (is_new) at->second = server_.get(cat("/object_info/", url_segment(type)));
    const Json* info = at->second.find(type);
    const Json* inputs = info == nullptr ? nullptr : info->find("input");
    for (const char* group : {"required", "optional"}) {
      const Json* of_group = inputs == nullptr ? nullptr : inputs->find(group);
      if (of_group == nullptr) continue;
      if (const Json* found = of_group->find(input)) return found;
    }
    return nullptr;
  }

  // Under a name that tells its content: what the server has under the folder's own name is not
  // mixed with it, and the same one is there once. "": there is nothing in it.
  std::string upload_folder(const fs::path& folder) const {
    const std::vector<fs::path> files = files_below(folder);
    if (files.empty()) return {};
    engine::Hasher content;
    for (const fs::path& file : files)
      content.add(file.generic_string()).add(engine::read_file(folder / file, kInputFile));
    const std::string name = cat(folder.lexically_normal().filename().string(), "-",
                                 hex(content.finish()).substr(0, 16));
    for (const fs::path& file : files) upload(folder / file, name / file.parent_path());
    return name;
  }

  // Into the server's input folder. Its name there.
  std::string upload(const fs::path& file, const fs::path& below) const {
    const std::string content = engine::read_file(file, kInputFile), mark = boundary(),
                      subfolder = below.generic_string();
    const auto head = [&](std::string_view name, std::string_view more) {
      return cat("--", mark, "\r\nContent-Disposition: form-data; name=\"", name, "\"", more,
                 "\r\n\r\n");
    };
    std::string form = head("image", cat("; filename=", in_quotes(file.filename().string()),
                                         "\r\nContent-Type: application/octet-stream"));
    form += content;
    form += cat("\r\n", head("type", ""), "input\r\n", head("subfolder", ""), subfolder, "\r\n--",
                mark, "--\r\n");
    const Json saved =
        server_.post_form("/upload/image", cat("multipart/form-data; boundary=", mark), form);
    const std::string& name = saved.at("name").as_string();
    return subfolder.empty() ? name : cat(subfolder, "/", name);
  }

  const fs::path input_, output_;
  const ServerClient& server_;
  std::map<std::string, std::string> names_;  // on the server, by the path here
  std::map<std::string, Json> classes_;       // what /object_info tells of a class
};

// Of a list of values, or of one.
void rename_in(Json& values,
               const std::function<std::optional<std::string>(const std::string&)>& to) {
  if (values.is_string()) {
    if (auto name = to(values.as_string())) values = *std::move(name);
  } else if (values.is_array()) {
    Json renamed = Json::array();
    for (Json value : values.as_array()) {
      if (value.is_string())
        if (auto name = to(value.as_string())) value = *std::move(name);
      renamed.push(std::move(value));
    }
    values = std::move(renamed);
  }
}

}  // namespace

fs::path output_folder(const Settings& settings) {
  if (!settings.engine.output_dir.empty()) return settings.engine.output_dir;
  return settings.engine.comfyui_dir.empty() ? fs::path("output")
                                             : settings.engine.comfyui_dir / "output";
}

void upload_inputs(Json& body, const Settings& settings, const ServerClient& server) {
  std::error_code ignored;
  if (!fs::is_directory(input_folder(settings), ignored) &&
      !fs::is_directory(output_folder(settings), ignored))
    return;
  Uploads uploads(settings, server);
  Json converted;
  const Json* nodes = api_nodes(body.at("workflow"));
  if (nodes == nullptr) {
    Json asked = Json::object();
    converted =
        server.post("/v1/validate", asked.set("workflow", body.at("workflow"))).at("prompt");
    nodes = &converted;
  }
  const Workflow flow = Workflow::parse(engine::write_json(*nodes));
  Json sets = body.find("set") == nullptr ? Json::object() : body.at("set");
  const Json* sweep = body.find("sweep");
  Json lists = sweep == nullptr ? Json::object() : sweep->at("inputs");
  const auto rename_values = [&](Json& given) {
    Json renamed = Json::object();
    for (const Json::Member& member : given.members()) {
      Json value = member.value;
      const InputName name = split_input_name(member.key, flow);
      if (const auto node = flow.find(name.node))
        rename_in(value, [&](const std::string& text) {
          return uploads.may_be_file(node->class_type, name.input, text) ? uploads.named(text)
                                                                         : std::nullopt;
        });
      renamed.set(member.key, std::move(value));
    }
    given = std::move(renamed);
  };
  const auto is_given = [&](const std::string& id, const std::string& input) {
    const auto names_it = [&](const Json::Member& member) {
      const InputName name = split_input_name(member.key, flow);
      if (name.input != input) return false;
      const auto node = flow.find(name.node);
      return node && node->id == id;
    };
    return std::ranges::any_of(sets.members(), names_it) ||
           std::ranges::any_of(lists.members(), names_it);
  };
  // What stands in the workflow is set beside it: it stays as it was written.
  Json more = Json::object();
  for (const Json::Member& node : nodes->members()) {
    const Json* inputs = node.value.is_object() ? node.value.find("inputs") : nullptr;
    if (inputs == nullptr || !inputs->is_object() || !has_class(node.value)) continue;
    for (const Json::Member& input : inputs->members()) {
      if (!input.value.is_string() || is_given(node.key, input.key)) continue;
      const std::string& value = input.value.as_string();
      if (!uploads.may_be_file(node.value.at("class_type").as_string(), input.key, value)) continue;
      const std::optional<std::string> name = uploads.named(value);
      if (name && *name != value) more.set(cat(node.key, ".", input.key), *name);
    }
  }
  rename_values(sets);
  rename_values(lists);
  for (const Json::Member& member : more.members()) sets.set(member.key, member.value);
  if (sets.size() > 0) body.set("set", std::move(sets));
  if (sweep != nullptr) {
    Json renamed = *sweep;
    body.set("sweep", std::move(renamed.set("inputs", std::move(lists))));
  }
}

}  // namespace heddle::cli
