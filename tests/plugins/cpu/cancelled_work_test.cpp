// Work of a stream that nobody wants any more: what has not begun is left out, and a loop stops
// behind the tiles that its threads are at. Nothing of this is a failure.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>

#include "engine/device/cancel_flag.h"
#include "plugins/cpu/pool.h"
#include "plugins/cpu/stream.h"

using namespace heddle;
using cpu::EventState;
using cpu::Pool;
using cpu::Scratch;
using cpu::Stream;
using cpu::Work;

BOOST_AUTO_TEST_SUITE(cancelled_work)

namespace {

void finish(Stream& stream) {
  const auto done = std::make_shared<EventState>();
  stream.record(done);
  BOOST_TEST((done->wait(done->expected()) == nullptr));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_loop_stops_behind_the_tiles_that_have_begun) {
  for (const unsigned threads : {1u, 3u}) {
    Pool pool(threads);
    Stream stream(pool, "cpu:0");
    const engine::CancelFlagRef flag = engine::CancelFlag::make();
    constexpr std::int64_t kTiles = 100'000;
    std::atomic<std::int64_t> begun{0}, begun_after{0};
    std::atomic<bool> came_back{false}, ran_behind{false}, ran_later{false};
    stream.set_cancel(device::Cancel(flag.get()));
    stream.enqueue({"loop", nullptr}, Work([&](Stream& self) {
                     self.parallel_for(kTiles, [&](std::int64_t, Scratch&) {
                       if (flag->is_set()) ++begun_after;
                       if (++begun == 4) flag->set();
                     });
                     came_back = true;
                   }));
    stream.enqueue({"behind", nullptr}, Work([&](Stream&) { ran_behind = true; }));
    stream.set_cancel({});
    stream.enqueue({"later", nullptr}, Work([&](Stream& self) {
                     self.parallel_for(10, [&](std::int64_t, Scratch&) { ran_later = true; });
                   }));
    finish(stream);
    BOOST_TEST(begun >= 4);
    BOOST_TEST(begun_after < std::int64_t(threads));  // each had looked before it was set
    if (threads == 1) BOOST_TEST(begun == 4);
    BOOST_TEST(!came_back);  // what a kernel does behind its loop would read what was not written
    BOOST_TEST(!ran_behind);
    BOOST_TEST(ran_later);
    BOOST_TEST(flag->was_obeyed());
  }
}

BOOST_AUTO_TEST_CASE(a_tile_that_takes_long_can_ask) {
  Pool pool(2);
  Stream stream(pool, "cpu:0");
  const engine::CancelFlagRef flag = engine::CancelFlag::make();
  std::atomic<int> rows{0};
  stream.set_cancel(device::Cancel(flag.get()));
  stream.enqueue({"rows", nullptr}, Work([&](Stream& self) {
                   self.parallel_for(1, [&](std::int64_t, Scratch&) {
                     for (int row = 0; row < 1000; ++row) {
                       self.check_wanted();
                       if (++rows == 10) flag->set();
                     }
                   });
                 }));
  finish(stream);
  BOOST_TEST(rows == 10);
  BOOST_TEST(flag->was_obeyed());
}

BOOST_AUTO_TEST_CASE(work_that_was_done_before_is_not_counted_as_left_out) {
  Pool pool(1);
  Stream stream(pool, "cpu:0");
  const engine::CancelFlagRef flag = engine::CancelFlag::make();
  bool ran = false;
  stream.set_cancel(device::Cancel(flag.get()));
  stream.enqueue({"work", nullptr}, Work([&](Stream&) { ran = true; }));
  finish(stream);
  flag->set();
  finish(stream);
  BOOST_TEST(ran);
  BOOST_TEST(!flag->was_obeyed());
}

BOOST_AUTO_TEST_SUITE_END()
