#include "engine/serve/users.h"

#include <algorithm>
#include <cctype>

#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/queue/job_queue.h"
#include "engine/serve/router.h"
#include "engine/serve/served_files.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kSettingsFile{"a file of settings", 16 << 20};
constexpr const char* kSettings = "comfy.settings.json";
constexpr const char* kNames = "users.json";
constexpr const char* kOnlyUser = "default";
constexpr std::size_t kLongestName = 100;

Json object_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Json::object();
  Json read = parse_json(read_file(file, kSettingsFile), file.string());
  return read.is_object() ? std::move(read) : Json::object();
}

[[noreturn]] void refuse_user(std::string_view what, unsigned status) {
  Json error = Json::object();
  throw Refused{json_response(error.set("error", what), status)};
}

std::string without_blanks(std::string_view name) {
  const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!name.empty() && is_blank(name.front())) name.remove_prefix(1);
  while (!name.empty() && is_blank(name.back())) name.remove_suffix(1);
  return std::string(name);
}

// A name of a folder that says whose it is, and is nobody else's.
std::string id_of_user(const std::string& name) {
  std::string id;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_')
      id += char(c);
    else if (!id.ends_with('-'))
      id += '-';
  }
  return cat(id, "_", make_job_id());
}

}  // namespace

Json UserFolder::settings() const { return object_in(folder_ / kSettings); }

void UserFolder::write_settings(const Json& settings) const {
  fs::create_directories(folder_);
  write_file(folder_ / kSettings, write_json(settings, 4), Lasting::yes);
}

fs::path UserFolder::path_of(const std::string& name) const {
  const std::optional<fs::path> path = is_safe_name(name) ? inside(folder_, name) : std::nullopt;
  if (!path) throw Refused{HttpResponse{403, {}, "", {}}};
  return *path;
}

Json Users::names() const { return object_in(folder_ / kNames); }

std::shared_ptr<UserFolder> Users::folder_of(const HttpRequest& request) {
  std::string id = kOnlyUser;
  const std::lock_guard lock(mutex_);
  if (!request.caller.user.empty()) {
    id = request.caller.user;  // as is_user_name() has it: a name of a folder
  } else if (several_) {
    const std::string* given = request.header("comfy-user");
    id = given == nullptr ? kOnlyUser : *given;
    // The file may have been written by somebody else: what is no name of a folder is nobody's.
    const bool is_name = !id.empty() && id.find_first_of("/\\") == id.npos && is_safe_name(id);
    if (!is_name || names().find(id) == nullptr)
      refuse_user(cat("Unknown user: ", printable(clip(id, kLongestName))), 401);
  }
  std::shared_ptr<UserFolder>& folder = folders_[id];
  if (folder == nullptr) folder = std::make_shared<UserFolder>(folder_ / id);
  return folder;
}

Json Users::told(const HttpRequest& request) {
  Json answer = Json::object();
  answer.set("storage", "server");
  const std::lock_guard lock(mutex_);
  const std::string& user = request.caller.user;
  if (several_ && user.empty()) return std::move(answer.set("users", names()));
  std::error_code ignored;
  const fs::path folder = folder_ / (user.empty() ? kOnlyUser : user);
  return std::move(answer.set("migrated", fs::is_directory(folder, ignored)));
}

std::string Users::add(const std::string& given) {
  const std::string name = without_blanks(given);
  if (name.empty() || name.size() > kLongestName)
    refuse_user(cat("A username has 1 to ", kLongestName, " characters."), 400);
  const std::lock_guard lock(mutex_);
  Json all = names();
  for (const Json::Member& user : all.members())
    if (user.value.is_string() && user.value.as_string() == name)
      refuse_user("Duplicate username.", 400);
  const std::string id = id_of_user(name);
  fs::create_directories(folder_);
  write_file(folder_ / kNames, write_json(all.set(id, name), 4), Lasting::yes);
  return id;
}

}  // namespace heddle::engine
