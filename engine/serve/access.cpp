#include "engine/serve/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return low;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string key_of(const HttpRequest& request) {
  if (const std::string* bearer = request.header("Authorization");
      bearer != nullptr && lower(bearer->substr(0, 7)) == "bearer ")
    return bearer->substr(7);
  const std::string* key = request.header("X-API-Key");
  return key == nullptr ? "" : *key;
}

HttpResponse refusal(unsigned status, std::string_view what) {
  Json error = Json::object();
  return json_response(error.set("error", what), status);
}

constexpr std::string_view kCookie = "heddle_session";
constexpr std::uint64_t kMostOfAKey = 4096;  // bytes of a body that comes without one

// The page that asks for the key, and what it asks with.
bool is_for_signing_in(const HttpRequest& request, const AccessRules& rules) {
  const std::string_view path = request.path;
  return path == "/heddle" || path.starts_with("/heddle/") || path == "/v1/session" ||
         (path == "/" && !rules.has_front_end);
}

// What whoever is not known yet may send is little.
bool has_small_body(const HttpRequest& request) {
  if (request.header("Transfer-Encoding") != nullptr) return false;
  const std::string* length = request.header("Content-Length");
  if (length == nullptr) return true;
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(length->data(), length->data() + length->size(), bytes);
  return read.ec == std::errc() && bytes <= kMostOfAKey;
}

// A person who opens the front end is led to where the key is asked for, and back.
bool is_visit(const HttpRequest& request) {
  const std::string* accepts = request.header("Accept");
  return request.method == "GET" && request.path == "/" && accepts != nullptr &&
         accepts->find("text/html") != std::string::npos;
}

std::optional<HttpResponse> check_key(HttpRequest& request, const AccessRules& rules) {
  if (const auto caller = rules.authenticator->session(session_of(request))) {
    request.caller = *caller;
    return {};
  }
  if (is_for_signing_in(request, rules)) {
    if (has_small_body(request)) return {};
    return refusal(413, cat("without a session at most ", kMostOfAKey, " bytes may be sent"));
  }
  const std::string key = key_of(request);
  if (key.empty() && is_visit(request)) {
    HttpResponse response{303, {}, "", {}};
    return std::move(response.set("Location", "heddle?then=front-end"));
  }
  const Authenticator::Checked checked =
      key.empty() ? Authenticator::Checked{} : rules.authenticator->check_key(key, request.peer);
  if (checked.verdict != Authenticator::Verdict::right) return key_refusal(checked);
  request.caller = checked.caller;
  return {};
}

bool is_of_this_site(const std::string& origin, const HostAndPort& host) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string::npos) return false;  // "null"
  const std::optional<HostAndPort> from = parse_host(std::string_view(origin).substr(scheme + 3));
  if (!from || from->host != host.host) return false;
  return from->port.empty() || host.port.empty() || from->port == host.port;
}

bool is_allowed(const std::string& origin, const AccessRules& rules) {
  return !rules.cors_origin.empty() && (rules.cors_origin == "*" || origin == rules.cors_origin);
}

// The page that asks, where the browser says it: pictures in a page are asked for without "Origin".
std::string origin_of(const HttpRequest& request) {
  if (const std::string* origin = request.header("Origin")) return *origin;
  const std::string* page = request.header("Referer");
  if (page == nullptr) return "";
  const std::size_t scheme = page->find("://");
  return scheme == page->npos ? "" : page->substr(0, page->find('/', scheme + 3));
}

std::optional<HttpResponse> check_site(const HttpRequest& request, const AccessRules& rules,
                                       const HostAndPort& host) {
  if (is_allowed(origin_of(request), rules)) return {};
  const auto refused = [] { return refusal(403, "pages of other sites may not ask this server"); };
  const std::string* origin = request.header("Origin");
  if (origin != nullptr && !is_of_this_site(*origin, host)) return refused();
  const std::string* site = request.header("Sec-Fetch-Site");
  const std::string* mode = request.header("Sec-Fetch-Mode");
  if (site != nullptr && *site == "cross-site" && (mode == nullptr || *mode != "navigate"))
    return refused();
  return {};
}

