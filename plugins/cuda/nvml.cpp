#include "nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "heddle/device.hpp"

namespace heddle::cuda::nvml {

namespace {

// The few declarations of nvml.h that are used here; its ABI is stable by versioned names.
using Handle = struct nvmlDevice_st*;
struct MemoryRecord {
  unsigned long long total, free, used;
};
struct MemoryRecord2 {
  unsigned version = sizeof(MemoryRecord2) | (2u << 24);
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;
};
struct PciRecord {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
constexpr int kSuccess = 0;
constexpr unsigned kMaxLinks = 18;
constexpr unsigned kMultiprocessorClock = 1, kMemoryClock = 2;  // nvmlClockType_t
constexpr int kP2pRead = 0, kP2pWrite = 1, kP2pNvlink = 2;      // nvmlGpuP2PCapsIndex_t

struct Library {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, Handle*) = nullptr;
  int (*handle_by_uuid)(const char*, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*pci)(Handle, PciRecord*) = nullptr;
  int (*minor_number)(Handle, unsigned*) = nullptr;
  int (*capability)(Handle, int*, int*) = nullptr;
  int (*cores)(Handle, unsigned*) = nullptr;
  int (*bus_width)(Handle, unsigned*) = nullptr;
  int (*max_clock)(Handle, unsigned, unsigned*) = nullptr;
  int (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;
  int (*p2p_status)(Handle, Handle, int, int*) = nullptr;
  int (*memory_info)(Handle, MemoryRecord*) = nullptr;
  int (*memory_info_2)(Handle, MemoryRecord2*) = nullptr;
  int (*pcie_generation)(Handle, unsigned*) = nullptr;
  int (*pcie_width)(Handle, unsigned*) = nullptr;
  int (*link_state)(Handle, unsigned, unsigned*) = nullptr;
  bool usable = false;
  bool enumerates = false;  // has all that cards() asks

  Library() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [library](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    usable = find(init, "nvmlInit_v2") && find(handle_by_uuid, "nvmlDeviceGetHandleByUUID") &&
             find(memory_info, "nvmlDeviceGetMemoryInfo") && init() == kSuccess;
    find(memory_info_2, "nvmlDeviceGetMemoryInfo_v2");
    find(pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
    find(link_state, "nvmlDeviceGetNvLinkState");
    find(mig_mode, "nvmlDeviceGetMigMode");
    find(p2p_status, "nvmlDeviceGetP2PStatus");
    enumerates =
        usable && find(count, "nvmlDeviceGetCount_v2") &&
        find(handle_by_index, "nvmlDeviceGetHandleByIndex_v2") && find(name, "nvmlDeviceGetName") &&
        find(uuid, "nvmlDeviceGetUUID") && find(pci, "nvmlDeviceGetPciInfo_v3") &&
        find(minor_number, "nvmlDeviceGetMinorNumber") &&
        find(capability, "nvmlDeviceGetCudaComputeCapability") &&
        find(cores, "nvmlDeviceGetNumGpuCores") && find(bus_width, "nvmlDeviceGetMemoryBusWidth") &&
        find(max_clock, "nvmlDeviceGetMaxClockInfo");
  }
};

const Library& library() {
  static const Library opened;  // never closed: the driver keeps it for the whole process
  return opened;
}

Handle handle(const std::string& uuid) {
  Handle found = nullptr;
  if (!library().usable || library().handle_by_uuid(uuid.c_str(), &found) != kSuccess)
    return nullptr;
  return found;
}

// 0: unknown.
int cores_of_multiprocessor(int major, int minor) {
  if (major == 8) return minor == 0 ? 64 : 128;
  return major == 7 ? 64 : major >= 9 && major <= 12 ? 128 : 0;
}

// Nothing, or why the card is left to the driver: NVML does not tell all, it is divided, or not for
// this process.
std::optional<std::string> read_card(Handle gpu, Card& card) {
  const Library& l = library();
  char text[96] = {}, uuid[96] = {};
  PciRecord pci{};
  unsigned minor_number = 0, cores = 0, width = 0, clock = 0, memory_clock = 0, mig = 0,
           pending = 0;
  struct Answer {
    const char* question;
    int code;
  };
  const Answer answers[] = {{"its name", l.name(gpu, text, sizeof text)},
                            {"its UUID", l.uuid(gpu, uuid, sizeof uuid)},
                            {"its PCI address", l.pci(gpu, &pci)},
                            {"its minor number", l.minor_number(gpu, &minor_number)},
                            {"its capability", l.capability(gpu, &card.major, &card.minor)},
                            {"its cores", l.cores(gpu, &cores)},
                            {"its bus width", l.bus_width(gpu, &width)},
                            {"its clock", l.max_clock(gpu, kMultiprocessorClock, &clock)},
                            {"its memory clock", l.max_clock(gpu, kMemoryClock, &memory_clock)}};
  for (const auto& [question, code] : answers)
    if (code != kSuccess) return device::cat("asked for ", question, " it returns ", code);
  if (l.mig_mode != nullptr && l.mig_mode(gpu, &mig, &pending) == kSuccess && mig != 0)
    return device::cat(text, " is divided (MIG)");
  // A container sees cards here that it may not use.
  const std::string node = device::cat("/dev/nvidia", minor_number);
  if (access(node.c_str(), R_OK | W_OK) != 0)
    return device::cat("this process may not use ", node, " of ", text);
  const int each = cores_of_multiprocessor(card.major, card.minor);
  const auto memory = nvml::memory(uuid);
  if (each == 0)
    return device::cat("multiprocessors of ", card.major, ".", card.minor, " are not known");
  if (!memory) return device::cat("it does not tell the memory of ", text);
  card.name = text;
  card.uuid = uuid;
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  card.pci_address = text;
  card.multiprocessors = static_cast<int>(cores) / each;
  card.clock = clock * 1e6;
  card.memory_clock = memory_clock * 1e6;
  card.memory_bits = static_cast<int>(width);
  card.memory_bytes = memory->total;
  return std::nullopt;
}

// As CUDA reads CUDA_VISIBLE_DEVICES: up to the first entry that names no card. False: it is not a
// list of numbers and UUIDs, or names a card twice, which CUDA takes for none at all.
bool keep_visible(std::vector<Card>& cards) {
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return true;
  std::vector<Card> visible;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    auto card = cards.end();
    if (entry.starts_with("GPU-")) {
      card = std::ranges::find(cards, entry, &Card::uuid);
      if (card == cards.end()) return false;  // perhaps the beginning of one
    } else {
      unsigned index = 0;
      const char* const end = entry.data() + entry.size();
      const auto [stop, error] = std::from_chars(entry.data(), end, index);
      if (error != std::errc() || stop != end) return false;
      if (index >= cards.size()) break;
      card = cards.begin() + index;
    }
    if (std::ranges::find(visible, card->uuid, &Card::uuid) != visible.end()) return false;
    visible.push_back(*card);
  }
  cards = std::move(visible);
  return true;
}

bool is_by_pci_address() {
  const char* const order = std::getenv("CUDA_DEVICE_ORDER");
  return order != nullptr && std::string_view(order) == "PCI_BUS_ID";
}

}  // namespace

std::vector<Card> cards(std::string& why) {
  unsigned count = 0;
  if (!library().enumerates) {
    why = library().usable ? "libnvidia-ml.so.1 lacks functions" : "there is no libnvidia-ml.so.1";
    return {};
  }
  if (const int code = library().count(&count); code != kSuccess) {
    why = device::cat("nvmlDeviceGetCount returns ", code);
    return {};
  }
  std::vector<Card> cards;
  for (unsigned i = 0; i < count; ++i) {
    Handle gpu = nullptr;
    Card card;
    const int code = library().handle_by_index(i, &gpu);
    const auto lacks = code == kSuccess ? read_card(gpu, card)
                                        : device::cat("nvmlDeviceGetHandleByIndex returns ", code);
    if (lacks) {
      why = device::cat("card ", i, ": ", *lacks);
      return {};
    }
    cards.push_back(std::move(card));
  }
  const auto is_like_first = [&](const Card& card) { return card.name == cards.front().name; };
  if (!is_by_pci_address() && !std::ranges::all_of(cards, is_like_first)) {
    why = "the cards differ, and CUDA puts the fastest first";
    return {};
  }
  if (!keep_visible(cards)) {
    why = "CUDA_VISIBLE_DEVICES is more than a list of numbers and UUIDs";
    return {};
  }
  if (cards.empty()) why = "it shows no cards";
  return cards;
}

std::optional<PeerWay> peer_way(const std::string& from, const std::string& to) {
  const Handle a = handle(from), b = handle(to);
  if (a == nullptr || b == nullptr || library().p2p_status == nullptr) return std::nullopt;
  const auto has = [&](int what) {
    int forth = 1, back = 1;
    return library().p2p_status(a, b, what, &forth) == kSuccess &&
           library().p2p_status(b, a, what, &back) == kSuccess && forth == 0 && back == 0;
  };
  return PeerWay{has(kP2pRead) && has(kP2pWrite), has(kP2pNvlink)};
}

std::optional<Memory> memory(const std::string& uuid) {
  const Handle gpu = handle(uuid);
  if (gpu == nullptr) return std::nullopt;
  if (MemoryRecord2 exact;
      library().memory_info_2 != nullptr && library().memory_info_2(gpu, &exact) == kSuccess)
    return Memory{exact.total - exact.reserved, exact.free};
  MemoryRecord record{};
  if (library().memory_info(gpu, &record) != kSuccess) return std::nullopt;
  return Memory{record.total, record.free};
}

double pcie_bytes_per_second(const std::string& uuid) {
  const Handle gpu = handle(uuid);
  unsigned generation = 0, width = 0;
  if (gpu == nullptr || library().pcie_generation == nullptr || library().pcie_width == nullptr)
    return 0;
  if (library().pcie_generation(gpu, &generation) != kSuccess ||
      library().pcie_width(gpu, &width) != kSuccess)
    return 0;
  // A lane of generation 3 carries 0.985 GB/s, each later one twice that; packets leave 88 % of it
  // (55.5 GB/s of 63 measured).
  double lane = 0.985e9;
  for (unsigned g = 3; g < generation; ++g) lane *= 2;
  return generation < 3 ? 0 : 0.88 * lane * width;
}

double nvlink_bytes_per_second(const std::string& uuid) {
  const Handle gpu = handle(uuid);
  if (gpu == nullptr || library().link_state == nullptr) return 0;
  int links = 0;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    unsigned active = 0;
    if (library().link_state(gpu, link, &active) == kSuccess && active != 0) ++links;
  }
  return 22e9 * links;  // of 25; 18 of them were measured to give 395 GB/s
}

}  // namespace heddle::cuda::nvml
