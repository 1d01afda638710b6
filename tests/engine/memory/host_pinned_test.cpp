// Pinned memory: its limit, what passes through when it is full, and what happens when there is
// none.
#include <boost/test/unit_test.hpp>

#include "tests/engine/memory/host_fixture.h"

using namespace heddle;

BOOST_FIXTURE_TEST_SUITE(host_pinned, test::HostFixture)

BOOST_AUTO_TEST_CASE(beyond_the_pinned_limit_bytes_pass_through_buffers) {
  write(8);
  make(1 << 20, 5 * kPart, 2 * kPart);
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(use(i, fake()));
  BOOST_TEST(control->pinned_peak_bytes(0) <= 5 * kPart);
  BOOST_TEST(control->pinned_bytes(0) ==
             4 * kPart);  // three copies, and the one buffer that was needed at a time
  BOOST_TEST(host->report().pinned == 4 * kPart);
  BOOST_TEST(host->report().held == 8 * kPart + kPart);  // five are pages of the file
  BOOST_TEST(host->report().read_first == 8 * kPart);
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(a_buffer_is_used_again_when_the_copy_from_it_has_passed) {
  write(6);
  make(1 << 20, 2 * kPart, 2 * kPart);
  engine::Stream stream(*fake());
  const test::DeviceBuffer target(*fake(), kPart / 4);
  std::vector<std::shared_ptr<engine::HostLease>> leases;
  for (std::size_t i = 0; i < 6; ++i) {
    leases.push_back(get(part(i), fake()));
    BOOST_TEST(is_right(*leases.back(), part(i)));
    fake()->copy(stream, fake().get(), target.data(), nullptr, leases.back()->data(0), kPart);
    engine::Event copied(*fake());
    stream.record(copied);
    leases.back()->end_with(std::move(copied));
  }
  stream.synchronize();
  BOOST_TEST(control->pinned_peak_bytes(0) <= 2 * kPart);
  const std::vector<float> last = target.read();
  BOOST_TEST(std::memcmp(last.data(), content.data() + part(5).offset, kPart) == 0);
}

BOOST_AUTO_TEST_CASE(without_a_free_buffer_plain_memory_does) {
  write(3);
  make(1 << 20, kPart, kPart);
  const auto first = get(part(0), fake()), second = get(part(1), fake());
  BOOST_TEST(control->pinned_bytes(0) == kPart);
  BOOST_TEST(second->data(0) == checkpoint->at("1").data.data());
  BOOST_TEST(is_right(*first, part(0)));
  BOOST_TEST(is_right(*second, part(1)));
}

BOOST_AUTO_TEST_CASE(where_no_memory_can_be_pinned_plain_memory_does) {
  for (const std::uint64_t nth : {1, 2, 3, 4, 5}) {
    write(4);
    make(1 << 20, 3 * kPart, kPart);
    control->fail_pinned(0, nth);
    for (int round = 0; round < 2; ++round)
      for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(use(i, fake()));
    BOOST_TEST(host->report().read_again == 0u);
    BOOST_TEST(host->report().pinned == control->pinned_bytes(0));
    BOOST_TEST(host->report().held >= 4 * kPart);
    host.reset();
    BOOST_TEST(control->pinned_bytes(0) == 0u);
    BOOST_TEST(room->held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(who_waits_for_memory_that_cannot_be_pinned_gets_plain_memory) {
  write(4);
  const std::vector<engine::FilePart> parts = all();
  for (std::uint64_t round = 0; round < 200; ++round) {
    make(1 << 20, 4 * kPart, 0, 2);
    control->fail_pinned(0, round % 4 + 1);
    engine::Expectation expected = host->expect(parts, engine::UseOrder::once, fake());
    for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(use(i, fake()));
    expected.end();
    host.reset();
    BOOST_TEST(control->pinned_bytes(0) == 0u);
    BOOST_TEST(room->held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_pinned_where_nothing_may_be) {
  write(4);
  make(1 << 20);
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(use(i, fake()));
  BOOST_TEST(control->pinned_peak_bytes(0) == 0u);
  BOOST_TEST(host->report().held == 4 * kPart);
}

BOOST_AUTO_TEST_CASE(buffers_go_when_weights_need_their_room) {
  write(4);
  make(3 * kPart, 2 * kPart, 2 * kPart);
  BOOST_TEST(use(0, fake()));
  BOOST_TEST(host->report().pinned == kPart);
  const auto a = get(part(1), cpu()), b = get(part(2), cpu()), c = get(part(3), cpu());
  BOOST_TEST(host->report().pinned == 0u);
  BOOST_TEST(host->report().peak == 3 * kPart);
}

BOOST_AUTO_TEST_SUITE_END()
