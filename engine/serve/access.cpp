#include "engine/serve/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

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

// How long it takes says nothing of where the difference is.
bool is_equal_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned(a[i]) ^ unsigned(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
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

bool is_of_this_site(const std::string& origin, const HostAndPort& host) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string::npos) return false;  // "null"
  const std::optional<HostAndPort> from = parse_host(std::string_view(origin).substr(scheme + 3));
  if (!from || from->host != host.host) return false;
  return from->port.empty() || host.port.empty() || from->port == host.port;
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

std::optional<HttpResponse> check_access(const HttpRequest& request, const AccessRules& rules) {
  const std::string* given = request.header("Host");
  const std::optional<HostAndPort> host = given == nullptr ? std::nullopt : parse_host(*given);
  if (!host) return refusal(400, "the request has no valid Host header");
  // A name that somebody else lets lead to this address would make their page one of ours.
  const bool is_ours = is_loopback_name(host->host) ||
                       (!rules.is_loopback_only && is_address(host->host)) ||
                       !rules.api_key.empty();
  if (!is_ours)
    return refusal(403, cat("the server is not asked under the name ", quote(host->host),
                            ". Use its address, or localhost."));
  if (const std::string* origin = request.header("Origin");
      origin != nullptr && !is_of_this_site(*origin, *host))
    return refusal(403, "pages of other sites may not ask this server");
  const std::string* site = request.header("Sec-Fetch-Site");
  const std::string* mode = request.header("Sec-Fetch-Mode");
  if (site != nullptr && *site == "cross-site" && (mode == nullptr || *mode != "navigate"))
    return refusal(403, "pages of other sites may not ask this server");
  if (!rules.api_key.empty() && !is_equal_secret(key_of(request), rules.api_key)) {
    HttpResponse response =
        refusal(401, "this server wants its API key: Authorization: Bearer KEY");
    return std::move(response.set("WWW-Authenticate", "Bearer"));
  }
  return {};
}

}  // namespace heddle::engine
