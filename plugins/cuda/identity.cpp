#include "identity.h"

#include "card.h"
#include "device.h"
#include "heddle/device.hpp"

namespace heddle::cuda {

namespace {

heddle_status* identify(const heddle_host* host, std::uint32_t index,
                        heddle_device_identity_info* out) {
  return device::guard(host, device::cat("cuda:", index), [&] {
    if (index >= cards().size()) device::fail(HEDDLE_NOT_FOUND, "there is no such device");
    const Card& card = cards()[index];
    *out = {};
    out->size = sizeof *out;
    out->integrated = card.integrated ? 1 : 0;
    write_text(out->uuid, card.uuid);
    write_text(out->pci_address, card.pci_address);
    write_text(out->architecture, architecture_of(card));
    write_text(out->fallbacks, fallbacks_of(card));
  });
}

std::int32_t has_context(heddle_device* device) { return as_device(device).has_context() ? 1 : 0; }

heddle_status* release_context(heddle_device* device) {
  Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] { self.release_context(); });
}

void expect_work(heddle_device* device) { as_device(device).expect_work(); }

constexpr heddle_device_identity kIdentity = {.identify = identify};
constexpr heddle_device_context kContext = {.is_made = has_context, .release = release_context};
constexpr heddle_device_ahead kAhead = {.expect_work = expect_work};

}  // namespace

const void* identity_extension(std::string_view name) {
  if (name == HEDDLE_DEVICE_IDENTITY) return &kIdentity;
  if (name == HEDDLE_DEVICE_CONTEXT) return &kContext;
  if (name == HEDDLE_DEVICE_AHEAD) return &kAhead;
  return nullptr;
}

}  // namespace heddle::cuda
