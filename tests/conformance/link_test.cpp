// Extensions of a device: links, and times of events. For any device plugin that has them.
#include <boost/test/unit_test.hpp>

#include <cmath>

#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(links)

namespace {

struct Event {
  explicit Event(const TestDevice& device) : desc(device.desc()) {
    check(desc.event_make(device.raw(), &raw));
  }
  ~Event() { desc.event_free(raw); }
  const heddle_device_desc& desc;
  heddle_event* raw = nullptr;
};

heddle_link link_of(const TestDevice& device, heddle_device* peer) {
  heddle_link link{};
  link.size = sizeof link;
  check(
      device.extension<heddle_device_links>(HEDDLE_DEVICE_LINKS)->link(device.raw(), peer, &link));
  BOOST_TEST(link.size == sizeof link);
  BOOST_TEST(std::isfinite(link.bytes_per_second));
  BOOST_TEST(link.latency_seconds >= 0);
  return link;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_link_says_what_copies_can_do, *needs_link() * needs_two_devices()) {
  const Plugin plugin(settings().plugin);
  const TestDevice first(plugin, settings().options, 0), second(plugin, settings().options, 1);
  const bool visible = first.info().host_visible != 0;
  BOOST_TEST(link_of(first, nullptr).kind == (visible ? HEDDLE_LINK_SAME : HEDDLE_LINK_DIRECT));
  BOOST_TEST(link_of(first, first.raw()).kind == HEDDLE_LINK_SAME);
  const bool copies = first.desc().can_copy(first.raw(), second.raw()) != 0;
  const std::int32_t direct = visible ? HEDDLE_LINK_SAME : HEDDLE_LINK_DIRECT;
  const std::int32_t between = link_of(first, second.raw()).kind;
  // Kernels that read the other's memory are one thing more than copies.
  BOOST_TEST((between == (copies ? direct : HEDDLE_LINK_NONE) ||
              (copies && !visible && between == HEDDLE_LINK_PEER)));
  int foreign = 0;
  BOOST_TEST(link_of(first, reinterpret_cast<heddle_device*>(&foreign)).kind == HEDDLE_LINK_NONE);
}

BOOST_AUTO_TEST_CASE(time_passes_from_one_event_to_a_later_one, *needs_elapsed()) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  const auto& timing = *device.extension<heddle_device_timing>(HEDDLE_DEVICE_TIMING);
  const Event begin(device), middle(device), end(device), never(device);
  const std::vector<float> numbers(1 << 16, 1.0f);
  const std::size_t bytes = numbers.size() * sizeof(float);
  const TestDevice::Buffer memory(device, bytes);
  for (const Event* event : {&begin, &middle, &end}) {
    check(device.desc().record(device.stream(), event->raw));
    check(device.desc().copy(device.stream(), device.raw(), memory.memory, nullptr, numbers.data(),
                             bytes));
  }
  device.wait();
  const auto elapsed = [&](const Event& from, const Event& to) {
    double seconds = NAN;
    check(timing.elapsed(from.raw, to.raw, &seconds));
    return seconds;
  };
  BOOST_TEST(elapsed(begin, middle) > 0);
  BOOST_TEST(elapsed(middle, end) > 0);
  BOOST_TEST(elapsed(end, begin) < 0);
  BOOST_TEST(std::abs(elapsed(begin, middle) + elapsed(middle, end) - elapsed(begin, end)) < 1e-9);
  double seconds = 0;
  heddle_status* status = timing.elapsed(begin.raw, never.raw, &seconds);
  BOOST_TEST_REQUIRE((status != nullptr));
  BOOST_TEST(take(status).code == HEDDLE_INVALID_ARGUMENT);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
