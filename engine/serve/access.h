// Who may ask a server: pages of other sites may not, neither directly nor under a name that leads
// here. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/serve/http_message.h"

namespace heddle::engine {

struct AccessRules {
  bool is_loopback_only = true;  // the server listens nowhere else
  std::string api_key;           // that every request has to bring; empty: none
};

// "[::1]:8188" -> {"::1", "8188"}; the port may be missing. Nothing for what is no host.
struct HostAndPort {
  std::string host, port;
};
std::optional<HostAndPort> parse_host(std::string_view text);
// "localhost", 127.0.0.0/8, "::1".
bool is_loopback_name(std::string_view host);
bool is_address(std::string_view host);  // digits, not a name

// The refusal, or nothing. A request without "Origin" comes from no page of another site, or cannot
// be read there and changes nothing.
std::optional<HttpResponse> check_access(const HttpRequest& request, const AccessRules& rules);

}  // namespace heddle::engine
