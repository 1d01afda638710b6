#include "engine/device/sharing.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

const heddle_device_sharing& table_of(const Device& device) {
  const heddle_device_sharing* const table = sharing_of(device.desc());
  if (table == nullptr)
    throw Error(Code::unsupported,
                cat(device.name(), " shares no memory with other processes: its plugin has no ",
                    HEDDLE_DEVICE_SHARING));
  return *table;
}

}  // namespace

const heddle_device_sharing* sharing_of(const heddle_device_desc& desc) {
  return desc.extension == nullptr
             ? nullptr
             : static_cast<const heddle_device_sharing*>(desc.extension(HEDDLE_DEVICE_SHARING));
}

bool can_share(const Device& device) {
  const heddle_device_sharing* const table = sharing_of(device.desc());
  return table != nullptr && table->is_possible(device.raw()) != 0;
}

std::uint64_t shared_bytes(const Device& device, std::uint64_t bytes) {
  return std::max(bytes, table_of(device).taken(device.raw(), bytes));
}

std::byte* allocate_shared(const Device& device, std::size_t bytes) {
  void* memory = nullptr;
  device.check(table_of(device).alloc(device.raw(), bytes, &memory),
               cat(device.name(), ": ", format_bytes(bytes), " of memory that is shared"));
  return static_cast<std::byte*>(memory);
}

heddle_shared_memory share(const Device& device, const void* memory) {
  heddle_shared_memory told{};
  told.size = sizeof told;
  told.descriptor = -1;
  device.check(table_of(device).share(device.raw(), memory, &told),
               cat(device.name(), ": memory that is to be shared"));
  return told;
}

std::byte* map_shared(const Device& device, const heddle_shared_memory& memory, bool is_writable) {
  void* mapped = nullptr;
  device.check(table_of(device).map(device.raw(), &memory, is_writable ? 1 : 0, &mapped),
               cat(device.name(), ": memory of another process"));
  return static_cast<std::byte*>(mapped);
}

void unmap_shared(const Device& device, void* mapped) {
  table_of(device).unmap(device.raw(), mapped);
}

}  // namespace heddle::engine
