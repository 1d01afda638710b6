#include "engine/serve/file_owners.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/serve/served_files.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kOwnersFile{"a file of owners", std::uint64_t{1} << 30};

std::string line_of(const OwnedFile& file, const std::string& user, std::int64_t version) {
  Json line = Json::array();
  line.push(user).push(file.folder).push(file.name);
  return cat(write_json(line.push(version)), "\n");
}

// In the form in which it is compared: a text of a workflow may write it in others.
std::string plain_name(std::string_view name) {
  return fs::path(name).lexically_normal().generic_string();
}

std::string text_in(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

// The first text that is wanted, in whatever is nested.
template <class F>
std::string find_text(const Json& value, const F& is_wanted) {
  if (value.is_string()) return is_wanted(value.as_string()) ? value.as_string() : "";
  std::string found;
  if (value.is_array())
    for (const Json& one : value.as_array())
      if (found = find_text(one, is_wanted); !found.empty()) return found;
  if (value.is_object())
    for (const Json::Member& member : value.members())
      if (found = find_text(member.value, is_wanted); !found.empty()) return found;
  return "";
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

Json with_hidden(const Json& value, const std::vector<std::string>& hidden) {
  if (value.is_string()) {
    std::string text = value.as_string();
    for (const std::string& one : hidden) replace_all(text, one, "'...'");
    return Json(text);
  }
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& one : value.as_array()) list.push(with_hidden(one, hidden));
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const Json::Member& member : value.members())
    object.set(member.key, with_hidden(member.value, hidden));
  return object;
}

}  // namespace

std::string linked_file(const Json& prompt, const FolderOf& folder_of) {
  if (!prompt.is_object()) return "";
  for (const Json::Member& node : prompt.members()) {
    const Json* const inputs = node.value.is_object() ? node.value.find("inputs") : nullptr;
    if (inputs == nullptr || !inputs->is_object()) continue;
    for (const Json::Member& input : inputs->members())
      if (input.value.is_array() && input.value.size() == 2 &&
          input.value.at(std::size_t{0}).is_string() && input.value.at(1).is_number() &&
          folder_of(text_in(node.value, "class_type"), input.key) == "input")
        return cat(node.key, ".", input.key);
  }
  return "";
}

FileOwners::FileOwners(fs::path kept, Version version)
    : kept_(std::move(kept)), version_(std::move(version)) {
  std::error_code ignored;
  if (!fs::exists(kept_, ignored)) return;
  const std::string text = read_file(kept_, kOwnersFile);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    try {
      const Json line = parse_json(text.substr(at, end - at), kept_.string());
      const OwnedFile file{line.at(1).as_string(), line.at(2).as_string()};
      const std::int64_t version_then = line.at(3).as_int64();
      if (version_(file) != version_then) {
        at = end + 1;
        continue;
      }
      owners_[file].version = version_then;
      owners_[file].users.insert(line.at(std::size_t{0}).as_string());
    } catch (const Error&) {  // the last line of a server that was killed
    }
    at = end + 1;
  }
  std::string lines;
  for (const auto& [file, owners] : owners_)
    for (const std::string& user : owners.users) lines += line_of(file, user, owners.version);
  if (lines != text) write_file(kept_, lines, Lasting::yes);
}

