#include "device_memory.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <type_traits>
#include <vector>

namespace heddle::cuda {
namespace {

struct Driver {
  decltype(&::cuDeviceGetAttribute) attribute = nullptr;
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&::cuMemAddressReserve) reserve = nullptr;
  decltype(&::cuMemAddressFree) unreserve = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  bool is_whole = true;
  // Of memory that is shared; apart, as the others are needed without them.
  decltype(&::cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&::cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&::cuMemGetAllocationPropertiesFromHandle) properties = nullptr;
  bool shares = true;

  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto find = [&](auto& function, const char* symbol, bool Driver::*all) {
      if (library != nullptr)
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      this->*all = this->*all && function != nullptr;
    };
    find(attribute, "cuDeviceGetAttribute", &Driver::is_whole);
    find(granularity, "cuMemGetAllocationGranularity", &Driver::is_whole);
    find(reserve, "cuMemAddressReserve", &Driver::is_whole);
    find(unreserve, "cuMemAddressFree", &Driver::is_whole);
    find(create, "cuMemCreate", &Driver::is_whole);
    find(release, "cuMemRelease", &Driver::is_whole);
    find(map, "cuMemMap", &Driver::is_whole);
    find(unmap, "cuMemUnmap", &Driver::is_whole);
    find(set_access, "cuMemSetAccess", &Driver::is_whole);
    find(export_handle, "cuMemExportToShareableHandle", &Driver::shares);
    find(import_handle, "cuMemImportFromShareableHandle", &Driver::shares);
    find(properties, "cuMemGetAllocationPropertiesFromHandle", &Driver::shares);
  }
};

const Driver& driver() {
  static const Driver opened;  // never closed: the driver is there for the whole process
  return opened;
}

struct Mapping {
  int owner = 0;
  std::size_t bytes = 0;  // a multiple of the granularity
  CUmemGenericAllocationHandle handle = 0;
  bool is_shareable = false;
};

struct Table {
  std::mutex mutex;
  std::map<void*, Mapping> mappings;
  std::map<int, std::set<int>> readers;  // of an owner's memory, beside itself
};
Table& table() {
  static Table all;
  return all;
}

constexpr CUmemAllocationHandleType kShared = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// What is not to be shared asks for no handle: nothing about it changes.
CUmemAllocationProp memory_of(int ordinal, bool is_shareable = false) {
  CUmemAllocationProp of{};
  if (is_shareable) of.requestedHandleTypes = kShared;
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  of.location.id = ordinal;
  return of;
}

// What the driver maps at least; 0: it maps nothing here.
std::size_t find_granularity(int ordinal) {
  int is_supported = 0;
  if (!driver().is_whole ||
      driver().attribute(&is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                         ordinal) != CUDA_SUCCESS ||
      is_supported == 0)
    return 0;
  const CUmemAllocationProp of = memory_of(ordinal);
  std::size_t bytes = 0;
  return driver().granularity(&bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS ? bytes
                                                                                             : 0;
}

std::size_t granularity_of(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::size_t> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(ordinal);
  return found != known.end() ? found->second : known[ordinal] = find_granularity(ordinal);
}

CUresult let_reach(void* memory, std::size_t bytes, const std::vector<int>& ordinals) {
  std::vector<CUmemAccessDesc> access;
  for (const int ordinal : ordinals)
    access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, ordinal}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  return driver().set_access(reinterpret_cast<CUdeviceptr>(memory), bytes, access.data(),
                             access.size());
}

// The runtime numbers its errors as the driver does.
cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

// The driver or the system does not map memory here, whatever it said.
bool is_refused(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED;
}

void unmap(void* memory, const Mapping& mapping) {
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  driver().unmap(address, mapping.bytes);
  driver().unreserve(address, mapping.bytes);
  driver().release(mapping.handle);
}

// Notes the mapping where all that may reach it does.
CUresult publish(void* memory, const Mapping& mapping) {
  const std::lock_guard lock(table().mutex);
  std::vector<int> reach{mapping.owner};
  const std::set<int>& readers = table().readers[mapping.owner];
  reach.insert(reach.end(), readers.begin(), readers.end());
  const CUresult result = let_reach(memory, mapping.bytes, reach);
  if (result == CUDA_SUCCESS) table().mappings[memory] = mapping;
  return result;
}

// Gives the mapping an address; what fails gives its handle back.
CUresult map_handle(const Mapping& mapping, void** out) {
  CUdeviceptr address = 0;
  CUresult result = driver().reserve(&address, mapping.bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) {
    result = driver().map(address, mapping.bytes, 0, mapping.handle, 0);
    if (result != CUDA_SUCCESS) driver().unreserve(address, mapping.bytes);
  }
  if (result != CUDA_SUCCESS) {
    driver().release(mapping.handle);
    return result;
  }
  *out = reinterpret_cast<void*>(address);
  result = publish(*out, mapping);
  if (result != CUDA_SUCCESS) unmap(*out, mapping);
  return result;
}

CUresult map_memory(int ordinal, std::size_t bytes, void** out, bool is_shareable = false) {
  Mapping mapping{ordinal, bytes, 0, is_shareable};
  const CUmemAllocationProp of = memory_of(ordinal, is_shareable);
  const CUresult result = driver().create(&mapping.handle, bytes, &of, 0);
  return result == CUDA_SUCCESS ? map_handle(mapping, out) : result;
}

