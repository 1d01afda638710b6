// What a front end keeps for its user: settings, workflows and other files; and who there is.
#include <algorithm>
#include <chrono>
#include <mutex>

#include "engine/base/folder.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"
#include "engine/serve/users.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 32;  // of folders

[[noreturn]] void refuse_with(unsigned status) { throw Refused{HttpResponse{status, {}, "", {}}}; }

Json any_body(const Call& call) {
  try {
    return parse_json(call.request.body, "body");
  } catch (const Error&) {
    throw Refused{text_response("400: the body is no JSON", 400)};
  }
}

double time_of(fs::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

Json info_of(const fs::path& file, const fs::path& root) {
  std::error_code ignored;
  const double time = time_of(fs::last_write_time(file, ignored));
  Json info = Json::object();
  info.set("path", file.lexically_relative(root).generic_string());
  info.set("size", fs::file_size(file, ignored));
  return std::move(info.set("modified", time).set("created", time));
}

Json split_path(const std::string& path) {
  Json parts = Json::array();
  parts.push(path);
  for (const fs::path& part : fs::path(path)) parts.push(part.string());
  return parts;
}

// Links are not followed: they may lead in circles, or out.
std::vector<fs::path> files_in(const fs::path& folder, bool recurse) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto add = [&](const FolderEntry& entry, int depth) {
    if (entry.is_file()) files.push_back(entry.path);
    return recurse && depth < kMostLevels;
  };
  walk(folder, Links::stay, add, error);
  std::ranges::sort(files);
  return files;
}

HttpResponse list_files(const Call& call, const UserFolder& user) {
  const std::string* dir = call.query.find("dir");
  if (dir == nullptr || dir->empty()) throw Refused{text_response("Directory not provided", 400)};
  const fs::path root = user.path_of(*dir);
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) refuse_with(404);
  Json all = Json::array();
  for (const fs::path& file : files_in(root, call.query.is_true("recurse"))) {
    const std::string path = file.lexically_relative(root).generic_string();
    if (call.query.is_true("full_info"))
      all.push(info_of(file, root));
    else if (call.query.is_true("split"))
      all.push(split_path(path));
    else
      all.push(path);
  }
  return json_response(all);
}

// Folders first, then files, each by name.
HttpResponse list_tree(const Call& call, const UserFolder& user) {
  const std::string path = call.query.get("path");
  const fs::path root = path.empty() ? user.folder() : user.path_of(path);
  std::error_code error;
  if (!fs::is_directory(root, error)) refuse_with(404);
  std::vector<std::pair<bool, fs::path>> found;  // whether it is a file
  const auto add = [&](const FolderEntry& entry, int depth) {
    const bool is_file = entry.is_file();
    if (is_file || entry.is_folder()) found.emplace_back(is_file, entry.path);
    return depth < kMostLevels;
  };
  walk(root, Links::stay, add, error);
  std::ranges::sort(found);
  Json all = Json::array();
  for (const auto& [is_file, each] : found) {
    Json entry = Json::object();
    entry.set("name", each.filename().string());
    entry.set("path", each.lexically_relative(user.folder()).generic_string());
    entry.set("type", is_file ? "file" : "directory");
    if (is_file) {
      const Json info = info_of(each, user.folder());
      entry.set("size", info.at("size")).set("modified", info.at("modified"));
    }
    all.push(std::move(entry));
  }
  return json_response(all);
}

Json saved_answer(const Call& call, const fs::path& file, const UserFolder& user) {
  if (call.query.is_true("full_info")) return info_of(file, user.folder());
  return file.lexically_relative(user.folder()).generic_string();
}

void require_file(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) refuse_with(404);
}

void require_free(const Call& call, const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) refuse_with(400);  // a pipe would wait
  if (!call.query.is_true("overwrite", true) && fs::exists(there))
    throw Refused{text_response("File already exists", 409)};
}

HttpResponse save_file(const Call& call, UserFolder& user) {
  const fs::path file = user.path_of(call.part("file"));
  const std::lock_guard lock(user.mutex());
  require_free(call, file);
  fs::create_directories(file.parent_path());
  write_file(file, call.request.body, Lasting::yes);
  return json_response(saved_answer(call, file, user));
}