void FileOwners::add(const OwnedFile& file, const std::string& user) {
  if (kept_.empty() || user.empty() || file.name.empty()) return;
  const OwnedFile plain{file.folder, plain_name(file.name)};
  const std::int64_t version_now = version_(plain);
  if (version_now == 0) return;  // it is gone again
  const std::lock_guard lock(mutex_);
  Owners& owners = owners_[plain];
  if (std::exchange(owners.version, version_now) != version_now) owners.users.clear();
  if (!owners.users.insert(user).second) return;
  const std::string line = line_of(plain, user, version_now);
  const FileDescriptor out(::open(kept_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (out.number() < 0 || ::write(out.number(), line.data(), line.size()) != ssize_t(line.size()))
    log(Level::error, cat(system_error(kept_.string(), errno).full(),
                          ". Whose files are new is forgotten when the server ends."));
}

void FileOwners::add_shown(std::string_view ui, const std::string& user) {
  if (kept_.empty() || user.empty()) return;
  Json shown;
  try {
    shown = parse_json(ui, "ui");
  } catch (const Error&) {
    return;  // of a plugin that writes no JSON
  }
  if (!shown.is_object()) return;
  for (const Json::Member& kind : shown.members()) {
    if (!kind.value.is_array()) continue;
    for (const Json& item : kind.value.as_array())
      if (item.is_object())
        add({text_in(item, "type"),
             (fs::path(text_in(item, "subfolder")) / text_in(item, "filename")).generic_string()},
            user);
  }
}

const std::set<std::string>* FileOwners::owners_of(const OwnedFile& file) const {
  const auto found = owners_.find({file.folder, plain_name(file.name)});
  if (found == owners_.end() || found->second.version != version_(found->first)) return nullptr;
  return &found->second.users;
}

bool FileOwners::may_see(const Caller& caller, const OwnedFile& file) const {
  if (caller.is_admin) return true;
  const std::lock_guard lock(mutex_);
  const std::set<std::string>* const owners = owners_of(file);
  return owners == nullptr ? file.folder == "input" : owners->contains(caller.user);
}

bool FileOwners::may_change(const Caller& caller, const OwnedFile& file) const {
  if (caller.is_admin) return true;
  const std::lock_guard lock(mutex_);
  const std::set<std::string>* const owners = owners_of(file);
  return owners != nullptr && *owners == std::set<std::string>{caller.user};
}

bool FileOwners::is_foreign(const Caller& caller, std::string_view text) const {
  const TaggedName named = tagged_name(text);
  const OwnedFile file{named.folder.empty() ? "input" : named.folder, named.name};
  return !may_see(caller, file) && version_({file.folder, plain_name(file.name)}) != 0;
}

bool FileOwners::is_foreign_folder(const Caller& caller, std::string_view text) const {
  if (text.empty()) return false;
  std::string below = plain_name(text);
  if (!below.ends_with('/')) below += '/';
  const std::lock_guard lock(mutex_);
  for (auto at = owners_.lower_bound({"input", below}); at != owners_.end(); ++at) {
    const auto& [file, owners] = *at;
    if (file.folder != "input" || !file.name.starts_with(below)) return false;
    if (!owners.users.contains(caller.user) && owners.version == version_(file)) return true;
  }
  return false;
}

std::string FileOwners::foreign_name(const Caller& caller, const Json& prompt) const {
  if (caller.is_admin) return "";
  return find_text(prompt, [&](std::string_view text) {
    return is_foreign(caller, text) || is_foreign_folder(caller, text);
  });
}

// Lists to choose from stand where a type of an input does: all else is left as it is.
bool FileOwners::remove_foreign(const Caller& caller, Json& value) const {
  bool is_changed = false;
  if (value.is_array()) {
    Json kept = Json::array();
    for (const Json& one : value.as_array()) {
      if (one.is_string() && is_foreign(caller, one.as_string())) {
        is_changed = true;
        continue;
      }
      Json copy = one;
      is_changed = remove_foreign(caller, copy) || is_changed;
      kept.push(std::move(copy));
    }
    if (is_changed) value = std::move(kept);
  } else if (value.is_object()) {
    Json kept = Json::object();
    for (const Json::Member& member : value.members()) {
      Json copy = member.value;
      is_changed = remove_foreign(caller, copy) || is_changed;
      kept.set(member.key, std::move(copy));
    }
    if (is_changed) value = std::move(kept);
  }
  return is_changed;
}

std::string FileOwners::without_foreign(const Caller& caller, std::string object_info) const {
  if (caller.is_admin) return object_info;
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::none_of(owners_, [&](const auto& one) {
          return one.first.folder == "input" && !one.second.users.contains(caller.user);
        }))
      return object_info;
  }
  Json info = parse_json(object_info, "object_info");
  return remove_foreign(caller, info) ? write_json(info) : object_info;
}

Json FileOwners::without_names(const Caller& caller, Json told) const {
  std::vector<std::string> hidden;  // as messages quote them
  if (!caller.is_admin) {
    const std::lock_guard lock(mutex_);
    for (const auto& [file, owners] : owners_)
      if (file.folder == "input" && !owners.users.contains(caller.user))
        hidden.push_back(quote(file.name));
  }
  if (hidden.empty()) return told;
  remove_foreign(caller, told);
  return with_hidden(told, hidden);
}

}  // namespace heddle::engine
