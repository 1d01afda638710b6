#include "engine/serve/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/serve/secret.h"

namespace heddle::engine {
namespace {

constexpr FileKind kKeyFile{"a file of API keys", 16 << 20};
constexpr std::string_view kBegin = "hdl_";
constexpr std::size_t kIdCharacters = 12, kSecretCharacters = 48;

std::string id_in(std::string_view key) {
  const bool is_one = key.size() == kBegin.size() + kIdCharacters + 1 + kSecretCharacters &&
                      key.starts_with(kBegin);
  return is_one ? std::string(key.substr(kBegin.size(), kIdCharacters)) : "";
}

Json told(const ApiKey& key) {
  Json one = Json::object();
  one.set("id", key.id).set("user", key.user).set("role", key.is_admin ? "admin" : "user");
  return std::move(one.set("sha256", key.sha256).set("created_ms", key.created_ms));
}

ApiKey read_key(const Json& json) {
  ApiKey key;
  key.id = json.at("id").as_string();
  key.user = json.at("user").as_string();
  const std::string role = json.at("role").as_string();
  key.sha256 = json.at("sha256").as_string();
  key.created_ms = json.at("created_ms").as_int64();
  key.is_admin = role == "admin";
  if (role != "admin" && role != "user")
    throw Error(Code::invalid_argument,
                cat("key ", quote(key.id), ": the role is ", quote(role), ", not user or admin"));
  if (!is_user_name(key.user))
    throw Error(Code::invalid_argument,
                cat("key ", quote(key.id), ": ", quote(key.user), " is no name of a user"));
  return key;
}

}  // namespace

bool is_user_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '.' && name != "default" &&
         name != "users.json" && std::ranges::all_of(name, [](unsigned char c) {
           return c < 128 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
         });
}

MadeKey make_key(std::string user, bool is_admin, std::int64_t now_ms) {
  MadeKey made;
  made.kept.id = random_hex(kIdCharacters);
  made.text = cat(kBegin, made.kept.id, "_", random_hex(kSecretCharacters));
  made.kept.user = std::move(user);
  made.kept.is_admin = is_admin;
  made.kept.sha256 = sha256_hex(made.text);
  made.kept.created_ms = now_ms;
  return made;
}

std::vector<ApiKey> read_keys(const std::filesystem::path& file) {
  const Json json = parse_json(read_file(file, kKeyFile), file.string());
  std::vector<ApiKey> keys;
  try {
    for (const Json& key : json.at("keys").as_array()) keys.push_back(read_key(key));
  } catch (const Error& error) {
    throw Error(Code::invalid_argument, cat(file.string(), " is no file of API keys: ",
                                            error.full(), ". `heddle key` writes such files."));
  }
  return keys;
}

void write_keys(const std::filesystem::path& file, const std::vector<ApiKey>& keys) {
  Json list = Json::array(), whole = Json::object();
  for (const ApiKey& key : keys) list.push(told(key));
  // One that is there keeps its permissions.
  const FileDescriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (made.number() < 0) throw system_error(file.string(), errno);
  write_file(file, write_json(whole.set("keys", std::move(list)), 2), Lasting::yes);
}

KeyRing::KeyRing(std::filesystem::path file)
    : file_(std::move(file)), version_(version_on_disk()), keys_(read_keys(file_)) {
  struct stat info {};
  if (::stat(file_.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0)
    throw Error(Code::invalid_argument,
                cat(file_.string(),
                    ": everybody may write keys of their own into it. Take that "
                    "away: chmod 600"));
  if (!has_sha256()) sha256_hex("");  // says why
}

KeyRing::Version KeyRing::version_on_disk() const {
  struct stat info {};
  if (::stat(file_.c_str(), &info) != 0) return {};
  return {std::uint64_t(info.st_ino), std::uint64_t(info.st_size), info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec};
}

std::string KeyRing::refresh() {
  const Version now = version_on_disk();
  if (now == version_) return "";
  version_ = now;
  try {
    keys_ = read_keys(file_);
  } catch (const Error& error) {
    return cat("--api-keys: ", error.full(), ". The keys of before still count.");
  }
  return "";
}

std::optional<ApiKey> KeyRing::current(std::string_view id) {
  std::string warning;
  std::optional<ApiKey> key;
  {
    const std::lock_guard lock(mutex_);
    warning = refresh();
    if (const ApiKey* const kept = key_of(id)) key = *kept;
  }
  if (!warning.empty()) log(Level::warning, warning);
  return key;
}

const ApiKey* KeyRing::key_of(std::string_view id) const {
  const auto found = std::ranges::find(keys_, id, &ApiKey::id);
  return found == keys_.end() ? nullptr : &*found;
}

std::optional<Caller> KeyRing::find(std::string_view key) {
  const std::string id = id_in(key);
  if (id.empty()) return {};
  const std::string hash = sha256_hex(key);
  const std::optional<ApiKey> kept = current(id);
  if (!kept || !is_equal_secret(hash, kept->sha256)) return {};
  return Caller{kept->user, kept->is_admin, kept->id};
}

std::optional<Caller> KeyRing::holder(std::string_view id) {
  const std::optional<ApiKey> kept = current(id);
  if (!kept) return {};
  return Caller{kept->user, kept->is_admin, kept->id};
}

}  // namespace heddle::engine
