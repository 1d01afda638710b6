#include "engine/base/growing_vector.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

using heddle::engine::GrowingVector;

BOOST_AUTO_TEST_SUITE(growing_vector)

BOOST_AUTO_TEST_CASE(elements_stay_where_they_are) {
  GrowingVector<int> numbers(3);
  std::vector<int*> places;
  for (int i = 0; i < 1000; ++i) {
    if (i >= 3) numbers.add();
    numbers[std::size_t(i)] = i;
    places.push_back(&numbers[std::size_t(i)]);
  }
  BOOST_TEST(numbers.size() == 1000u);
  for (int i = 0; i < 1000; ++i) {
    BOOST_TEST(*places[std::size_t(i)] == i);
    BOOST_TEST(places[std::size_t(i)] == &numbers[std::size_t(i)]);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_moved_is_added_empty) {
  GrowingVector<std::atomic<bool>> flags;
  for (int i = 0; i < 200; ++i) flags.add_empty();
  BOOST_TEST(!flags[199]);
  flags[199] = true;
  BOOST_TEST(flags[199]);
  BOOST_TEST(!flags[198]);
}

// Whoever has learned of an element reads it without a lock, while others are added.
BOOST_AUTO_TEST_CASE(others_read_while_it_grows) {
  GrowingVector<int> numbers(1);
  std::atomic<int> known{1};
  std::atomic<bool> is_wrong{false};
  std::thread reader([&] {
    for (int seen = 0; seen < 500;) {
      seen = known.load(std::memory_order_acquire);
      for (int i = 1; i < seen; ++i)
        if (numbers[std::size_t(i)] != i) is_wrong = true;
    }
  });
  for (int i = 1; i < 500; ++i) {
    numbers.add(i);
    known.store(i + 1, std::memory_order_release);
  }
  reader.join();
  BOOST_TEST(!is_wrong);
}

BOOST_AUTO_TEST_SUITE_END()
