#include "engine/serve/forwarded.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// 4 or 16 bytes; an IPv4 address that is written as an IPv6 one counts as what it is.
std::string address_bytes(std::string_view text) {
  const std::string address(text);
  unsigned char bytes[16];
  if (::inet_pton(AF_INET, address.c_str(), bytes) == 1)
    return {reinterpret_cast<const char*>(bytes), 4};
  if (::inet_pton(AF_INET6, address.c_str(), bytes) != 1) return "";
  const std::string whole(reinterpret_cast<const char*>(bytes), 16);
  static const std::string kMapped = std::string(10, '\0') + "\xff\xff";
  return whole.starts_with(kMapped) ? whole.substr(12) : whole;
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// "10.1.2.3:5000", "[::1]:5000" -> the address alone.
std::string_view without_port(std::string_view text) {
  if (text.starts_with('[')) return text.substr(1, std::min(text.find(']'), text.size()) - 1);
  const std::size_t colon = text.find(':');
  return colon == text.rfind(':') ? text.substr(0, colon) : text;
}

bool is_trusted(std::string_view address, const ProxyRules& rules) {
  return std::ranges::any_of(rules.trusted,
                             [&](const ProxyAddress& one) { return one.contains(address); });
}

// Of all headers of the name, which make one list.
std::vector<std::string> list_of(const HttpRequest& request, std::string_view name) {
  std::vector<std::string> list;
  for (const auto& [given, value] : request.headers) {
    if (!is_same_header(given, name)) continue;
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t end = std::min(value.find(',', at), value.size());
      list.emplace_back(without_blanks(std::string_view(value).substr(at, end - at)));
      at = end + 1;
    }
  }
  return list;
}

// Each proxy adds whom it has it from: from the end, the first that is none of ours.
std::string client_of(const HttpRequest& request, const ProxyRules& rules) {
  const std::vector<std::string> hops = list_of(request, "X-Forwarded-For");
  std::string client = request.peer;
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
    const std::string_view address = without_port(*hop);
    if (address_bytes(address).empty()) break;
    client = address;
    if (!is_trusted(address, rules)) break;
  }
  return client;
}

void take_prefix(HttpRequest& request, const std::string& prefix) {
  request.prefix = prefix;
  if (prefix.empty() || !request.path.starts_with(prefix)) return;
  const std::string_view rest = std::string_view(request.path).substr(prefix.size());
  if (rest.empty()) {
    request.path = "/";
  } else if (rest.front() == '/') {
    request.path = std::string(rest);
  }
}

}  // namespace

std::optional<ProxyAddress> ProxyAddress::parse(std::string_view text) {
  ProxyAddress address;
  if (text == "unix") {
    address.is_unix_ = true;
    return address;
  }
  const std::size_t slash = text.find('/');
  address.bytes_ = address_bytes(text.substr(0, slash));
  if (address.bytes_.empty()) return {};
  const auto most = unsigned(8 * address.bytes_.size());
  address.bits_ = most;
  if (slash == text.npos) return address;
  const std::string_view bits = text.substr(slash + 1);
  const auto read = std::from_chars(bits.data(), bits.data() + bits.size(), address.bits_);
  const bool is_number = read.ec == std::errc() && read.ptr == bits.data() + bits.size();
  return is_number && address.bits_ <= most ? std::optional(address) : std::nullopt;
}

bool ProxyAddress::contains(std::string_view text) const {
  if (is_unix_ || text == "unix") return is_unix_ && text == "unix";
  const std::string other = address_bytes(text);
  if (other.size() != bytes_.size()) return false;
  for (unsigned bit = 0; bit < bits_; ++bit) {
    const int shift = 7 - int(bit % 8);
    if (((other[bit / 8] ^ bytes_[bit / 8]) >> shift & 1) != 0) return false;
  }
  return true;
}

void take_forwarded(HttpRequest& request, const ProxyRules& rules) {
  if (is_trusted(request.peer, rules)) {
    if (const auto schemes = list_of(request, "X-Forwarded-Proto"); !schemes.empty())
      request.is_encrypted = schemes.back() == "https";
    if (const auto hosts = list_of(request, "X-Forwarded-Host"); !hosts.empty())
      for (auto& [name, value] : request.headers)
        if (is_same_header(name, "Host")) value = hosts.back();
    request.peer = client_of(request, rules);
  }
  take_prefix(request, rules.prefix);
}

}  // namespace heddle::engine
