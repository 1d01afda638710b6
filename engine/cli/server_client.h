// The API under /v1 of a server, for the commands that ask one. One thread at a time.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/cli/settings.h"

namespace heddle::cli {

// The server cannot be reached, or has failed: no fault of whoever asks.
class ServerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ServerClient {
 public:
  explicit ServerClient(ServerSettings settings) : settings_(std::move(settings)) {}

  // The JSON of the answer; null where it has none. Throws ServerFailure, and
  // Error(invalid_argument) with the server's message for what it refuses.
  engine::Json get(const std::string& path) const { return ask("GET", path, ""); }
  engine::Json post(const std::string& path, const engine::Json& body) const;
  engine::Json post_form(const std::string& path, const std::string& content_type,
                         const std::string& body) const {
    return ask("POST", path, body, content_type);
  }
  engine::Json post(const std::string& path) const { return ask("POST", path, ""); }
  void remove(const std::string& path) const { ask("DELETE", path, ""); }

  // The events of a job after the one that `last` names ("": from its beginning), until they end;
  // `last` goes on with them.
  void follow(
      const std::string& job, std::string& last,
      const std::function<void(std::string_view type, const engine::Json& data)>& event) const;

  // The same until the job has ended, over breaks: a server may be restarted meanwhile, and still
  // has the job. Gives the job as it is then. Throws ServerFailure after a minute without a server.
  engine::Json wait_for(
      const std::string& job,
      const std::function<void(std::string_view type, const engine::Json& data)>& event) const;

  // The bytes of an answer, as they come.
  void download(const std::string& path, const std::function<void(std::string_view)>& bytes) const;

  std::string url(const std::string& path) const { return settings_.url + path; }

 private:
  engine::Json ask(const std::string& method, const std::string& path, const std::string& body,
                   const std::string& content_type = "application/json") const;

  const ServerSettings settings_;
};

// A part of a path, encoded.
std::string url_segment(std::string_view text);
// "/v1/jobs/ID/WHAT"; the id is encoded.
std::string job_path(std::string_view id, std::string_view what = {});

}  // namespace heddle::cli
