// What the server knows: node types, models, the machine.
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "engine/base/folder.h"
#include "engine/base/text.h"
#include "engine/serve/converted_picture.h"
#include "engine/serve/model_files.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

// Of ComfyUI, whose interface this is; front ends compare them. What is installed is what is
// wanted: a server that serves no front end works with any since these.
constexpr const char* kComfyVersion = "0.3.64";
constexpr const char* kFrontEndVersion = "1.27.10";
constexpr const char* kTemplatesVersion = "0.1.95";

constexpr std::uint64_t kMostMetadata = 1 << 20;  // bytes of a header that is shown

Json list_of(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push(name);
  return list;
}

HttpResponse one_class(const Call& call, const ServiceParts& parts) {
  try {
    return json_response(parts.owners.without_foreign(
        call.request.caller, parts.engine.object_info(call.part("class"))));
  } catch (const EngineError& error) {
    if (error.code() != int(Code::not_found)) throw;
    return json_response(Json::object());
  }
}

void require_folder(const heddle::Engine& engine, const std::string& folder) {
  const std::vector<std::string> names = engine.folder_names();
  if (std::find(names.begin(), names.end(), folder) == names.end())
    throw Refused{HttpResponse{404, {}, "", {}}};
}

std::vector<std::string> without_endings(std::vector<std::string> names) {
  for (std::string& name : names) name = fs::path(name).replace_extension().generic_string();
  return names;
}

std::int64_t seconds_of(fs::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

HttpResponse folders_of_models(const heddle::Engine& engine) {
  Json all = Json::array();
  for (const std::string& name : engine.folder_names()) {
    if (name == "configs" || name == "custom_nodes") continue;
    Json folder = Json::object(), places = Json::array();
    for (const fs::path& place : engine.folder_places(name)) places.push(place.string());
    all.push(std::move(folder.set("name", name).set("folders", std::move(places))));
  }
  return json_response(all);
}

HttpResponse files_of_models(const Call& call, const heddle::Engine& engine) {
  const std::string& folder = call.part("folder");
  require_folder(engine, folder);
  const std::vector<fs::path> places = engine.folder_places(folder);
  Json all = Json::array();
  for (const std::string& name : engine.folder_files(folder))
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(places[i] / name, error);
      if (error) continue;
      const std::int64_t time = seconds_of(fs::last_write_time(places[i] / name, error));
      Json file = Json::object();
      file.set("name", name).set("pathIndex", i).set("modified", time).set("created", time);
      all.push(std::move(file.set("size", bytes)));
      break;
    }
  return json_response(all);
}

// Files of models may be links: people keep them elsewhere.
HttpResponse view_metadata(const Call& call, const heddle::Engine& engine) {
  const std::string& folder = call.part("folder");
  require_folder(engine, folder);
  const std::string name = call.query.get("filename");
  if (is_safe_name(name) && name.ends_with(".safetensors"))
    for (const fs::path& place : engine.folder_places(folder)) {
      std::error_code ignored;
      if (!fs::is_regular_file(place / name, ignored)) continue;
      if (const std::optional<Json> metadata = model_metadata(place / name, kMostMetadata))
        return json_response(*metadata);
    }
  throw Refused{HttpResponse{404, {}, "", {}}};
}

// A picture of what a model makes, as WebP.
HttpResponse preview_of_model(const Call& call, const heddle::Engine& engine) {
  const HttpResponse none{404, {}, "", {}};
  const std::string &folder = call.part("folder"), &name = call.part("file");
  require_folder(engine, folder);
  const std::vector<fs::path> places = engine.folder_places(folder);
  const std::string& text = call.part("path_index");
  std::size_t index = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!is_number || index >= places.size() || !is_safe_name(name)) return none;
  heddle::PictureConversion conversion;
  conversion.format = "webp";
  conversion.quality = 80;
  const auto picture = [&] {
    std::optional<std::string> preview = model_preview(places[index] / name);
    if (!preview) throw Refused{none};
    return *std::move(preview);
  };
  try {
    HttpResponse response{200, {}, converted_picture(engine, picture, conversion), {}};
    return std::move(response.set("Content-Type", "image/webp"));
  } catch (const Refused&) {  // what is there is no picture
    return none;
  } catch (const Error&) {  // or cannot be read
    return none;
  }
}

Json devices_of(const heddle::Engine& engine) {
  Json all = Json::array();
  for (const DeviceInfo& device : engine.devices()) {
    const std::size_t colon = device.id.find(':');
    const std::string index = colon == std::string::npos ? "0" : device.id.substr(colon + 1);
    Json told = Json::object();
    told.set("name", cat(device.id, " ", device.name)).set("type", device.kind);
    told.set("index", parse_json(index, "index"));
    told.set("vram_total", device.memory_total).set("vram_free", device.memory_free);
    told.set("torch_vram_total", device.memory_ours);
    told.set("torch_vram_free",
             device.memory_ours - std::min(device.memory_ours, device.memory.taken));
    all.push(std::move(told));
  }
  return all;
}

