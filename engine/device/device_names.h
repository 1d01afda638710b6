// How people name devices: "cuda:1", a kind, "auto", a UUID, a PCI address. Plain values.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace heddle::engine {

// What names one device.
struct DeviceNames {
  std::string name;              // "cuda:1"
  std::string kind;              // "cuda"
  std::string uuid = {};         // "GPU-00112233-4455-..."; empty: none
  std::string pci_address = {};  // "0000:1b:00.0"; empty: none
};

// What a selector names, as seen from one device: the later, the narrower.
enum class NamedBy { nothing, all, kind, device };

inline constexpr std::string_view kAnyDevice = "auto";

// `selector`: "auto", a kind, a name, a UUID in any case, or a PCI address with or without its
// domain and function, in any case, also as nvidia-smi writes it ("00000000:1B:00.0").
NamedBy named_by(std::string_view selector, const DeviceNames& device);

// Of what is said by device, kind or "auto", the narrowest that names the device; nullptr: nothing
// does.
template <class T>
const T* find_for(const std::map<std::string, T>& said, const DeviceNames& device) {
  if (const auto found = said.find(device.name); found != said.end()) return &found->second;
  const T* best = nullptr;
  NamedBy how = NamedBy::nothing;
  for (const auto& [selector, value] : said) {
    const NamedBy here = named_by(selector, device);
    if (here <= how) continue;
    how = here;
    best = &value;
  }
  return best;
}

}  // namespace heddle::engine
