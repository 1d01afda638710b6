// The API keys of a server, in a JSON file: of each its user, its role and its hash, never the key.
// Keys are made here, of 192 random bits, so that a plain SHA-256 is enough: nobody guesses one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/caller.h"

namespace heddle::engine {

struct ApiKey {
  std::string id;    // the part of the key that is no secret
  std::string user;  // a name as is_user_name() has it
  bool is_admin = false;
  std::string sha256;           // of the whole key
  std::int64_t created_ms = 0;  // of the system's clock
};

// 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot: it names a folder, beside the one of
// nobody and the list of all ("default" and "users.json").
bool is_user_name(std::string_view name);

struct MadeKey {
  std::string text;  // for its holder: nobody can find it out again
  ApiKey kept;
};
MadeKey make_key(std::string user, bool is_admin, std::int64_t now_ms);

// Throws Error with the file, and where in it, for what is no such file; not_found where there is
// none.
std::vector<ApiKey> read_keys(const std::filesystem::path& file);
// A new file is its owner's alone (0600). Throws Error.
void write_keys(const std::filesystem::path& file, const std::vector<ApiKey>& keys);

// The keys of a file, read again whenever it has changed: a key that is taken out of it opens
// nothing any more. What cannot be read later on is logged, and what was read before counts. Any
// thread.
class KeyRing {
 public:
  explicit KeyRing(std::filesystem::path file);  // throws as read_keys()
  KeyRing(const KeyRing&) = delete;

  // Whose key this is; nothing: nobody's.
  std::optional<Caller> find(std::string_view key);
  // Of the key of this id, as it is now.
  std::optional<Caller> holder(std::string_view id);

 private:
  struct Version {
    std::uint64_t inode = 0, bytes = 0;
    std::int64_t seconds = 0, nanoseconds = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  Version version_on_disk() const;
  std::string refresh();                            // what is to be logged; with mutex_
  const ApiKey* key_of(std::string_view id) const;  // with mutex_
  // Logs without the lock: whoever listens to the log may be asked for their key.
  std::optional<ApiKey> current(std::string_view id);

  const std::filesystem::path file_;
  std::mutex mutex_;
  Version version_;           // mutex_
  std::vector<ApiKey> keys_;  // mutex_
};

}  // namespace heddle::engine
