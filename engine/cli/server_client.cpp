#include "engine/cli/server_client.h"

#include <chrono>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/cli/http.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

// Of an answer that is JSON of the API's; else what stands in it.
std::string message_of(const std::string& body) {
  try {
    return engine::parse_json(body, "answer").at("error").at("message").as_string();
  } catch (const Error&) {
    return body.empty() ? "no reason is given" : engine::clip(body, 300);
  }
}

void require_success(const std::string& url, const HttpReply& reply) {
  if (reply.status >= 200 && reply.status < 300) return;
  const std::string message = cat(url, ": ", message_of(reply.body));
  if (reply.status >= 500) throw ServerFailure(message);
  if (reply.status == 401)
    throw Error(Code::invalid_argument, cat(message, ". Set its key in HEDDLE_API_KEY."));
  throw Error(Code::invalid_argument, message);
}

HttpReply call_server(const HttpCall& call) {
  try {
    return http_call(call);
  } catch (const Error& error) {
    if (error.code() != Code::io) throw;
    throw ServerFailure(
        cat(error.full(), ". Is `heddle serve` running there? --server names another one."));
  }
}

// Takes the lines of a stream of events.
class EventLines {
 public:
  EventLines(std::string& last,
             const std::function<void(std::string_view type, const Json& data)>& event)
      : last_(last), event_(event) {}

  void take(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n') {
        line_ += c;
        continue;
      }
      end_line();
      line_.clear();
    }
  }

 private:
  void end_line() {
    if (line_.starts_with("id: ")) last_ = line_.substr(4);
    if (line_.starts_with("event: ")) type_ = line_.substr(7);
    if (line_.starts_with("data: ")) data_ = engine::parse_json(line_.substr(6), "event");
    if (!line_.empty() || type_.empty()) return;
    event_(type_, data_);
    type_.clear();
  }

  std::string& last_;
  const std::function<void(std::string_view type, const Json& data)>& event_;
  std::string line_, type_;
  Json data_;
};

}  // namespace

Json ServerClient::ask(const std::string& method, const std::string& path, const std::string& body,
                       const std::string& content_type) const {
  const HttpReply reply =
      call_server({method, url(path), body, settings_.api_key, {}, content_type});
  require_success(url(path), reply);
  if (reply.body.empty()) return {};
  try {
    return engine::parse_json(reply.body, url(path));
  } catch (const Error& error) {
    throw ServerFailure(cat("this is no server of heddle's: ", error.full()));
  }
}

Json ServerClient::post(const std::string& path, const Json& body) const {
  return ask("POST", path, engine::write_json(body));
}

void ServerClient::follow(
    const std::string& job, std::string& last,
    const std::function<void(std::string_view type, const Json& data)>& event) const {
  EventLines lines(last, event);
  const std::string path = cat(job_path(job, "events"), "?after=", last.empty() ? "0" : last);
  const HttpReply reply =
      call_server({"GET", url(path), "", settings_.api_key, [&](std::string_view bytes) {
                     lines.take(bytes);
                     return true;
                   }});
  require_success(url(path), reply);
}

Json ServerClient::wait_for(
    const std::string& job,
    const std::function<void(std::string_view type, const Json& data)>& event) const {
  constexpr int kMostFailures = 60;
  constexpr std::chrono::seconds kBetweenTries{1};
  std::string last;
  for (int failures = 0;;) {
    try {
      follow(job, last, event);
      Json told = get(job_path(job));
      const std::string& state = told.at("state").as_string();
      if (state == "done" || state == "failed" || state == "cancelled") return told;
      failures = 0;
    } catch (const ServerFailure&) {
      if (++failures > kMostFailures) throw;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void ServerClient::download(const std::string& path,
                            const std::function<void(std::string_view)>& bytes) const {
  const HttpReply reply =
      call_server({"GET", url(path), "", settings_.api_key, [&](std::string_view some) {
                     bytes(some);
                     return true;
                   }});
  require_success(url(path), reply);
}

std::string url_segment(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-')
      encoded += c;
    else
      encoded += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return encoded;
}

std::string job_path(std::string_view id, std::string_view what) {
  const std::string path = cat("/v1/jobs/", url_segment(id));
  return what.empty() ? path : cat(path, "/", what);
}

}  // namespace heddle::cli
