// What a proxy says of those whose requests it hands on: who asks, how, and under which name. It is
// believed of named proxies alone, as anybody can write such headers. Pure values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/http_message.h"

namespace heddle::engine {

// "10.0.0.0/8", "::1", or "unix": whoever may connect to a Unix socket of the server.
class ProxyAddress {
 public:
  // Nothing for what is no such text.
  static std::optional<ProxyAddress> parse(std::string_view text);
  bool contains(std::string_view address) const;

 private:
  bool is_unix_ = false;
  std::string bytes_;  // 4 or 16
  unsigned bits_ = 0;
};

struct ProxyRules {
  std::vector<ProxyAddress> trusted;
  // Under which the server is asked: "/studio"; empty: none. A proxy may take it away or leave it.
  std::string prefix;
};

// Puts what a trusted proxy says in its place: peer, is_encrypted, the Host header. Takes the
// prefix from the path, where it stands. Headers of others are left unread.
void take_forwarded(HttpRequest& request, const ProxyRules& rules);

}  // namespace heddle::engine
