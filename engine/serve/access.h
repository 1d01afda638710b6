// Who may ask a server: pages of other sites may not, neither directly nor under a name that leads
// here; and where there is a key, whoever has neither it nor a session. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/serve/authenticator.h"
#include "engine/serve/http_message.h"

namespace heddle::engine {

struct AccessRules {
  bool is_loopback_only = true;            // the server listens nowhere else
  Authenticator* authenticator = nullptr;  // of the keys that requests bring; none: no key
  bool has_front_end = false;              // at "/", in the place of the page of our own
  std::string cors_origin;  // whose pages may ask, too: "https://a.example"; "*": all; empty: none
};

// "[::1]:8188" -> {"::1", "8188"}; the port may be missing. Nothing for what is no host.
struct HostAndPort {
  std::string host, port;
};
std::optional<HostAndPort> parse_host(std::string_view text);
// "localhost", 127.0.0.0/8, "::1".
bool is_loopback_name(std::string_view host);
bool is_address(std::string_view host);  // digits, not a name

// The token of the session that a request names in its cookie; "": none.
std::string session_of(const HttpRequest& request);
// For the browser to keep; empty: it shall forget the one that it has.
std::string session_cookie(const HttpRequest& request, std::string_view token);
// Of a key that is not right.
HttpResponse key_refusal(const Authenticator::Checked& checked);

// The refusal; or nothing, and who asks stands in the request. One without "Origin" comes from no
// page of another site, or cannot be read there and changes nothing.
std::optional<HttpResponse> check_access(HttpRequest& request, const AccessRules& rules);

// Tells browsers whose pages may read the answer. Nothing where the rules name none.
void add_cors_headers(const AccessRules& rules, HttpResponse& response);

}  // namespace heddle::engine
