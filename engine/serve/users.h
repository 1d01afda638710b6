// Who uses a server, and what each keeps there: one user, "default", or with --multi-user as many
// as are added. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/base/json.h"
#include "engine/serve/http_message.h"

namespace heddle::engine {

// The folder of a user, and whoever changes something in it one after another.
class UserFolder {
 public:
  explicit UserFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::mutex& mutex() { return mutex_; }

  Json settings() const;  // an object
  void write_settings(const Json& settings) const;
  // Of a name in it. Throws Refused with 403 for one that lies elsewhere.
  std::filesystem::path path_of(const std::string& name) const;

 private:
  const std::filesystem::path folder_;
  std::mutex mutex_;
};

class Users {
 public:
  // `folder`: each has a folder in it; the names of several stand in its users.json, as ComfyUI
  // keeps them.
  Users(std::filesystem::path folder, bool several)
      : folder_(std::move(folder)), several_(several) {}

  // Of whom the request's key names; else of whom its header "comfy-user" does. Throws Refused with
  // 401 for nobody who is known.
  std::shared_ptr<UserFolder> folder_of(const HttpRequest& request);
  // What "GET /users" answers. Whom a key names has nobody to choose.
  Json told(const HttpRequest& request);
  // The new one's id. Throws Refused with 400 for no name, and for one that is taken.
  std::string add(const std::string& name);

 private:
  Json names() const;  // by id; with mutex_

  const std::filesystem::path folder_;
  const bool several_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<UserFolder>> folders_;  // mutex_; by id
};

}  // namespace heddle::engine
