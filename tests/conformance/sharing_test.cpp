// Memory that a device shares with other processes. Both ends are this process here, as a device
// cannot tell; tests/engine/isolate has two. For any device plugin that shares.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "heddle/abi/device_sharing.h"
#include "needs.h"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(sharing)

namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;

const heddle_device_sharing& table_of(const Plugin& plugin) {
  return *static_cast<const heddle_device_sharing*>(plugin.extension(HEDDLE_DEVICE_SHARING));
}

// Memory of the device and what it is shared by.
class Shared {
 public:
  Shared(const heddle_device_sharing& table, const TestDevice& device)
      : table_(table), device_(device) {
    check(table.alloc(device.raw(), kBytes, &memory_));
    told_.size = sizeof told_;
    told_.descriptor = -1;
    check(table.share(device.raw(), memory_, &told_));
  }
  ~Shared() {
    if (told_.descriptor >= 0) ::close(told_.descriptor);
    free();
  }
  Shared(const Shared&) = delete;
  void* memory() const { return memory_; }
  const heddle_shared_memory& told() const { return told_; }
  void free() {
    if (memory_ != nullptr) device_.desc().free(device_.raw(), memory_);
    memory_ = nullptr;
  }

 private:
  const heddle_device_sharing& table_;
  const TestDevice& device_;
  void* memory_ = nullptr;
  heddle_shared_memory told_{};
};

void write(const TestDevice& device, void* memory, const std::vector<std::uint32_t>& values) {
  check(device.desc().copy(device.stream(), device.raw(), memory, nullptr, values.data(),
                           values.size() * sizeof values[0]));
  device.wait();
}

std::vector<std::uint32_t> read(const TestDevice& device, const void* memory, std::size_t count) {
  std::vector<std::uint32_t> values(count);
  check(device.desc().copy(device.stream(), nullptr, values.data(), device.raw(), memory,
                           count * sizeof values[0]));
  device.wait();
  return values;
}

std::vector<std::uint32_t> ramp(std::uint32_t first) {
  std::vector<std::uint32_t> values(kBytes / sizeof first);
  std::iota(values.begin(), values.end(), first);
  return values;
}

heddle_code refusal(const heddle_device_sharing& table, const TestDevice& device,
                    const heddle_shared_memory& told) {
  void* mapped = nullptr;
  heddle_status* const status = table.map(device.raw(), &told, 1, &mapped);
  if (status != nullptr) return take(status).code;
  table.unmap(device.raw(), mapped);
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_ends_see_what_either_writes, *needs_sharing()) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  const heddle_device_sharing& table = table_of(plugin);
  Shared shared(table, device);
  BOOST_TEST(shared.told().bytes >= kBytes);
  BOOST_TEST(shared.told().token_bytes <= sizeof shared.told().token);
  write(device, shared.memory(), ramp(1));
  void* mapped = nullptr;
  check(table.map(device.raw(), &shared.told(), 1, &mapped));
  BOOST_TEST((read(device, mapped, kBytes / 4) == ramp(1)));
  write(device, mapped, ramp(7));
  BOOST_TEST((read(device, shared.memory(), kBytes / 4) == ramp(7)));
  // Who has mapped it keeps it.
  shared.free();
  void* again = nullptr;
  check(table.map(device.raw(), &shared.told(), 0, &again));
  table.unmap(device.raw(), again);
  table.unmap(device.raw(), mapped);
}

BOOST_AUTO_TEST_CASE(what_nobody_has_shared_is_refused, *needs_sharing()) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  const heddle_device_sharing& table = table_of(plugin);
  const Shared shared(table, device);
  BOOST_TEST(refusal(table, device, shared.told()) == 0);
  heddle_shared_memory told = shared.told();
  told.descriptor = -1;
  BOOST_TEST(refusal(table, device, told) == HEDDLE_INVALID_ARGUMENT);
  told = shared.told();
  told.token[0] ^= 0xff;
  BOOST_TEST(refusal(table, device, told) == HEDDLE_INVALID_ARGUMENT);
  told = shared.told();
  told.token_bytes = 3;
  BOOST_TEST(refusal(table, device, told) == HEDDLE_INVALID_ARGUMENT);
  for (const std::uint64_t bytes : {std::uint64_t{0}, shared.told().bytes + 1, ~std::uint64_t{0}}) {
    told = shared.told();
    told.bytes = bytes;
    BOOST_TEST(refusal(table, device, told) == HEDDLE_INVALID_ARGUMENT, bytes << " bytes");
  }
  int ends[2] = {-1, -1};
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  told = shared.told();
  told.descriptor = ends[0];
  BOOST_TEST(refusal(table, device, told) == HEDDLE_INVALID_ARGUMENT);
  ::close(ends[0]);
  ::close(ends[1]);
}

BOOST_AUTO_TEST_CASE(only_memory_that_is_made_for_it_is_shared, *needs_sharing()) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  const TestDevice::Buffer plain(device, 4096);
  heddle_shared_memory told{};
  told.size = sizeof told;
  heddle_status* const status = table_of(plugin).share(device.raw(), plain.memory, &told);
  BOOST_TEST_REQUIRE(status != nullptr);
  BOOST_TEST(take(status).code == HEDDLE_INVALID_ARGUMENT);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
