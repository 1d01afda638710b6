// What a device is opened with. For any device plugin.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "needs.h"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(options)

BOOST_AUTO_TEST_CASE(unknown_options_are_refused_by_name) {
  const Plugin plugin(settings().plugin);
  for (const auto& [key, value, part] :
       {std::tuple{"thread", OptionValue{std::int64_t{1}}, "'thread'"},
        std::tuple{"compute", OptionValue{std::string("f13")}, "'f13'"},
        std::tuple{"compute", OptionValue{std::int64_t{3}}, "'compute'"}}) {
    const OptionRecord record({{key, value}});
    heddle_device* device = nullptr;
    heddle_status* status = plugin.device().open(mini_host(), 0, record.value(), &device);
    BOOST_REQUIRE(status != nullptr);
    const Reason reason = take(status);
    BOOST_TEST(reason.code == HEDDLE_INVALID_ARGUMENT);
    // Who has no such option names it.
    const bool names_option =
        !settings().complete && reason.message.find("'compute'") != std::string::npos;
    BOOST_TEST((names_option || reason.message.find(part) != std::string::npos), reason.message);
  }
}

BOOST_AUTO_TEST_CASE(devices_that_share_the_cores_have_each_a_fair_part_of_them,
                     *needs_threads() * needs_option("share_count", std::int64_t{2})) {
  const Plugin plugin(settings().plugin);
  const std::uint32_t cores = TestDevice(plugin, {}).info().threads;
  const OptionRecord alone({{"share_index", OptionValue{std::int64_t{1}}}});
  heddle_device* none = nullptr;
  heddle_status* const status = plugin.device().open(mini_host(), 0, alone.value(), &none);
  BOOST_TEST_REQUIRE((status != nullptr));
  BOOST_TEST(take(status).message.find("'share_index' is 1") != std::string::npos);
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
    std::uint32_t sum = 0, before = cores;
    for (std::int64_t index = 0; index < count; ++index) {
      const TestDevice device(plugin, {{"share_index", index}, {"share_count", count}});
      const std::uint32_t threads = device.info().threads;
      BOOST_TEST(threads >= 1u);
      BOOST_TEST(threads <= before, "a later share is larger");
      BOOST_TEST(threads * static_cast<std::uint32_t>(count) + static_cast<std::uint32_t>(count) >
                 cores);
      before = threads;
      sum += threads;
    }
    BOOST_TEST(sum == std::max(cores, static_cast<std::uint32_t>(count)));
  }
  // A number of threads that was asked for is not divided.
  BOOST_TEST(TestDevice(plugin, {{"threads", std::int64_t{3}},
                                 {"share_index", std::int64_t{1}},
                                 {"share_count", std::int64_t{2}}})
                 .info()
                 .threads == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
