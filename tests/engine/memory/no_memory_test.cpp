// Threads of the engine for which there is no memory: whoever waits for their work is told, or does
// it himself.
#include "tests/support/failing_new.h"

#include "tests/engine/memory/host_fixture.h"

using namespace heddle;
using test::FailingNew;

BOOST_FIXTURE_TEST_SUITE(no_memory, test::HostFixture)

namespace {

constexpr std::size_t kParts = 6;

// All parts twice, in their order. False: somebody was told that memory is out.
bool read_all(test::HostFixture& on, const std::shared_ptr<const engine::Device>& reader) {
  bool is_whole = true;
  const engine::Expectation expected = on.host->expect(on.all(), engine::UseOrder::cyclic, reader);
  for (std::size_t i = 0; i < 2 * kParts; ++i) {
    try {
      BOOST_TEST(on.use(i % kParts, reader));
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::out_of_memory), error.what());
      is_whole = false;
    }
  }
  return is_whole;
}

// What a reader began while memory was out may be told to the next one who asks, once.
bool is_read_whole(test::HostFixture& on, const std::shared_ptr<const engine::Device>& reader) {
  return read_all(on, reader) || read_all(on, reader);
}

}  // namespace

BOOST_AUTO_TEST_CASE(readers_without_any_memory_leave_the_reading_to_those_who_ask) {
  write(kParts);
  make(3 * kPart, 0, 0, 2);
  {
    const FailingNew failing(0, FailingNew::kAll);
    read_all(*this, cpu());
    // On a busy machine whoever asks may have done it all before a reader had its turn.
    for (int i = 0; HEDDLE_FAILING_NEW != 0 && FailingNew::failures() == 0 && i < 10'000; ++i)
      read_all(*this, cpu());
    if (HEDDLE_FAILING_NEW != 0) BOOST_TEST(FailingNew::failures() > 0);
  }
  BOOST_TEST(is_read_whole(*this, cpu()));
  host.reset();
  BOOST_TEST(room->held() == 0u);
}

BOOST_AUTO_TEST_CASE(whatever_allocation_of_a_reader_fails_the_next_reading_is_whole) {
  write(kParts);
  for (const bool is_pinned : {false, true}) {
    const auto reader = is_pinned ? fake() : cpu();
    for (int nth = 0; nth < 40; ++nth)
      for (const int count : {1, 7}) {
        make(4 * kPart, is_pinned ? 3 * kPart : 0, is_pinned ? kPart : 0, 2, is_pinned ? 1 : 0);
        {
          const FailingNew failing(nth, count);
          read_all(*this, reader);
        }
        BOOST_TEST(is_read_whole(*this, reader));
        host.reset();
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
