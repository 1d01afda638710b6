// heddle.device.sharing/0 of the fake devices: their memory is memfd, so that other processes map
// it as a GPU's.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "control.h"
#include "device.h"
#include "heddle/device.hpp"

namespace heddle::fake {

namespace {

// What stands in the token: whose memory it is.
struct Token {
  char magic[8] = {'f', 'a', 'k', 'e', 'm', 'e', 'm', '0'};
  std::uint32_t index = 0;
};

Device& as_device(heddle_device* device) { return *reinterpret_cast<Device*>(device); }

template <class Work>
heddle_status* guard(const Device& device, Work&& work) {
  return device::guard(device.host(), device.name(), std::forward<Work>(work));
}

std::int32_t is_possible(heddle_device* device) {
  return as_device(device).configuration().shares ? 1 : 0;
}

std::uint64_t taken(heddle_device* device, std::uint64_t bytes) {
  const std::uint64_t piece = as_device(device).configuration().shared_piece;
  return (std::max<std::uint64_t>(bytes, 1) + piece - 1) / piece * piece;
}

heddle_status* alloc(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return guard(self, [&] {
    if (!self.configuration().shares) device::fail(HEDDLE_UNSUPPORTED, "it shares no memory");
    *out = self.allocate(std::max<std::size_t>(bytes, 1), true);
  });
}

heddle_status* share(heddle_device* device, const void* memory, heddle_shared_memory* out) {
  Device& self = as_device(device);
  return guard(self, [&] {
    const std::shared_ptr<const Allocation> allocation = self.memory().find(memory);
    if (allocation == nullptr || allocation->descriptor() < 0 || allocation->is_of_another())
      device::fail(HEDDLE_INVALID_ARGUMENT, memory, " is no begin of memory that can be shared");
    Token token;
    token.index = self.index();
    *out = {};
    out->size = sizeof *out;
    out->bytes = allocation->bytes();
    out->token_bytes = sizeof token;
    std::memcpy(out->token, &token, sizeof token);
    out->descriptor = ::fcntl(allocation->descriptor(), F_DUPFD_CLOEXEC, 3);
    if (out->descriptor < 0)
      device::fail(HEDDLE_IO, "memory that is to be shared: ", std::strerror(errno));
  });
}

heddle_status* map(heddle_device* device, const heddle_shared_memory* told, std::int32_t writable,
                   void** out) {
  Device& self = as_device(device);
  return guard(self, [&] {
    Token token, expected;
    expected.index = self.index();
    const bool is_whole = told->size >= sizeof *told && told->token_bytes == sizeof token;
    if (is_whole) std::memcpy(&token, told->token, sizeof token);
    if (!is_whole || std::memcmp(token.magic, expected.magic, sizeof token.magic) != 0 ||
        token.index != expected.index)
      device::fail(HEDDLE_INVALID_ARGUMENT, "what is to be mapped is no memory of this device");
    *out = self.memory().adopt(
        std::make_shared<Allocation>(told->descriptor, told->bytes, writable != 0));
  });
}

void unmap(heddle_device* device, void* mapped) {
  Device& self = as_device(device);
  heddle_status* const status = guard(self, [&] { self.free(mapped); });
  if (status == nullptr) return;
  self.host()->log(self.host(), HEDDLE_ERROR, self.host()->status_message(status));
  self.host()->status_free(status);
}

constexpr heddle_device_sharing kSharing = {.is_possible = is_possible,
                                            .alloc = alloc,
                                            .share = share,
                                            .map = map,
                                            .unmap = unmap,
                                            .taken = taken};

}  // namespace

const heddle_device_sharing& sharing_extension() { return kSharing; }

}  // namespace heddle::fake
