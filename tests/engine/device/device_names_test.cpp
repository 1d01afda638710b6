// What people call a device by.
#include "engine/device/device_names.h"

#include <boost/test/unit_test.hpp>

using heddle::engine::DeviceNames;
using heddle::engine::named_by;
using heddle::engine::NamedBy;

namespace {

const DeviceNames kCard{"gpu:1", "gpu", "GPU-00112233-4455-6677-8899-aabbccddeeff", "0000:1b:00.0"};

bool is(NamedBy by, std::string_view selector) { return named_by(selector, kCard) == by; }

}  // namespace

BOOST_AUTO_TEST_SUITE(device_names)

BOOST_AUTO_TEST_CASE(a_device_is_named_by_ordinal_kind_uuid_and_pci_address) {
  BOOST_TEST(is(NamedBy::device, "gpu:1"));
  BOOST_TEST(is(NamedBy::kind, "gpu"));
  BOOST_TEST(is(NamedBy::all, "auto"));
  BOOST_TEST(is(NamedBy::device, "gpu-00112233-4455-6677-8899-AABBCCDDEEFF"));
  for (const char* address :
       {"0000:1b:00.0", "0000:1B:00.0", "00000000:1B:00.0", "1b:00.0", "1b:00"})
    BOOST_TEST(is(NamedBy::device, address), address);
}

BOOST_AUTO_TEST_CASE(what_names_another_device_or_nothing_names_not_this_one) {
  for (const char* other :
       {"gpu:2", "gpu:10", "cpu", "", "GPU-00112233", "GPU-00112233-4455-6677-8899-aabbccddeeff0",
        "0001:1b:00.0", "0000:1c:00.0", "0000:1b:01.0", "0000:1b:00.1", "1b", "1b:0", ":1b:00.0",
        "0000:1b:00.", "0000:1b:00.00", "0:0:1b:00.0", "AUTO"})
    BOOST_TEST(is(NamedBy::nothing, other), other);
  const DeviceNames plain{"cpu:0", "cpu"};
  BOOST_TEST((named_by("", plain) == NamedBy::nothing));
  BOOST_TEST((named_by("00:00.0", plain) == NamedBy::nothing));
}

BOOST_AUTO_TEST_CASE(of_what_is_said_the_narrowest_counts) {
  const std::map<std::string, int> said{{"auto", 1}, {"gpu", 2}, {"1b:00.0", 3}};
  BOOST_TEST(*heddle::engine::find_for(said, kCard) == 3);
  BOOST_TEST(*heddle::engine::find_for(said, {"gpu:0", "gpu"}) == 2);
  BOOST_TEST(*heddle::engine::find_for(said, {"cpu:0", "cpu"}) == 1);
  BOOST_TEST(heddle::engine::find_for<int>({{"gpu:0", 4}}, kCard) == nullptr);
  const std::map<std::string, int> both{{"0000:1b:00.0", 3}, {"gpu:1", 5}};
  BOOST_TEST(*heddle::engine::find_for(both, kCard) == 5);  // its own name
}

BOOST_AUTO_TEST_SUITE_END()
