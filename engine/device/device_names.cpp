#include "engine/device/device_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>

namespace heddle::engine {

namespace {

using PciAddress = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

std::optional<std::uint32_t> read_hex(std::string_view digits, std::size_t least,
                                      std::size_t most) {
  std::uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  if (digits.size() < least || digits.size() > most) return {};
  const auto [stop, error] = std::from_chars(digits.data(), end, number, 16);
  if (error != std::errc() || stop != end) return {};
  return number;
}

// "0000:1b:00.0", "1b:00.0", "1b:00".
std::optional<PciAddress> read_pci_address(std::string_view text) {
  std::optional<std::uint32_t> domain = 0, function = 0;
  if (std::ranges::count(text, ':') == 2) {
    domain = read_hex(text.substr(0, text.find(':')), 4, 8);
    text.remove_prefix(text.find(':') + 1);
  }
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    function = read_hex(text.substr(dot + 1), 1, 1);
    text = text.substr(0, dot);
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto bus = read_hex(text.substr(0, colon), 2, 2);
  const auto device = read_hex(text.substr(std::min(colon + 1, text.size())), 2, 2);
  if (!domain || !bus || !device || !function) return {};
  return PciAddress{*domain, *bus, *device, *function};
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

NamedBy named_by(std::string_view selector, const DeviceNames& device) {
  if (selector == device.name) return NamedBy::device;
  if (selector == device.kind) return NamedBy::kind;
  if (selector == kAnyDevice) return NamedBy::all;
  if (!device.uuid.empty() && equal_in_any_case(selector, device.uuid)) return NamedBy::device;
  const auto address = read_pci_address(selector);
  if (address && address == read_pci_address(device.pci_address)) return NamedBy::device;
  return NamedBy::nothing;
}

}  // namespace heddle::engine
