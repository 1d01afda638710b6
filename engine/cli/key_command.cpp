// key: the API keys of a server's users, in a file that the server reads.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#ifdef HEDDLE_WITH_SERVE
#include "engine/serve/key_file.h"
#endif

namespace heddle::cli {

using engine::cat;
using engine::Code;
using engine::Error;

#ifdef HEDDLE_WITH_SERVE
namespace {

using engine::ApiKey;
using engine::Json;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::invalid_argument, cat("heddle key: ", what));
}

// The first key makes the file.
std::vector<ApiKey> keys_in(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? engine::read_keys(file) : std::vector<ApiKey>();
}

std::int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::string day_of(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) != nullptr) std::strftime(text, sizeof text, "%F", &parts);
  return text;
}

const char* role_of(const ApiKey& key) { return key.is_admin ? "admin" : "user"; }

Json told(const ApiKey& key) {
  Json one = Json::object();
  one.set("id", key.id).set("user", key.user).set("role", role_of(key));
  return std::move(one.set("created_ms", key.created_ms));
}

int list_keys(const Settings& settings, Output& output) {
  const std::vector<ApiKey> keys = engine::read_keys(settings.serve.access.api_keys);
  Table table;
  table.row({"id", "user", "role", "created"});
  for (const ApiKey& key : keys)
    if (settings.json)
      output.write(cat(engine::write_json(told(key)), "\n"));
    else
      table.row({key.id, key.user, role_of(key), day_of(key.created_ms)});
  if (!settings.json) output.write(table.text());
  return kExitDone;
}

int add_key(const std::string& user, const Settings& settings, Output& output) {
  if (!engine::is_user_name(user))
    refuse(cat("add: ", engine::quote(engine::printable(user)),
               " is no name of a user: 1 to 64 of letters, digits, '.', '_' and '-', and no '.' at "
               "the beginning; neither 'default' nor 'users.json'."));
  std::vector<ApiKey> keys = keys_in(settings.serve.access.api_keys);
  const engine::MadeKey made = engine::make_key(user, settings.serve.access.adds_admin, now_ms());
  keys.push_back(made.kept);
  engine::write_keys(settings.serve.access.api_keys, keys);
  Json json = told(made.kept);
  output.write(settings.json ? cat(engine::write_json(json.set("key", made.text)), "\n")
                             : cat(made.text, "\n"));
  if (!settings.json && !settings.quiet)
    to_stderr(cat("heddle: the key of ", user, " (", role_of(made.kept), ")",
                  ". It is not kept: give it to them now."));
  return kExitDone;
}

int remove_key(const std::string& id, const Settings& settings) {
  std::vector<ApiKey> keys = engine::read_keys(settings.serve.access.api_keys);
  if (std::erase_if(keys, [&](const ApiKey& key) { return key.id == id; }) == 0)
    refuse(cat("remove: there is no key ", engine::quote(engine::printable(id)), " in ",
               settings.serve.access.api_keys.string(), ". `heddle key list` tells their ids."));
  engine::write_keys(settings.serve.access.api_keys, keys);
  return kExitDone;
}

}  // namespace

int change_keys(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  const std::vector<std::string>& words = request.operands;
  if (settings.serve.access.api_keys.empty())
    refuse("name the file of the keys: --api-keys FILE, as serve takes it.");
  if (words == std::vector<std::string>{"list"}) return list_keys(settings, output);
  if (words.size() == 2 && words[0] == "add") return add_key(words[1], settings, output);
  if (words.size() == 2 && words[0] == "remove") return remove_key(words[1], settings);
  refuse(cat("expected list, add USER or remove ID, got ",
             engine::quote(engine::printable(engine::join(words, " "))), "."));
}
#else
int change_keys(const Request&, Output&) {
  throw Error(Code::unsupported,
              "this heddle was built without SQLite, so it has no server and no keys. Install "
              "libsqlite3-dev and build again.");
}
#endif

}  // namespace heddle::cli