HttpResponse move_file(const Call& call, UserFolder& user) {
  const fs::path from = user.path_of(call.part("file")), to = user.path_of(call.part("dest"));
  const std::lock_guard lock(user.mutex());
  require_file(from);
  require_free(call, to);
  fs::create_directories(to.parent_path());
  fs::rename(from, to);
  return json_response(saved_answer(call, to, user));
}

HttpResponse remove_file(const Call& call, UserFolder& user) {
  const fs::path file = user.path_of(call.part("file"));
  const std::lock_guard lock(user.mutex());
  require_file(file);
  fs::remove(file);
  return {204, {}, "", {}};
}

HttpResponse send_file(const Call& call, const UserFolder& user) {
  const fs::path file = user.path_of(call.part("file"));
  std::optional<HttpResponse> response = file_response(call.request, file);
  if (!response) refuse_with(404);
  // Somebody else's page is not ours to run.
  const std::string_view type = content_type(file);
  const bool is_page = type == "text/html" || type == "application/xhtml+xml";
  response->set("Content-Type", std::string(is_page ? "application/octet-stream" : type));
  return std::move(response->set("X-Content-Type-Options", "nosniff"));
}

void add_settings(Router& router, const std::shared_ptr<Users>& users) {
  router.add_twice("GET", "/settings", [users](const Call& call) {
    const auto user = users->folder_of(call.request);
    const std::lock_guard lock(user->mutex());
    return json_response(user->settings());
  });
  router.add_twice("GET", "/settings/{id}", [users](const Call& call) {
    const auto user = users->folder_of(call.request);
    const std::lock_guard lock(user->mutex());
    const Json settings = user->settings();
    const Json* value = settings.find(call.part("id"));
    return json_response(value == nullptr ? Json() : *value);
  });
  router.add_twice("POST", "/settings", [users](const Call& call) {
    const auto user = users->folder_of(call.request);
    const Json changes = any_body(call);
    if (!changes.is_object()) throw Refused{text_response("400: an object is expected", 400)};
    const std::lock_guard lock(user->mutex());
    Json settings = user->settings();
    for (const Json::Member& member : changes.members()) settings.set(member.key, member.value);
    user->write_settings(settings);
    return HttpResponse{};
  });
  router.add_twice("POST", "/settings/{id}", [users](const Call& call) {
    const auto user = users->folder_of(call.request);
    const Json value = any_body(call);
    const std::lock_guard lock(user->mutex());
    Json settings = user->settings();
    settings.set(call.part("id"), value);
    user->write_settings(settings);
    return HttpResponse{};
  });
}

void add_users(Router& router, const std::shared_ptr<Users>& users) {
  router.add_twice("GET", "/users",
                   [users](const Call& call) { return json_response(users->told(call.request)); });
  router.add_twice("POST", "/users", [users](const Call& call) {
    const Json body = any_body(call);
    const Json* name = body.find("username");
    return json_response(
        Json(users->add(name != nullptr && name->is_string() ? name->as_string() : "")));
  });
}

}  // namespace

void add_user_routes(Router& router, const ServiceParts& parts) {
  if (parts.options.user_dir.empty()) return;
  const auto users = std::make_shared<Users>(parts.options.user_dir, parts.options.multi_user);
  add_users(router, users);
  add_settings(router, users);
  const auto add = [&](std::string_view method, std::string_view pattern, auto answer) {
    router.add_twice(method, pattern, [users, answer](const Call& call) {
      return answer(call, *users->folder_of(call.request));
    });
  };
  add("GET", "/userdata", list_files);
  add("GET", "/v2/userdata", list_tree);
  add("GET", "/userdata/{file}", send_file);
  add("POST", "/userdata/{file}", save_file);
  add("DELETE", "/userdata/{file}", remove_file);
  add("POST", "/userdata/{file}/move/{dest}", move_file);
}

}  // namespace heddle::engine
