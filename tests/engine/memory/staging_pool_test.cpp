#include "engine/memory/staging_pool.h"

#include "tests/engine/memory/host_fixture.h"

namespace {

using namespace heddle;

struct StagingFixture : test::HostFixture {
  engine::HostMonitor monitor;
  engine::HostBudget budget{100 << 10};
  engine::StagingPool pool{monitor, budget, {96 << 10, 64 << 10, 2}};
  engine::HostMonitor::Lock lock{monitor.mutex};
  bool refused = false;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(staging_pool, StagingFixture)

BOOST_AUTO_TEST_CASE(a_buffer_that_is_out_of_use_is_used_again_where_it_is_large_enough) {
  pool.set_idle(lock, pool.make(lock, fake(), 32 << 10, refused));
  pool.set_idle(lock, pool.make(lock, fake(), 16 << 10, refused));
  BOOST_TEST(pool.take_idle(*fake(1), 1, engine::StagingPool::kAnySize) == nullptr);
  BOOST_TEST(pool.take_idle(*fake(), 33 << 10, engine::StagingPool::kAnySize) == nullptr);
  BOOST_TEST(pool.take_idle(*fake(), 1, 15 << 10) == nullptr);
  auto small = pool.take_idle(*fake(), 1, engine::StagingPool::kAnySize);
  BOOST_TEST_REQUIRE(small != nullptr);
  BOOST_TEST(small->bytes() == 16u << 10);  // the smallest that does
  BOOST_TEST(pool.supply(*fake(), 1, engine::StagingPool::kAnySize).count == 2u);
  pool.free(lock, std::move(small));
}

BOOST_AUTO_TEST_CASE(what_is_pinned_stays_within_both_limits_and_is_given_back) {
  BOOST_TEST(pool.share() == 32u << 10);
  BOOST_TEST(pool.most_pinned() == 32u << 10);
  auto copy = pool.make_copy(lock, fake(), *budget.reserve(20 << 10));
  BOOST_TEST(!pool.can_pin_copy(13 << 10));
  BOOST_TEST(pool.can_pin_copy(12 << 10));
  pool.set_idle(lock, pool.make(lock, fake(), 60 << 10, refused));
  BOOST_TEST(!pool.fits(5 << 10));
  BOOST_TEST(pool.can_pin_copy(12 << 10));  // buffers have a part of their own
  BOOST_TEST(pool.pinned() == 80u << 10);
  BOOST_TEST(budget.held() == 80u << 10);
  BOOST_TEST(pool.make(lock, fake(), 30 << 10, refused) == nullptr);  // the host has no room
  BOOST_TEST(!refused);
  BOOST_TEST(pool.free_one(lock));
  BOOST_TEST(!pool.free_one(lock));
  pool.forget_copy(*copy);
  copy.reset();
  BOOST_TEST(pool.pinned() == 0u);
  BOOST_TEST(budget.held() == 0u);
}

BOOST_AUTO_TEST_CASE(memory_that_the_device_refuses_is_not_counted) {
  control->fail_pinned(0, 1);
  BOOST_TEST(pool.make(lock, fake(), 32 << 10, refused) == nullptr);
  BOOST_TEST(refused);
  BOOST_TEST(pool.pinned() == 0u);
  BOOST_TEST(budget.held() == 0u);
  BOOST_TEST(pool.supply(*fake(), 1, engine::StagingPool::kAnySize).bytes == 0u);
  BOOST_TEST(lock.owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()