HttpResponse system_stats(const ServiceParts& parts) {
  struct sysinfo memory {};
  ::sysinfo(&memory);
  Json system = Json::object(), arguments = Json::array(), answer = Json::object();
  for (const std::string& argument : parts.options.arguments) arguments.push(argument);
  const std::string program = cat("heddle ", parts.engine.version());
  system.set("os", "linux").set("ram_total", std::uint64_t{memory.totalram} * memory.mem_unit);
  system.set("ram_free", std::uint64_t{memory.freeram} * memory.mem_unit);
  system.set("comfyui_version", kComfyVersion);
  const FrontEnd& front_end = parts.options.front_end;
  const std::string& templates = front_end.templates_version;
  system.set("required_frontend_version",
             front_end.version.empty() ? kFrontEndVersion : front_end.version);
  system.set("installed_templates_version", templates.empty() ? Json() : Json(templates));
  system.set("required_templates_version", templates.empty() ? kTemplatesVersion : templates);
  system.set("python_version", program).set("pytorch_version", program);
  system.set("embedded_python", false).set("argv", std::move(arguments));
  answer.set("system", std::move(system));
  return json_response(answer.set("devices", devices_of(parts.engine)));
}

HttpResponse folder_paths(const heddle::Engine& engine) {
  Json all = Json::object();
  std::vector<std::string> names = engine.folder_names();
  names.insert(names.end(), {"input", "output", "temp"});
  for (const std::string& name : names) {
    Json places = Json::array();
    for (const fs::path& place : engine.folder_places(name)) places.push(place.string());
    all.set(name, std::move(places));
  }
  return json_response(all);
}

// The newest first: a list of what was made ends where people begin to look.
HttpResponse newest_files(const Call& call, const ServiceParts& parts) {
  const std::string& folder = call.part("folder");
  if (folder != "input" && folder != "output" && folder != "temp")
    throw Refused{json_response(Json(Json::object().set("error", "Invalid directory type")), 400)};
  std::vector<std::pair<std::int64_t, std::string>> files;
  std::error_code error;
  for (const fs::path& place : parts.engine.folder_places(folder))
    for (const FolderEntry& entry : entries_of(place, error)) {
      const std::string name = entry.name();
      if (name.starts_with('.') || !entry.is_file()) continue;
      if (!parts.owners.may_see(call.request.caller, {folder, name})) continue;
      std::error_code gone;
      const auto time = fs::last_write_time(entry.path, gone).time_since_epoch().count();
      files.emplace_back(-std::int64_t(time), cat(name, " [", folder, "]"));
    }
  std::sort(files.begin(), files.end());
  Json names = Json::array();
  for (const auto& [time, name] : files) names.push(name);
  return json_response(names);
}

// ComfyUI's server has files by the hash of their content where it is started with
// --enable-assets. This one has them not, and says so as that does without the option.
void add_asset_routes(Router& router) {
  const auto disabled = [](const Call&) {
    Json error = Json::object(), answer = Json::object();
    error.set("code", "SERVICE_DISABLED");
    error.set("message",
              "Assets system is disabled. This server has none: name files by their folders.");
    answer.set("error", std::move(error.set("details", Json::object())));
    return json_response(answer, 503);
  };
  for (const auto& [method, path] : std::initializer_list<std::pair<const char*, const char*>>{
           {"GET", "/api/assets"},
           {"POST", "/api/assets"},
           {"GET", "/api/assets/{path...}"},
           {"POST", "/api/assets/{path...}"},
           {"PUT", "/api/assets/{path...}"},
           {"DELETE", "/api/assets/{path...}"},
           {"GET", "/api/tags"}})
    router.add(method, path, disabled);
}

}  // namespace

void add_info_routes(Router& router, const ServiceParts& parts) {
  add_asset_routes(router);
  const heddle::Engine& engine = parts.engine;
  router.add_twice("GET", "/object_info", [parts](const Call& call) {
    return json_response(
        parts.owners.without_foreign(call.request.caller, parts.engine.object_info("")));
  });
  router.add_twice("GET", "/object_info/{class}",
                   [parts](const Call& call) { return one_class(call, parts); });
  router.add_twice("GET", "/embeddings", [&engine](const Call&) {
    return json_response(list_of(without_endings(engine.folder_files("embeddings"))));
  });
  router.add_twice("GET", "/models", [&engine](const Call&) {
    return json_response(list_of(engine.folder_names()));
  });
  router.add_twice("GET", "/models/{folder}", [&engine](const Call& call) {
    require_folder(engine, call.part("folder"));
    return json_response(list_of(engine.folder_files(call.part("folder"))));
  });
  router.add_twice("GET", "/experiment/models",
                   [&engine](const Call&) { return folders_of_models(engine); });
  router.add_twice("GET", "/experiment/models/{folder}",
                   [&engine](const Call& call) { return files_of_models(call, engine); });
  router.add_twice("GET", "/experiment/models/preview/{folder}/{path_index}/{file...}",
                   [&engine](const Call& call) { return preview_of_model(call, engine); });
  router.add_twice("GET", "/view_metadata/{folder}",
                   [&engine](const Call& call) { return view_metadata(call, engine); });
  router.add_twice("GET", "/system_stats", [parts](const Call&) { return system_stats(parts); });
  router.add_twice("GET", "/features", [parts](const Call&) {
    return json_response(server_features(parts.options.server.limits));
  });
  // There is nothing of these: clients ask all the same.
  for (const char* path : {"/i18n", "/node_replacements", "/global_subgraphs"})
    router.add_twice("GET", path, [](const Call&) { return json_response(Json::object()); });
  router.add_twice("GET", "/global_subgraphs/{id}",
                   [](const Call&) { return json_response(Json()); });
  router.add("GET", "/internal/folder_paths",
             [&engine](const Call&) { return folder_paths(engine); });
  router.add("GET", "/internal/files/{folder}",
             [parts](const Call& call) { return newest_files(call, parts); });
}

}  // namespace heddle::engine