std::size_t whole_pieces(std::size_t bytes, std::size_t granularity) {
  return (std::max<std::size_t>(bytes, 1) + granularity - 1) / granularity * granularity;
}

// Cards on which memory that was to be shared has been refused, whatever the driver had said of it:
// some containers allow no descriptors.
struct Refused {
  std::mutex mutex;
  std::set<int> ordinals;  // mutex
};
Refused& refused() {
  static Refused all;
  return all;
}

// Of the card, and whole: the descriptor may be anything.
bool is_of_card(CUmemGenericAllocationHandle handle, int ordinal) {
  CUmemAllocationProp of{};
  return driver().properties(&of, handle) == CUDA_SUCCESS &&
         of.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         of.location.type == CU_MEM_LOCATION_TYPE_DEVICE && of.location.id == ordinal;
}

}  // namespace

cudaError_t allocate_device_memory(int ordinal, std::size_t bytes, void** out) {
  const std::size_t granularity = granularity_of(ordinal);
  if (granularity != 0 && bytes >= granularity) {
    const CUresult result = map_memory(ordinal, whole_pieces(bytes, granularity), out);
    if (!is_refused(result)) return error_of(result);
  }
  return cudaMalloc(out, std::max<std::size_t>(bytes, 1));
}

void free_device_memory(void* memory) {
  Mapping mapping;
  {
    const std::lock_guard lock(table().mutex);
    if (const auto found = table().mappings.find(memory); found != table().mappings.end()) {
      mapping = found->second;
      table().mappings.erase(found);
    }
  }
  if (mapping.bytes == 0)
    cudaFree(memory);
  else
    unmap(memory, mapping);
}

bool can_share_device_memory(int ordinal) {
  int is_supported = 0;
  if (!driver().shares || granularity_of(ordinal) == 0 ||
      driver().attribute(&is_supported,
                         CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                         ordinal) != CUDA_SUCCESS)
    return false;
  const std::lock_guard lock(refused().mutex);
  return is_supported != 0 && !refused().ordinals.contains(ordinal);
}

std::uint64_t shareable_bytes(int ordinal, std::uint64_t bytes) {
  const std::size_t granularity = granularity_of(ordinal);
  return granularity == 0 ? bytes : whole_pieces(bytes, granularity);
}

cudaError_t allocate_shareable_memory(int ordinal, std::size_t bytes, void** out) {
  if (!can_share_device_memory(ordinal)) return cudaErrorNotSupported;
  const CUresult result =
      map_memory(ordinal, whole_pieces(bytes, granularity_of(ordinal)), out, true);
  if (!is_refused(result)) return error_of(result);
  const std::lock_guard lock(refused().mutex);
  refused().ordinals.insert(ordinal);
  return cudaErrorNotSupported;
}

cudaError_t export_device_memory(const void* memory, int* descriptor, std::size_t* bytes) {
  const std::lock_guard lock(table().mutex);  // nobody frees it meanwhile
  const auto found = table().mappings.find(const_cast<void*>(memory));
  if (found == table().mappings.end() || !found->second.is_shareable) return cudaErrorInvalidValue;
  int made = -1;
  const CUresult result = driver().export_handle(&made, found->second.handle, kShared, 0);
  if (result != CUDA_SUCCESS) return is_refused(result) ? cudaErrorNotSupported : error_of(result);
  ::fcntl(made, F_SETFD, FD_CLOEXEC);
  *descriptor = made;
  *bytes = found->second.bytes;
  return cudaSuccess;
}

cudaError_t import_device_memory(int ordinal, int descriptor, std::size_t bytes, void** out) {
  if (!can_share_device_memory(ordinal)) return cudaErrorNotSupported;
  if (descriptor < 0 || bytes == 0 || bytes % granularity_of(ordinal) != 0)
    return cudaErrorInvalidValue;
  Mapping mapping{ordinal, bytes, 0, false};
  // The driver takes the number itself in place of the pointer.
  void* const number = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
  const CUresult result = driver().import_handle(&mapping.handle, number, kShared);
  if (result != CUDA_SUCCESS) {
    const bool is_short = result == CUDA_ERROR_OUT_OF_MEMORY;
    return is_short ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
  }
  if (is_of_card(mapping.handle, ordinal)) return error_of(map_handle(mapping, out));
  driver().release(mapping.handle);
  return cudaErrorInvalidValue;
}

cudaError_t share_device_memory(int owner, int reader) {
  const std::lock_guard lock(table().mutex);
  table().readers[owner].insert(reader);
  for (const auto& [memory, mapping] : table().mappings)
    if (mapping.owner == owner)
      if (const CUresult result = let_reach(memory, mapping.bytes, {reader});
          result != CUDA_SUCCESS)
        return error_of(result);
  return cudaSuccess;
}

void unshare_device_memory(int ordinal) {
  const std::lock_guard lock(table().mutex);
  table().readers.erase(ordinal);
  for (auto& [owner, readers] : table().readers) readers.erase(ordinal);
}

}  // namespace heddle::cuda
