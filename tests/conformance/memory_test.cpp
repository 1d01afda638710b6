// What gets into a device's memory: weights, and copies between devices. For any device plugin.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(devices)

namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(parts_of_a_weight_are_joined_and_cast_in_every_file_type) {
  const Plugin plugin(settings().plugin);
  const TestDevice bench(plugin, settings().options);
  Random random(settings().seed);
  for (heddle_dtype type :
       {HEDDLE_F32, HEDDLE_F16, HEDDLE_BF16, HEDDLE_F64, HEDDLE_F8_E4M3, HEDDLE_F8_E5M2}) {
    const HostTensor first = filled(random, HostTensor(type, {3, 5})),
                     second = filled(random, HostTensor::slice(type, {4, 5}, 2));
    const heddle_tensor_info whole = device::row_major(type, {7, 5});
    const auto offered = bench.weight_layout(HEDDLE_USE_VECTOR, whole);
    BOOST_TEST((offered || !settings().complete), "no vectors of " << device::dtype_name(type));
    if (!offered) continue;
    const heddle_weight_layout layout = *offered;
    BOOST_TEST(layout.info.dtype == HEDDLE_F32);
    BOOST_TEST(layout.bytes == 7u * 5u * 4u);
    const TestDevice::Buffer memory(bench, layout.bytes);
    const heddle_view parts[] = {
        {first.info(), const_cast<std::byte*>(first.memory().data()) + first.origin()},
        {second.info(), const_cast<std::byte*>(second.memory().data()) + second.origin()}};
    const heddle_view* pointers[] = {&parts[0], &parts[1]};
    check(bench.desc().make_weight(bench.raw(), bench.stream(), HEDDLE_USE_VECTOR, &layout, 2,
                                   pointers, memory.memory));
    float made[35];
    check(
        bench.desc().copy(bench.stream(), nullptr, made, bench.raw(), memory.memory, sizeof made));
    bench.wait();
    for (std::int64_t i = 0; i < 35; ++i) {
      const double expected = i < 15 ? first.get(i) : second.get(i - 15);
      BOOST_TEST(made[i] == static_cast<float>(expected), device::dtype_name(type)
                                                              << " element " << i);
    }
    // One part is missing.
    heddle_status* status = bench.desc().make_weight(bench.raw(), bench.stream(), HEDDLE_USE_VECTOR,
                                                     &layout, 1, pointers, memory.memory);
    BOOST_REQUIRE(status != nullptr);
    BOOST_TEST(mentions(take(status).message, "3 rows"));
  }
}

BOOST_AUTO_TEST_CASE(two_devices_copy_to_each_other_and_nobody_else, *needs_two_devices()) {
  const Plugin plugin(settings().plugin);
  const TestDevice first(plugin, settings().options, 0), second(plugin, settings().options, 1);
  BOOST_TEST(first.desc().can_copy(first.raw(), nullptr) == 1);
  BOOST_TEST(first.desc().can_copy(first.raw(), second.raw()) == 1);
  int foreign = 0;
  BOOST_TEST(first.desc().can_copy(first.raw(), reinterpret_cast<heddle_device*>(&foreign)) == 0);
  std::vector<float> numbers(1 << 19), back(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::size_t bytes = numbers.size() * sizeof(float);
  const TestDevice::Buffer here(first, bytes), there(second, bytes);
  check(
      first.desc().copy(first.stream(), first.raw(), here.memory, nullptr, numbers.data(), bytes));
  check(first.desc().copy(first.stream(), second.raw(), there.memory, first.raw(), here.memory,
                          bytes));
  check(first.desc().copy(first.stream(), nullptr, back.data(), second.raw(), there.memory, bytes));
  first.wait();
  BOOST_TEST((back == numbers));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
