#include "driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <type_traits>

#include "heddle/device.hpp"

namespace heddle::cuda::driver {

namespace {

struct Library {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDeviceGetCount) count = nullptr;
  decltype(&::cuDeviceGet) get = nullptr;
  decltype(&::cuDeviceGetName) name = nullptr;
  CUresult (*uuid)(CUuuid*, CUdevice) = nullptr;
  decltype(&::cuDeviceGetPCIBusId) pci_bus_id = nullptr;
  CUresult (*total_memory)(std::size_t*, CUdevice) = nullptr;
  decltype(&::cuDeviceGetAttribute) attribute = nullptr;
  decltype(&::cuDeviceCanAccessPeer) can_access_peer = nullptr;
  decltype(&::cuDeviceGetP2PAttribute) p2p_attribute = nullptr;
  decltype(&::cuDevicePrimaryCtxGetState) primary_state = nullptr;
  decltype(&::cuGetErrorString) error_string = nullptr;
  decltype(&::cuTensorMapEncodeTiled) encode = nullptr;  // from CUDA 12 on
  std::string trouble;                                   // empty: the driver can be used

  Library() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      trouble = "there is no NVIDIA driver (libcuda.so.1 is not found)";
      return;
    }
    const auto find = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (function == nullptr && trouble.empty())
        trouble = device::cat("the driver is too old: it has no ", symbol);
    };
    find(init, "cuInit");
    find(count, "cuDeviceGetCount");
    find(get, "cuDeviceGet");
    find(name, "cuDeviceGetName");
    find(uuid, "cuDeviceGetUuid_v2");
    find(pci_bus_id, "cuDeviceGetPCIBusId");
    find(total_memory, "cuDeviceTotalMem_v2");
    find(attribute, "cuDeviceGetAttribute");
    find(can_access_peer, "cuDeviceCanAccessPeer");
    find(p2p_attribute, "cuDeviceGetP2PAttribute");
    find(primary_state, "cuDevicePrimaryCtxGetState");
    find(error_string, "cuGetErrorString");
    encode = reinterpret_cast<decltype(encode)>(dlsym(library, "cuTensorMapEncodeTiled"));
    if (!trouble.empty()) return;
    if (const CUresult error = init(0); error != CUDA_SUCCESS) trouble = text_of("cuInit", error);
  }

  std::string text_of(const char* call, CUresult error) const {
    const char* text = nullptr;
    error_string(error, &text);
    return device::cat(call, ": ", text != nullptr ? text : "an unknown error", " (", int(error),
                       ")");
  }
};

const Library& library() {
  static const Library opened;  // never closed: the driver is there for the whole process
  return opened;
}

// "GPU-00112233-4455-6677-8899-aabbccddeeff"
std::string write_uuid(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return library().attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

Card card_of(CUdevice device) {
  Card card;
  char text[256] = {};
  if (library().name(text, sizeof text, device) == CUDA_SUCCESS) card.name = text;
  CUuuid uuid{};
  if (library().uuid(&uuid, device) == CUDA_SUCCESS) card.uuid = write_uuid(uuid);
  if (library().pci_bus_id(text, sizeof text, device) == CUDA_SUCCESS) card.pci_address = text;
  std::ranges::transform(card.pci_address, card.pci_address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::size_t bytes = 0;
  if (library().total_memory(&bytes, device) == CUDA_SUCCESS) card.memory_bytes = bytes;
  card.major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  card.minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  card.multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  card.clock = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e3;
  card.memory_clock = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1e3;
  card.memory_bits = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  card.integrated = attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  return card;
}

}  // namespace

std::vector<Card> cards(std::string& why) {
  why = library().trouble;
  if (!why.empty()) return {};
  int count = 0;
  if (const CUresult error = library().count(&count); error != CUDA_SUCCESS) {
    why = library().text_of("cuDeviceGetCount", error);
    return {};
  }
  std::vector<Card> cards;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    if (const CUresult error = library().get(&device, ordinal); error != CUDA_SUCCESS) {
      why = library().text_of("cuDeviceGet", error);
      return {};
    }
    cards.push_back(card_of(device));
  }
  if (cards.empty()) why = "the driver shows no GPU to this process";
  return cards;
}

int ordinal_of(const std::string& uuid) {
  int count = 0;
  if (!library().trouble.empty() || library().count(&count) != CUDA_SUCCESS) return -1;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    CUuuid own{};
    if (library().get(&device, ordinal) == CUDA_SUCCESS &&
        library().uuid(&own, device) == CUDA_SUCCESS && write_uuid(own) == uuid)
      return ordinal;
  }
  return -1;
}

PeerWay peer_way(const Card& from, const Card& to) {
  const int a = ordinal_of(from.uuid), b = ordinal_of(to.uuid);
  CUdevice here = 0, there = 0;
  if (a < 0 || b < 0 || library().get(&here, a) != CUDA_SUCCESS ||
      library().get(&there, b) != CUDA_SUCCESS)
    return {};
  int forth = 0, back = 0, atomics = 0;
  if (library().can_access_peer(&forth, here, there) != CUDA_SUCCESS ||
      library().can_access_peer(&back, there, here) != CUDA_SUCCESS)
    return {};
  // NVLink lets one GPU work atomically in the other's memory, PCIe does not.
  library().p2p_attribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, here, there);
  return {forth != 0 && back != 0, atomics != 0};
}

bool can_encode() { return library().encode != nullptr; }

void encode(CUtensorMap& map, CUtensorMapDataType type, unsigned rank, void* data,
            const cuuint64_t* sizes, const cuuint64_t* steps, const cuuint32_t* box,
            const cuuint32_t* element_steps, CUtensorMapSwizzle swizzle) {
  const CUresult error = library().encode(
      &map, type, rank, data, sizes, steps, box, element_steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS)
    device::fail(HEDDLE_INTERNAL, library().text_of("cuTensorMapEncodeTiled", error));
}

bool has_primary_context(int ordinal) {
  CUdevice device = 0;
  unsigned flags = 0;
  int is_active = 0;
  return library().trouble.empty() && library().get(&device, ordinal) == CUDA_SUCCESS &&
         library().primary_state(device, &flags, &is_active) == CUDA_SUCCESS && is_active != 0;
}

}  // namespace heddle::cuda::driver
