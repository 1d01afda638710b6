#include "engine/device/identity.h"

#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/status.h"

namespace heddle::engine {

namespace {

template <std::size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  const std::string_view all(field, kSize);
  return std::string(all.substr(0, all.find('\0')));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

DeviceIdentity identify(const heddle_device_desc& desc, std::uint32_t index,
                        const heddle_host* host) {
  DeviceIdentity identity{{cat(desc.kind, ":", index), desc.kind}};
  const heddle_device_identity* const table = extensions_of(whole_desc(desc)).identity;
  if (table == nullptr) return identity;
  heddle_device_identity_info info{};
  info.size = sizeof info;
  if (heddle_status* status = table->identify(host, index, &info); status != nullptr) {
    take_status(status);  // to open it gives the reason
    return identity;
  }
  identity.names.uuid = text_of(info.uuid);
  identity.names.pci_address = text_of(info.pci_address);
  identity.architecture = text_of(info.architecture);
  identity.integrated = info.integrated != 0;
  identity.fallbacks = lines_of(text_of(info.fallbacks));
  return identity;
}

}  // namespace heddle::engine
