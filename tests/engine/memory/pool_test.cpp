// What the pool of a device takes from it: never more than the budget, exact chunks for what is
// large.
#include "engine/memory/pool.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <thread>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/refusal.h"

using namespace heddle;

namespace {

constexpr std::uint64_t kPoolKiB = 1024;

// A fake device of a megabyte, and a ledger of so much of it.
struct PoolFixture {
  test::Fakes fakes{R"({"memory": 1048576})"};
  engine::Ledger ledger{
      "fake:0", {512 * kPoolKiB}, [this] { return fakes.device().info().memory_free; }};
  engine::Pool pool{fakes.device(), ledger};
  const test::FakeControl& control() const { return fakes.control(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pool, PoolFixture)

BOOST_AUTO_TEST_CASE(large_pieces_have_chunks_of_their_size_and_small_ones_share) {
  std::byte* const large = pool.allocate(100 * kPoolKiB);
  BOOST_TEST(control()->used_bytes(0) == 100 * kPoolKiB);
  std::vector<std::byte*> small;
  for (int i = 0; i < 8; ++i) small.push_back(pool.allocate(kPoolKiB));
  BOOST_TEST(control()->used_bytes(0) == 108 * kPoolKiB);  // one chunk of a 64th of the budget
  BOOST_TEST(control()->allocations(0) == 2u);
  BOOST_TEST(pool.use().used == 108 * kPoolKiB);
  for (std::byte* piece : small) pool.free(piece);
  pool.free(large);
  BOOST_TEST(control()->used_bytes(0) == 108 * kPoolKiB);
  BOOST_TEST(pool.has_free_chunks());
  pool.trim();
  BOOST_TEST(control()->used_bytes(0) == 0u);
  BOOST_TEST(ledger.report().taken == 0u);
  BOOST_TEST(ledger.report().held.empty());
}

BOOST_AUTO_TEST_CASE(room_beside_weights_alone_goes_back_with_them) {
  constexpr std::uint64_t kChunk = 8 * kKiB;
  const engine::PieceUse weights{{engine::MemoryKind::weights}};
  std::vector<std::byte*> first, second;  // a chunk each
  for (int i = 0; i < 4; ++i) first.push_back(pool.allocate(2 * kKiB, weights));
  for (int i = 0; i < 4; ++i)
    second.push_back(pool.allocate(2 * kKiB, i == 0 ? engine::PieceUse{} : weights));
  BOOST_TEST(pool.use().reserved == 2 * kChunk);
  BOOST_TEST(pool.use().beside_small == 0u);
  for (int i = 1; i < 4; ++i) {
    pool.free(first[i]);
    pool.free(second[i]);
  }
  BOOST_TEST(pool.use().beside_small == 12 * kKiB);
  BOOST_TEST(pool.use().beside_weights == 6 * kKiB);
  pool.free(first[0]);  // as an eviction does
  pool.trim();
  BOOST_TEST(pool.use().reserved == kChunk);
  BOOST_TEST(pool.use().beside_small == 6 * kKiB);
  BOOST_TEST(pool.use().beside_weights == 0u);
  pool.free(second[0]);
}

BOOST_AUTO_TEST_CASE(what_kernels_work_in_is_listed_by_itself) {
  const std::uint32_t owner = ledger.owner("a model");
  engine::PieceUse use{{engine::MemoryKind::activations, owner}};
  use.workspace = 30 * kPoolKiB;
  std::byte* const piece = pool.allocate(100 * kPoolKiB, use);
  std::map<engine::MemoryKind, std::uint64_t> held;
  for (const engine::LedgerReport::Line& line : ledger.report().held) {
    BOOST_TEST(line.owner == "a model");
    held[line.kind] += line.bytes;
  }
  BOOST_TEST(held.size() == 2u);
  BOOST_TEST(held[engine::MemoryKind::activations] == 70 * kPoolKiB);
  BOOST_TEST(held[engine::MemoryKind::workspaces] == 30 * kPoolKiB);
  BOOST_TEST(ledger.figures().find("workspaces of a model 30.0 KiB") != std::string::npos);
  pool.free(piece);
  BOOST_TEST(ledger.report().held.empty());
}

BOOST_AUTO_TEST_CASE(what_was_freed_is_handed_out_again_without_asking_the_device) {
  std::byte* const first = pool.allocate(100 * kPoolKiB);
  pool.free(first);
  BOOST_TEST(pool.allocate(96 * kPoolKiB) == first);
  BOOST_TEST(control()->allocations(0) == 1u);
  // A much smaller one would waste it, a larger one does not fit.
  std::byte* const other = pool.allocate(50 * kPoolKiB);
  BOOST_TEST(other != first);
  pool.free(other);
  pool.free(first);
}

BOOST_AUTO_TEST_CASE(who_has_claimed_room_gets_it_to_the_byte) {
  pool.free(pool.allocate(100 * kPoolKiB));
  BOOST_TEST(pool.has_free_chunks());
  ledger.on_shortage(engine::EvictionOrder::free_chunks, this, [&](std::uint64_t) { pool.trim(); });
  engine::Reservation claim = ledger.reserve(512 * kPoolKiB, "a test");
  BOOST_TEST(!pool.has_free_chunks());  // it had to go
  std::vector<std::byte*> pieces;
  for (const std::uint64_t bytes :
       {300 * kPoolKiB, kPoolKiB, 100 * kPoolKiB, 3 * kPoolKiB, 108 * kPoolKiB})
    pieces.push_back(pool.allocate(bytes, {.from = &claim}));
  BOOST_TEST(claim.left() == 0u);
  BOOST_TEST(control()->peak_bytes(0) == 512 * kPoolKiB);
  BOOST_TEST((test::refusal_of([&] { pool.allocate(1); }).code() == engine::Code::out_of_memory));
  for (std::byte* piece : pieces) pool.free(piece);
}

BOOST_AUTO_TEST_CASE(free_chunks_go_back_before_memory_is_out) {
  ledger.on_shortage(engine::EvictionOrder::free_chunks, this, [&](std::uint64_t) { pool.trim(); });
  pool.free(pool.allocate(300 * kPoolKiB));
  std::byte* const piece = pool.allocate(400 * kPoolKiB);
  BOOST_TEST(control()->used_bytes(0) == 400 * kPoolKiB);
  BOOST_TEST(control()->peak_bytes(0) <= 512 * kPoolKiB);
  pool.free(piece);
}

BOOST_AUTO_TEST_CASE(
    memory_that_others_take_between_two_questions_is_found_out_when_it_is_refused) {
  BOOST_TEST(ledger.available() == 512 * kPoolKiB);
  control()->set_foreign_bytes(0, 900 * kPoolKiB);
  const engine::Error error =
      test::refusal_of([&] { pool.allocate(200 * kPoolKiB, {.what = "a test"}); });
  BOOST_TEST((error.code() == engine::Code::out_of_memory));
  BOOST_TEST(std::string(error.what()).find("124.0 KiB free by the driver") != std::string::npos,
             error.what());
  BOOST_TEST(ledger.report().taken == 0u);
  BOOST_TEST(ledger.available() == 124 * kPoolKiB);
  control()->set_foreign_bytes(0, 0);
  std::byte* const piece = pool.allocate(200 * kPoolKiB);  // asked again before it is out
  pool.free(piece);
}

BOOST_AUTO_TEST_CASE(an_allocation_that_fails_once_is_tried_again) {
  for (const std::uint64_t bytes : {kPoolKiB, 100 * kPoolKiB}) {
    const std::uint64_t faults = control()->faults(0), made = control()->allocations(0);
    control()->fail_alloc(0, 1);
    pool.free(pool.allocate(bytes));
    BOOST_TEST(control()->faults(0) == faults + 1);
    BOOST_TEST(control()->allocations(0) == made + 1);
    pool.trim();
  }
  BOOST_TEST(ledger.report().taken == 0u);
}

BOOST_AUTO_TEST_CASE(four_threads_stay_within_the_budget) {
  ledger.on_shortage(engine::EvictionOrder::free_chunks, this, [&](std::uint64_t) { pool.trim(); });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<std::byte*> mine;
      for (int i = 0; i < 500; ++i) {
        try {
          mine.push_back(pool.allocate(1 + random() % (100 * kPoolKiB)));
        } catch (const engine::Error& error) {
          if (error.code() != engine::Code::out_of_memory) throw;
        }
        if (mine.size() > 3 || (!mine.empty() && random() % 2 == 0)) {
          pool.free(mine.back());
          mine.pop_back();
        }
      }
      for (std::byte* piece : mine) pool.free(piece);
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(control()->peak_bytes(0) <= 512 * kPoolKiB);
  BOOST_TEST(control()->peak_bytes(0) > 100 * kPoolKiB);
  BOOST_TEST(pool.use().used == 0u);
  pool.trim();
  BOOST_TEST(ledger.report().taken == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