// A browser asks this before a page of another site may ask, and brings no key.
bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && request.header("Access-Control-Request-Method") != nullptr;
}

}  // namespace

std::optional<HostAndPort> parse_host(std::string_view text) {
  HostAndPort parsed;
  std::size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos) return {};
    parsed.host = lower(text.substr(1, end - 1));
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    parsed.host = lower(text.substr(0, end));
  }
  if (parsed.host.empty()) return {};
  if (end < text.size()) {
    if (text[end] != ':' || !is_port(text.substr(end + 1))) return {};
    parsed.port = text.substr(end + 1);
  }
  const std::string_view bad = "/?#@\\ \t";
  if (parsed.host.find_first_of(bad) != std::string::npos) return {};
  return parsed;
}

bool is_address(std::string_view host) {
  const std::string text(host);
  unsigned char ignored[16];
  return ::inet_pton(AF_INET, text.c_str(), ignored) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), ignored) == 1;
}

bool is_loopback_name(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(host));
}

std::string session_of(const HttpRequest& request) {
  const std::string* cookies = request.header("Cookie");
  if (cookies == nullptr) return "";
  const std::string name = cat(kCookie, "=");
  for (std::size_t at = 0; at < cookies->size();) {
    const std::size_t end = std::min(cookies->find(';', at), cookies->size());
    std::string_view cookie = std::string_view(*cookies).substr(at, end - at);
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (cookie.starts_with(name)) return std::string(cookie.substr(name.size()));
    at = end + 1;
  }
  return "";
}

std::string session_cookie(const HttpRequest& request, std::string_view token) {
  return cat(
      kCookie, "=", token, "; Path=", request.prefix, "/; HttpOnly; SameSite=Strict; Max-Age=",
      token.empty() ? 0 : Authenticator::kSessionMs / 1000, request.is_encrypted ? "; Secure" : "");
}

HttpResponse key_refusal(const Authenticator::Checked& checked) {
  if (checked.verdict == Authenticator::Verdict::wait) {
    HttpResponse response =
        refusal(429, cat("too many wrong keys came from this address. Try again in ",
                         checked.wait_seconds, " s."));
    return std::move(response.set("Retry-After", cat(checked.wait_seconds)));
  }
  HttpResponse response = refusal(
      401, "this server wants its API key: Authorization: Bearer KEY, or sign in at /heddle");
  return std::move(response.set("WWW-Authenticate", "Bearer"));
}

std::optional<HttpResponse> check_access(HttpRequest& request, const AccessRules& rules) {
  const std::string* given = request.header("Host");
  const std::optional<HostAndPort> host = given == nullptr ? std::nullopt : parse_host(*given);
  if (!host) return refusal(400, "the request has no valid Host header");
  // A name that somebody else lets lead to this address would make their page one of ours.
  const bool is_ours = is_loopback_name(host->host) ||
                       (!rules.is_loopback_only && is_address(host->host)) ||
                       rules.authenticator != nullptr;
  if (!is_ours)
    return refusal(403, cat("the server is not asked under the name ", quote(host->host),
                            ". Use its address, or localhost."));
  if (std::optional<HttpResponse> refused = check_site(request, rules, *host)) return refused;
  if (is_preflight(request) && is_allowed(origin_of(request), rules)) return {};
  if (rules.authenticator != nullptr) return check_key(request, rules);
  request.caller = operator_caller();
  return {};
}

void add_cors_headers(const AccessRules& rules, HttpResponse& response) {
  if (rules.cors_origin.empty()) return;
  response.set("Access-Control-Allow-Origin", rules.cors_origin);
  response.set("Access-Control-Allow-Methods", "POST, GET, DELETE, PUT, OPTIONS, PATCH");
  response.set("Access-Control-Allow-Headers", "Content-Type, Authorization, comfy-user");
  // Browsers take no answer that allows them to all sites.
  if (rules.cors_origin != "*") response.set("Access-Control-Allow-Credentials", "true");
}

}  // namespace heddle::engine
