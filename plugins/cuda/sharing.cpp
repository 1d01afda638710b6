#include "sharing.h"

#include <unistd.h>

#include <cstring>
#include <limits>

#include "device.h"
#include "device_memory.h"
#include "driver.h"
#include "heddle/device.hpp"

namespace heddle::cuda {

namespace {

// What goes with the descriptor: whose memory it is, so that a card does not take another's.
struct Token {
  char magic[8] = {'c', 'u', 'd', 'a', 'm', 'e', 'm', '0'};
  char uuid[64] = {};
};
static_assert(sizeof(Token) <= sizeof(heddle_shared_memory::token));

Token token_of(const Device& device) {
  Token token;
  write_text(token.uuid, device.card().uuid);
  return token;
}

template <class Work>
heddle_status* on(Device& device, Work&& work) {
  return device::guard(device.host(), device.name(), [&] {
    device.use();
    work();
  });
}

// Without a context.
std::int32_t is_possible(heddle_device* device) {
  const int ordinal = driver::ordinal_of(as_device(device).card().uuid);
  return ordinal >= 0 && can_share_device_memory(ordinal) ? 1 : 0;
}

std::uint64_t taken(heddle_device* device, std::uint64_t bytes) {
  const int ordinal = driver::ordinal_of(as_device(device).card().uuid);
  const bool is_absurd = bytes > std::numeric_limits<std::size_t>::max() / 4;
  return ordinal < 0 || is_absurd ? bytes : shareable_bytes(ordinal, bytes);
}

heddle_status* alloc(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return on(self, [&] {
    if (bytes > std::numeric_limits<std::size_t>::max() / 4)
      device::fail(HEDDLE_OUT_OF_MEMORY, bytes, " bytes were asked for. Lower the budget");
    const cudaError_t error = allocate_shareable_memory(self.ordinal(), bytes, out);
    if (error == cudaErrorNotSupported)
      device::fail(HEDDLE_UNSUPPORTED,
                   "the driver refuses memory that processes share (cuMemCreate); values of "
                   "isolated nodes go by host memory from now on");
    if (error == cudaErrorMemoryAllocation)
      device::fail(HEDDLE_OUT_OF_MEMORY, "the driver has no room: ", bytes,
                   " bytes that processes share were asked for. Lower the budget");
    self.check(error, "cuMemCreate");
    self.add_thing();
  });
}

heddle_status* share(heddle_device* device, const void* memory, heddle_shared_memory* out) {
  Device& self = as_device(device);
  return on(self, [&] {
    int descriptor = -1;
    std::size_t bytes = 0;
    const cudaError_t error = export_device_memory(memory, &descriptor, &bytes);
    if (error == cudaErrorInvalidValue)
      device::fail(HEDDLE_INVALID_ARGUMENT, memory, " is no begin of memory that can be shared");
    self.check(error, "cuMemExportToShareableHandle");
    const Token token = token_of(self);
    *out = {};
    out->size = sizeof *out;
    out->descriptor = descriptor;
    out->bytes = bytes;
    out->token_bytes = sizeof token;
    std::memcpy(out->token, &token, sizeof token);
  });
}

// A card maps memory of another process for reading and writing, whatever is asked for: the
// driver's flag for reading alone is not taken for memory of cards.
heddle_status* map(heddle_device* device, const heddle_shared_memory* told, std::int32_t,
                   void** out) {
  Device& self = as_device(device);
  return on(self, [&] {
    const Token expected = token_of(self);
    const bool is_ours = told->size >= sizeof *told && told->token_bytes == sizeof expected &&
                         std::memcmp(told->token, &expected, sizeof expected) == 0;
    if (!is_ours)
      device::fail(HEDDLE_INVALID_ARGUMENT, "what is to be mapped is no memory of this card");
    const cudaError_t error =
        import_device_memory(self.ordinal(), told->descriptor, told->bytes, out);
    if (error == cudaErrorInvalidValue)
      device::fail(HEDDLE_INVALID_ARGUMENT, "what is to be mapped is no memory of ", told->bytes,
                   " bytes that a process has shared");
    self.check(error, "cuMemImportFromShareableHandle");
    self.add_thing();
  });
}

void unmap(heddle_device* device, void* mapped) {
  if (mapped == nullptr) return;
  Device& self = as_device(device);
  cudaSetDevice(self.ordinal());
  free_device_memory(mapped);
  self.remove_thing();
}

}  // namespace

const heddle_device_sharing* sharing_table() {
  static constexpr heddle_device_sharing table = {.is_possible = is_possible,
                                                  .alloc = alloc,
                                                  .share = share,
                                                  .map = map,
                                                  .unmap = unmap,
                                                  .taken = taken};
  return &table;
}

}  // namespace heddle::cuda
