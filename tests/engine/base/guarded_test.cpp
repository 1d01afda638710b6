#include "engine/base/guarded.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <thread>
#include <vector>

using namespace heddle::engine;

namespace {

class Counter {
 public:
  void increment() {
    const MutexLock lock(mutex_);
    ++count_;
  }
  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  int count_ HEDDLE_GUARDED_BY(mutex_) = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(guarded_test)

BOOST_AUTO_TEST_CASE(two_threads_lose_no_update_of_a_guarded_value) {
  Guarded<std::vector<int>> numbers;
  {
    const auto work = [&] {
      for (int i = 0; i < 1000; ++i) numbers.lock()->push_back(i);
    };
    std::jthread a(work), b(work);
  }
  BOOST_TEST(numbers.lock()->size() == 2000u);
}

BOOST_AUTO_TEST_CASE(two_threads_lose_no_update_under_a_mutex) {
  Counter counter;
  {
    const auto work = [&] {
      for (int i = 0; i < 1000; ++i) counter.increment();
    };
    std::jthread a(work), b(work);
  }
  BOOST_TEST(counter.count() == 2000);
}

BOOST_AUTO_TEST_CASE(waiting_gives_the_lock_up_until_the_condition_holds) {
  Guarded<int> value(1);
  std::condition_variable changed;
  std::jthread other([&] {
    *value.lock() = 2;
    changed.notify_one();
  });
  auto locked = value.lock();
  locked.wait(changed, [](int v) { return v == 2; });
  BOOST_TEST(*locked == 2);
}

BOOST_AUTO_TEST_CASE(guarded_value_may_be_move_only_and_read_as_const) {
  const Guarded<std::unique_ptr<int>> value(std::make_unique<int>(5));
  BOOST_TEST(**value.lock() == 5);
}

BOOST_AUTO_TEST_SUITE_END()
