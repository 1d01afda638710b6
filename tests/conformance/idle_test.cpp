// A device before its first work and after its last: who it is, and what it holds of its driver.
// For any device plugin that tells.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <string>

#include "heddle/device.hpp"
#include "needs.h"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(idle)

namespace {

// Opened, and nothing else.
struct Opened {
  explicit Opened(const Plugin& plugin)
      : desc(plugin.device()),
        context(
            *static_cast<const heddle_device_context*>(plugin.extension(HEDDLE_DEVICE_CONTEXT))) {
    const OptionRecord record(settings().options);
    check(desc.open(mini_host(), 0, record.value(), &raw));
  }
  ~Opened() { desc.close(raw); }
  bool has_context() const { return context.is_made(raw) != 0; }

  const heddle_device_desc& desc;
  const heddle_device_context& context;
  heddle_device* raw = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_device_is_told_apart_before_it_is_opened, *needs_identity()) {
  const Plugin plugin(settings().plugin);
  const auto* identity =
      static_cast<const heddle_device_identity*>(plugin.extension(HEDDLE_DEVICE_IDENTITY));
  std::set<std::string> uuids, addresses;
  for (std::uint32_t i = 0; i < plugin.device().count(); ++i) {
    heddle_device_identity_info info{};
    info.size = sizeof info;
    check(identity->identify(mini_host(), i, &info));
    BOOST_TEST(info.size == sizeof info);
    const std::string uuid = info.uuid, address = info.pci_address;
    BOOST_TEST((uuid.empty() || uuids.insert(uuid).second), uuid << " is there twice");
    BOOST_TEST((address.empty() || addresses.insert(address).second), address << " is there twice");
    BOOST_TEST_MESSAGE("device " << i << ": " << uuid << ", " << address << ", "
                                 << info.architecture << "\n"
                                 << info.fallbacks);
  }
}

BOOST_AUTO_TEST_CASE(a_device_makes_its_context_at_its_first_work, *needs_context()) {
  const Plugin plugin(settings().plugin);
  const Opened device(plugin);
  BOOST_TEST(!device.has_context());
  heddle_device_info info{};
  check(device.desc.info(device.raw, &info));
  BOOST_TEST(info.memory_total > 0u);
  BOOST_TEST(device.desc.can_copy(device.raw, nullptr) == 1);
  const heddle_tensor_info matrix = device::row_major(HEDDLE_BF16, {64, 64});
  heddle_weight_layout layout{};
  heddle_status* const status =
      device.desc.weight_layout(device.raw, HEDDLE_USE_LINEAR, &matrix, &layout);
  BOOST_TEST((status == nullptr || take(status).code == HEDDLE_UNSUPPORTED));
  if (const auto* links =
          static_cast<const heddle_device_links*>(plugin.extension(HEDDLE_DEVICE_LINKS))) {
    heddle_link link{};
    link.size = sizeof link;
    check(links->link(device.raw, nullptr, &link));
  }
  BOOST_TEST(!device.has_context());
  void* memory = nullptr;
  check(device.desc.alloc(device.raw, 1 << 20, &memory));
  BOOST_TEST(device.has_context());
  device.desc.free(device.raw, memory);
}

BOOST_AUTO_TEST_CASE(a_device_gives_its_context_back_when_nothing_of_it_is_left, *needs_context()) {
  const Plugin plugin(settings().plugin);
  const Opened device(plugin);
  for (int round = 0; round < 2; ++round) {
    void* memory = nullptr;
    heddle_stream* stream = nullptr;
    check(device.desc.alloc(device.raw, 1 << 20, &memory));
    check(device.desc.stream_make(device.raw, &stream));
    float ones[4] = {1, 1, 1, 1}, back[4] = {};
    heddle_event* event = nullptr;
    check(device.desc.event_make(device.raw, &event));
    check(device.desc.copy(stream, device.raw, memory, nullptr, ones, sizeof ones));
    check(device.desc.copy(stream, nullptr, back, device.raw, memory, sizeof back));
    check(device.desc.record(stream, event));
    check(device.desc.wait(event));
    BOOST_TEST(back[3] == 1);
    heddle_status* refused = device.context.release(device.raw);
    BOOST_REQUIRE(refused != nullptr);
    BOOST_TEST(take(refused).message != "");
    device.desc.event_free(event);
    device.desc.stream_free(stream);
    device.desc.free(device.raw, memory);
    check(device.context.release(device.raw));
    BOOST_TEST(!device.has_context());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
