// Host tensors count in a ledger as long as anybody has their memory.
#include "engine/memory/host_tensor.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "tests/support/refusal.h"

using namespace heddle::engine;

namespace {

constexpr std::uint64_t kKiB = 1 << 10;

heddle_tensor_info bytes_info(std::uint64_t bytes) {
  return checked_info(make_info(HEDDLE_U8, std::array<std::int64_t, 1>{std::int64_t(bytes)}),
                      "tensor");
}

std::shared_ptr<Ledger> host(std::uint64_t budget) {
  return std::make_shared<Ledger>("host", Ledger::Limits{.budget = budget});
}

std::uint64_t values_in(const Ledger& ledger) {
  std::uint64_t bytes = 0;
  for (const LedgerReport::Line& line : ledger.report().held)
    if (line.kind == MemoryKind::values) bytes += line.bytes;
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_tensor)

BOOST_AUTO_TEST_CASE(counts_until_the_last_view_of_its_memory_goes) {
  const auto ledger = host(kKiB);
  Tensor whole = make_host_tensor(bytes_info(600), ledger);
  BOOST_TEST(values_in(*ledger) == 600u);
  BOOST_TEST(ledger->report().taken == 600u);
  Tensor part = view(whole, bytes_info(10), 5);
  whole = {};
  BOOST_TEST(values_in(*ledger) == 600u);
  part = {};
  BOOST_TEST(values_in(*ledger) == 0u);
  BOOST_TEST(ledger->report().taken == 0u);
  BOOST_TEST(ledger->report().peak == 600u);
}

BOOST_AUTO_TEST_CASE(outlives_whoever_had_the_ledger) {
  auto ledger = host(kKiB);
  const std::weak_ptr<Ledger> seen = ledger;
  Tensor tensor = make_host_tensor(bytes_info(600), ledger);
  ledger.reset();
  BOOST_TEST(!seen.expired());
  tensor = {};
  BOOST_TEST(seen.expired());
}

BOOST_AUTO_TEST_CASE(is_refused_with_the_ledger_and_lets_others_go_before) {
  const auto ledger = host(kKiB);
  Tensor kept = make_host_tensor(bytes_info(600), ledger);
  BOOST_TEST(!try_make_host_tensor(bytes_info(600), ledger));
  const Error error = heddle::test::refusal_of([&] { make_host_tensor(bytes_info(600), ledger); });
  BOOST_TEST((error.code() == Code::out_of_memory));
  const std::string reason = error.what();
  for (const char* part : {"out of memory on host", "wanted 600 B", "u8", "values 600 B"})
    BOOST_TEST(reason.find(part) != std::string::npos, reason);
  ledger->on_shortage(EvictionOrder::free_chunks, &kept, [&](std::uint64_t) { kept = {}; });
  const Tensor next = make_host_tensor(bytes_info(600), ledger);
  BOOST_TEST(!kept);
  BOOST_TEST(ledger->report().taken == 600u);
  ledger->remove_evict_callback(&kept);
}

BOOST_AUTO_TEST_CASE(takes_of_a_claim_first) {
  const auto ledger = host(kKiB);
  Reservation claim = ledger->reserve(kKiB, "all of it");
  BOOST_TEST(!try_make_host_tensor(bytes_info(1), ledger));
  const Tensor tensor = make_host_tensor(bytes_info(1000), ledger, &claim);
  BOOST_TEST(claim.left() == 24u);
  claim.release();
  BOOST_TEST(ledger->available() == 24u);
}

BOOST_AUTO_TEST_CASE(of_small_size_asks_the_driver_nothing) {
  double seconds = 0;
  const auto ledger = std::make_shared<Ledger>(
      "host", Ledger::Limits{.poll_seconds = 2, .now = [&] { return seconds; }},
      [] { return std::uint64_t{1} << 30; });
  for (int i = 0; i < 10; ++i, seconds += 10) make_host_tensor(bytes_info(4 * kKiB), ledger);
  BOOST_TEST(ledger->polls() == 0u);
  make_host_tensor(bytes_info(1024 * kKiB), ledger);
  BOOST_TEST(ledger->polls() == 1u);
}

BOOST_AUTO_TEST_CASE(made_and_let_go_by_many_threads_stays_within_the_budget) {
  constexpr int kThreads = 4, kRounds = 2000;
  const auto ledger = host(64 * kKiB);
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::array<Tensor, 4> own;
      for (int i = 0; i < kRounds; ++i) {
        Tensor& slot = own[random() % own.size()];
        slot = {};
        slot = try_make_host_tensor(bytes_info(1 + random() % (12 * kKiB)), ledger);
        if (!slot) continue;
        ++made;
        const Tensor part = view(slot, bytes_info(1), 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(made > kThreads * kRounds / 4);
  BOOST_TEST(ledger->report().peak <= 64 * kKiB);
  BOOST_TEST(ledger->report().taken == 0u);
  BOOST_TEST(values_in(*ledger) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
