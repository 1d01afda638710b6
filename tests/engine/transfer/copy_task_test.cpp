// Bytes from device to device, by each way there is.
#include "engine/transfer/copy_task.h"

#include <boost/test/unit_test.hpp>

#include "tests/fake_device/fake_fixture.h"

using namespace heddle;

namespace {

// As far as the copies that were enqueued tell, for `bytes` that cross twice.
void check_way(const std::string& options, engine::Route route, std::uint64_t direct,
               std::uint64_t by_host) {
  const test::Fakes fakes(options, 2);
  const test::DeviceBuffer source(fakes.device(0), 96), target(fakes.device(1), 96);
  BOOST_TEST((engine::find_route(&fakes.device(0), &fakes.device(1)) == route));
  engine::CopyTask copy_task(fakes.state(0), &fakes.state(1), source.data(), target.data(),
                             source.bytes());
  for (const double value : {3.0, 5.0}) {
    fakes.state(0).with_stream(
        [&](engine::Stream& stream) { test::fill(fakes, stream, source, value); });
    copy_task.start();
    BOOST_TEST(copy_task.is_under_way());
    copy_task.await();
    BOOST_TEST(!copy_task.is_under_way());
    fakes.state(1).synchronize();
    BOOST_TEST(copy_task.arrived());
    BOOST_TEST(target.read() == std::vector<float>(96, float(value)),
               boost::test_tools::per_element());
  }
  const std::uint64_t both = 2 * source.bytes(),
                      read = both;  // target.read() copies to the host, too
  BOOST_TEST(fakes.control()->bytes_copied(0, 1) == direct * both);
  BOOST_TEST(fakes.control()->bytes_copied(0, HEDDLE_FAKE_HOST) == by_host * both);
  BOOST_TEST(fakes.control()->bytes_copied(HEDDLE_FAKE_HOST, 1) == by_host * both);
  BOOST_TEST(fakes.control()->bytes_copied(1, HEDDLE_FAKE_HOST) == read);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(copy_task)

BOOST_AUTO_TEST_CASE(devices_that_reach_each_other_copy_once) {
  check_way("{}", engine::Route::direct, 1, 0);
}

BOOST_AUTO_TEST_CASE(others_copy_by_way_of_the_host) {
  check_way(R"({"peer": false})", engine::Route::staged, 0, 1);
}

BOOST_AUTO_TEST_CASE(the_host_is_an_end_like_a_device) {
  const test::Fakes fakes;
  BOOST_TEST((engine::find_route(nullptr, nullptr) == engine::Route::same));
  BOOST_TEST((engine::find_route(nullptr, &fakes.device()) == engine::Route::from_host));
  BOOST_TEST((engine::find_route(&fakes.device(), nullptr) == engine::Route::to_host));
  const test::DeviceBuffer source(fakes.device(), 96);
  std::vector<float> target(96);
  fakes.state().with_stream([&](engine::Stream& stream) { test::fill(fakes, stream, source, 7); });
  engine::CopyTask copy_task(fakes.state(), nullptr, source.data(),
                             reinterpret_cast<std::byte*>(target.data()), source.bytes());
  copy_task.start();
  copy_task.await();  // of the host: waits
  BOOST_TEST(target == std::vector<float>(96, 7.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
