// Weights that pass through pinned buffers on their way to a device: how few buffers do, who fills
// them, and what is left of them when something fails or nobody comes.
#include <boost/test/unit_test.hpp>
#include <future>
#include <numeric>
#include <thread>

#include "tests/engine/memory/host_fixture.h"

using namespace heddle;

namespace {

constexpr std::uint64_t kUnit = 32 << 10;
constexpr std::size_t kCount = 24;
constexpr std::uint64_t kStaging = std::uint64_t{12} << 20;  // of a device

// As those of a model: many large ones of a few sizes in no order, some small ones between.
std::vector<std::uint64_t> sizes() {
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < kCount; ++i)
    sizes.push_back(kUnit * std::array<std::uint64_t, 7>{38, 2, 94, 57, 1, 75, 19}[i % 7]);
  return sizes;
}

struct Staging : test::HostFixture {
  std::uint64_t bytes() const {
    const std::vector<std::uint64_t> all = sizes();
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  }

  // Asks for all of them as a store of weights does: each is copied from, and released by an event.
  // The number of those that were wrong, here or on the device.
  std::size_t load(std::size_t reader, const std::vector<engine::FilePart>& parts) {
    const auto& device = fake(reader);
    engine::Stream stream(*device);
    std::vector<std::shared_ptr<engine::HostLease>> leases;
    std::size_t wrong = 0;
    for (const engine::FilePart& one : parts) {
      leases.push_back(get(one, device));
      wrong += is_right(*leases.back(), one) ? 0 : 1;
      const test::DeviceBuffer target(*device, one.bytes / 4);
      device->copy(stream, device.get(), target.data(), nullptr, leases.back()->data(0), one.bytes);
      engine::Event copied(*device);
      stream.record(copied);
      leases.back()->end_with(std::move(copied));
      stream.synchronize();
      wrong += std::memcmp(target.read().data(), content.data() + one.offset, one.bytes) != 0;
    }
    return wrong;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(host_staging, Staging)

BOOST_AUTO_TEST_CASE(a_few_buffers_do_for_weights_of_many_sizes) {
  write_sizes(sizes(), 300);
  for (const auto& [readers, copiers] : {std::pair{0u, 0u}, {0u, 4u}, {2u, 0u}, {2u, 4u}}) {
    const std::uint64_t before = control->pinned_allocations(0);
    make(engine::HostBudget::kUnlimited, kStaging, kStaging, readers, copiers);
    for (int round = 0; round < 3; ++round) {
      const engine::Expectation once = host->expect(all(), engine::UseOrder::once, fake());
      BOOST_TEST(load(0, all()) == 0u);
    }
    // Four of 94 units are what the bytes allow, and of small ones there are eight at most.
    BOOST_TEST(control->pinned_allocations(0) - before <= 12u);
    // Where nothing is read ahead, one of either size.
    if (readers == 0) BOOST_TEST(control->pinned_allocations(0) - before == 2u);
    BOOST_TEST(control->pinned_peak_bytes(0) <= kStaging);
    BOOST_TEST(host->report().read_first == bytes());
    BOOST_TEST(host->report().read_again == 0u);
  }
}

BOOST_AUTO_TEST_CASE(two_devices_that_load_the_same_read_it_once) {
  write_sizes(sizes());
  std::uint64_t alone = 0;
  for (const bool is_together : {false, true}) {
    const std::uint64_t before = control->pinned_allocations(0) + control->pinned_allocations(1);
    make(engine::HostBudget::kUnlimited, 2 * kStaging, 2 * kStaging, 2, 4, 2);
    for (int round = 0; round < 2; ++round) {
      std::vector<engine::Expectation> once;
      for (const std::size_t d : {0, 1})
        once.push_back(host->expect(all(), engine::UseOrder::once, fake(d)));
      if (is_together) {  // one thread, as a session has, brings each of them to both
        for (const engine::FilePart& one : all())
          for (const std::size_t d : {0, 1}) BOOST_TEST(load(d, {one}) == 0u);
      } else {
        auto other = std::async(std::launch::async, [&] { return load(1, all()); });
        BOOST_TEST(load(0, all()) == 0u);
        BOOST_TEST(other.get() == 0u);
      }
    }
    BOOST_TEST(control->pinned_allocations(0) + control->pinned_allocations(1) - before <= 24u);
    // Its share, and a small one where that is full of large ones.
    for (const std::uint32_t d : {0, 1})
      BOOST_TEST(control->pinned_peak_bytes(d) <= kStaging + (1 << 20));
    // Of those who come one after another the second finds the buffers of the first.
    if (is_together) BOOST_TEST(control->pinned_allocations(1) == alone);
    alone = control->pinned_allocations(1);
    BOOST_TEST(host->report().read_first == bytes());
    BOOST_TEST(host->report().read_again == 0u);
  }
}

BOOST_AUTO_TEST_CASE(what_has_passed_to_a_device_is_there_for_those_that_read_the_mapping) {
  write_sizes(sizes(), 40);
  make(engine::HostBudget::kUnlimited, kStaging, kStaging, 2, 2);
  const engine::Expectation once = host->expect(all(), engine::UseOrder::once, fake());
  BOOST_TEST(load(0, all()) == 0u);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto lease = get(part(i), cpu());
    BOOST_TEST(lease->data(0) == checkpoint->at(std::to_string(i)).data.data());
    BOOST_TEST(is_right(*lease, part(i)));
  }
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_not_read_completely_is_told_to_each_who_asks) {
  write_sizes(sizes());
  for (const unsigned threads : {0u, 2u}) {
    make(engine::HostBudget::kUnlimited, 2 * kStaging, 2 * kStaging, threads, 2 * threads, 2);
    const std::uintmax_t whole = std::filesystem::file_size(path);
    std::filesystem::resize_file(path, part(20).offset + part(20).bytes / 2);
    std::vector<engine::Expectation> once;
    for (const std::size_t d : {0, 1})
      once.push_back(host->expect(all(), engine::UseOrder::once, fake(d)));
    for (std::size_t i = 0; i < kCount; ++i)
      for (const std::size_t d : {0, 1, 0}) {
        if (i < 20) {
          BOOST_TEST(use(i, fake(d)));
          continue;
        }
        const engine::Error error = test::error_of([&] { get(part(i), fake(d)); });
        BOOST_TEST((error.code() == engine::Code::io), error.what());
        BOOST_TEST(std::string(error.what()).find(path.string()) == 0u, error.what());
      }
    once.clear();
    host.reset();
    BOOST_TEST(room->held() == 0u);
    BOOST_TEST(control->pinned_bytes(0) + control->pinned_bytes(1) == 0u);
    std::filesystem::resize_file(path, whole);
    write_sizes(sizes());
  }
}

BOOST_AUTO_TEST_CASE(buffers_that_nobody_comes_for_are_given_back) {
  write_sizes(sizes());
  make(engine::HostBudget::kUnlimited, kStaging, kStaging, 2, 2);
  for (std::size_t round = 0; round < 60; ++round) {
    engine::Expectation once = host->expect(all(), engine::UseOrder::once, fake(), note_reads());
    const std::size_t i = round % kCount;  // leaves out those before
    if (round % 3 != 0) BOOST_TEST(use(i, fake()));
    if (round % 3 == 1) BOOST_TEST(load(1, {part((i + 5) % kCount)}) == 0u);
    once.end();
    if (round % 4 == 0) host->evict(engine::HostBudget::kUnlimited);
    if (round % 4 == 0) BOOST_TEST(room->held() == 0u);
    if (round % 4 == 0) BOOST_TEST(control->pinned_bytes(0) + control->pinned_bytes(1) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_pinned_is_done_without) {
  write_sizes(sizes());
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    make(engine::HostBudget::kUnlimited, kStaging, kStaging, 2, 2);
    control->fail_pinned(0, nth);
    const engine::Expectation once = host->expect(all(), engine::UseOrder::once, fake());
    BOOST_TEST(load(0, all()) == 0u);
    BOOST_TEST(host->report().read_first == bytes());
    BOOST_TEST(host->report().read_again == 0u);
  }
}

BOOST_AUTO_TEST_CASE(loading_threads_with_buffers_of_two_devices_keep_to_the_limit) {
  write_sizes(sizes(), 500);
  // All of it at once, or a few of them, and reading past the kernel's copies.
  for (const std::uint64_t limit : {bytes() + 3 * kStaging, std::uint64_t{16} << 20}) {
    make(limit, kStaging, kStaging, 2, 3, 2);
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      std::vector<engine::FilePart> order;
      for (int i = 0; i < 25; ++i)
        order.push_back(part(random() % kCount, random() % 8, 8 + random() % 9));
      const engine::Expectation once =
          host->expect(order, random() % 4 == 0 ? engine::UseOrder::cyclic : engine::UseOrder::once,
                       fake(seed % 2));
      return load(seed % 2, order);
    };
    std::vector<std::future<std::size_t>> working;
    for (unsigned seed = 0; seed < 4; ++seed)
      working.push_back(std::async(std::launch::async, work, seed));
    for (auto& one : working) BOOST_TEST(one.get() == 0u);
    BOOST_TEST(host->report().peak <= limit);
    host.reset();
    BOOST_TEST(room->held() == 0u);
  }
}

// Buffers that smaller weights have left do not keep out those that larger ones need.
BOOST_AUTO_TEST_CASE(what_comes_next_is_read_ahead_behind_smaller_weights) {
  std::vector<std::uint64_t> sizes(8, 60 * kUnit);
  sizes.insert(sizes.end(), 3, 100 * kUnit);
  write_sizes(sizes, 300);
  make(engine::HostBudget::kUnlimited, kStaging, kStaging, 2, 4);
  const std::vector<engine::FilePart> parts = all();
  const std::vector<engine::FilePart> small(parts.begin(), parts.begin() + 8),
      large(parts.begin() + 8, parts.end());
  {
    const engine::Expectation once = host->expect(small, engine::UseOrder::once, fake());
    BOOST_TEST(load(0, small) == 0u);
  }
  const engine::Expectation once = host->expect(large, engine::UseOrder::once, fake());
  const std::uint64_t all_bytes = 8 * 60 * kUnit + 3 * 100 * kUnit;
  for (int i = 0; i < 2000 && host->report().read_first < all_bytes; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  BOOST_TEST(host->report().read_first == all_bytes);  // and nobody has asked
  BOOST_TEST(load(0, large) == 0u);
  BOOST_TEST(control->pinned_peak_bytes(0) <= kStaging);
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
