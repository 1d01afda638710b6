#include "engine/program/paging.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

#include "engine/base/text.h"

using namespace heddle;
using engine::PagedWeight;
using engine::PagingCase;
using engine::PagingPlan;
using engine::StreamedWeight;

namespace {

constexpr std::uint64_t kBlock = 1 << 20;

// Blocks of weights of these sizes, an op for each weight.
PagingCase blocks(const std::vector<std::vector<std::uint64_t>>& sizes, double op_seconds,
                  double seconds_per_byte) {
  PagingCase paging;
  for (const auto& block : sizes)
    for (const std::uint64_t bytes : block) {
      const auto op = std::uint32_t(paging.op_seconds.size());
      paging.loop.push_back({bytes, op, op});
      paging.op_seconds.push_back(op_seconds);
    }
  paging.from_host = {1 / seconds_per_byte, 0};
  return paging;
}

std::uint64_t bytes_of(const std::vector<PagedWeight>& weights) {
  std::uint64_t bytes = 0;
  for (const PagedWeight& weight : weights) bytes += engine::padded_page_bytes(weight.bytes);
  return bytes;
}

// Carries a paging plan out, op after op: what is copied over something that is still to be read,
// read before it came, or copied out of turn. `steps` 1: before the loop.
std::vector<std::string> faults_of(const std::vector<PagedWeight>& weights,
                                   const std::vector<StreamedWeight>& pages, std::int64_t ops,
                                   int steps) {
  std::vector<std::string> faults;
  struct Copy {
    std::int64_t at;  // ops done before it starts, of all steps
    std::size_t page;
    int step;
  };
  std::vector<Copy> copies;
  for (int step = 0; step < steps; ++step)
    for (std::size_t p = 0; p < pages.size(); ++p)
      copies.push_back({std::max<std::int64_t>(0, step * ops + pages[p].behind + 1), p, step});
  for (std::size_t i = 1; i < copies.size(); ++i)
    if (copies[i].at < copies[i - 1].at)
      faults.push_back(engine::cat("copy ", i, " is out of turn"));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const StreamedWeight& page = pages[copies[i].page];
    const PagedWeight& weight = weights[page.weight];
    const std::int64_t first = copies[i].step * ops + weight.first;
    if (copies[i].at > first) faults.push_back(engine::cat("copy ", i, " comes too late"));
    const std::uint64_t end = page.offset + weight.bytes;
    for (std::size_t j = 0; j < i; ++j) {
      const StreamedWeight& other = pages[copies[j].page];
      const PagedWeight& lying = weights[other.weight];
      const std::int64_t last = copies[j].step * ops + lying.last;
      if (other.offset < end && page.offset < other.offset + lying.bytes && last >= copies[i].at)
        faults.push_back(engine::cat("copy ", i, " overwrites copy ", j));
    }
  }
  return faults;
}

std::vector<std::string> faults_of(const PagingCase& paging, const PagingPlan& plan) {
  const auto ops = std::int64_t(paging.op_seconds.size());
  std::vector<std::string> faults = faults_of(paging.loop, plan.loop, ops, 3);
  for (std::string& fault : faults_of(paging.once, plan.once, 0, 1)) faults.push_back(fault);
  std::uint64_t staying = bytes_of(paging.loop), step_bytes = 0, staging_ring = 0;
  if (plan.once.empty()) staying += bytes_of(paging.once);
  for (const StreamedWeight& page : plan.loop) {
    const std::uint64_t bytes = paging.loop[page.weight].bytes;
    if (bytes <= engine::kSmallWeight) faults.push_back("a small weight passes");
    staying -= engine::padded_page_bytes(bytes);
    step_bytes += bytes;
    staging_ring = std::max(staging_ring, page.offset + bytes);
  }
  for (const StreamedWeight& page : plan.once)
    staging_ring = std::max(staging_ring, page.offset + paging.once[page.weight].bytes);
  if (!plan.once.empty())
    for (const PagedWeight& weight : paging.once)
      staying += weight.bytes <= engine::kSmallWeight ? engine::padded_page_bytes(weight.bytes) : 0;
  if (staying != plan.resident_bytes) faults.push_back("what stays is counted wrongly");
  if (step_bytes != plan.step_bytes) faults.push_back("what passes is counted wrongly");
  if (staging_ring > plan.staging_ring_bytes) faults.push_back("a page reaches out of the ring");
  if (plan.staging_ring_bytes + plan.resident_bytes > paging.available)
    faults.push_back("there is no room");
  return faults;
}

std::string all_of(const std::vector<std::string>& faults) { return engine::join(faults, "; "); }

}  // namespace

BOOST_AUTO_TEST_SUITE(paging)

BOOST_AUTO_TEST_CASE(all_weights_stay_where_there_is_room) {
  PagingCase paging = blocks({{kBlock}, {kBlock}, {100}}, 1, 1e-6);
  paging.once = {{kBlock, 0, 0}};
  paging.available = 3 * kBlock + 256;
  const PagingPlan plan = engine::plan_paging(paging);
  BOOST_TEST(!plan.streams());
  BOOST_TEST(plan.staging_ring_bytes == 0u);
  BOOST_TEST(plan.resident_bytes == paging.available);
  BOOST_TEST(plan.step_seconds == 3, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(what_passes_first_is_pinned_as_far_as_there_is_room) {
  PagingCase paging =
      blocks({{kBlock}, {kBlock}, {kBlock}, {2 * kBlock}, {kBlock}, {kBlock}}, 1e-9, 1e-8);
  paging.from_pinned = {1e9, 0};
  paging.pinned_available = 3 * kBlock;
  for (PagedWeight& weight : paging.loop) weight.pinned_bytes = weight.bytes;
  paging.loop[1].pinned_bytes = 0;  // it is put together in host memory
  paging.loop[5].is_pinned = true;  // for another device
  paging.available = engine::min_weight_memory(paging).bytes();
  const PagingPlan plan = engine::plan_paging(paging);
  const std::vector<bool> pinned = engine::pinned_streamed(paging, plan);
  std::vector<std::uint32_t> weights;
  for (std::size_t page = 0; page < plan.loop.size(); ++page)
    if (pinned[page]) weights.push_back(plan.loop[page].weight);
  // Behind the first and the third one block is left, and the fourth weight needs two.
  BOOST_TEST(weights == (std::vector<std::uint32_t>{0, 2, 4, 5}), boost::test_tools::per_element());
  BOOST_TEST(plan.step_seconds == double(kBlock) * (4 * 1e-9 + 3 * 1e-8),
             boost::test_tools::tolerance(1e-3));
}

// A cyclic sweep with room for all but one: a cache of the least recently used would load 1,140.
BOOST_AUTO_TEST_CASE(fifty_seven_blocks_with_room_for_fifty_six_load_at_most_114_in_twenty_steps) {
  PagingCase paging = blocks(std::vector(57, std::vector<std::uint64_t>{kBlock}), 1e-3, 1e-9);
  paging.available = 56 * kBlock;
  const PagingPlan plan = engine::plan_paging(paging);
  BOOST_TEST(faults_of(paging, plan).empty(), all_of(faults_of(paging, plan)));
  const std::size_t staying = 57 - plan.loop.size();
  BOOST_TEST(staying + 20 * plan.loop.size() <= 114u);
  BOOST_TEST(staying + 20 * plan.loop.size() >= 76u);  // what knowing the future could do
}

// What passes is apart by equal distances, so that each copy has computing to hide behind.
BOOST_AUTO_TEST_CASE(what_stays_is_spread_evenly) {
  PagingCase paging = blocks(std::vector(60, std::vector<std::uint64_t>{kBlock}), 1e-3, 1e-9);
  paging.available = 50 * kBlock;
  const PagingPlan plan = engine::plan_paging(paging);
  for (std::size_t i = 1; i < plan.loop.size(); ++i) {
    const std::uint32_t apart = plan.loop[i].weight - plan.loop[i - 1].weight;
    BOOST_TEST(apart >= 4u);
    BOOST_TEST(apart <= 7u);
  }
}

BOOST_AUTO_TEST_CASE(a_step_takes_little_more_than_the_longer_of_computing_and_copying) {
  std::mt19937 random(3);
  for (const bool equal : {true, false})
    for (const double ratio : {0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0})
      for (const double fraction : {0.1, 0.3, 0.6, 0.9}) {
        std::vector<std::vector<std::uint64_t>> sizes(40);
        for (auto& block : sizes)
          for (int w = 0; w < 4; ++w)
            block.push_back(equal ? kBlock : kBlock / 2 + random() % (2 * kBlock));
        PagingCase paging = blocks(sizes, 1e-3, 1e-3 * ratio / double(kBlock));
        paging.available = std::uint64_t(double(bytes_of(paging.loop)) * fraction);
        const PagingPlan plan = engine::plan_paging(paging);
        BOOST_TEST(faults_of(paging, plan).empty(), all_of(faults_of(paging, plan)));
        const double compute =
            std::accumulate(paging.op_seconds.begin(), paging.op_seconds.end(), 0.0);
        const double copy = double(plan.step_bytes) / paging.from_host.bytes_per_second;
        BOOST_TEST(plan.step_seconds <= 1.10 * std::max(compute, copy),
                   (equal ? "equal" : "unequal")
                       << " blocks, ratio " << ratio << ", room for " << fraction << ": "
                       << plan.step_seconds << " s, computing " << compute << ", copying " << copy);
        BOOST_TEST(plan.step_seconds >= 0.999 * std::max(compute, copy));
      }
}

BOOST_AUTO_TEST_CASE(random_cases_never_overwrite_what_is_read_and_keep_their_room) {
  std::mt19937 random(5);
  std::size_t streamed = 0;
  for (int i = 0; i < 1500; ++i) {
    PagingCase paging;
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const auto add = [&](std::vector<PagedWeight>& weights) {
      std::uint32_t ops = 0;
      for (std::uint64_t block = 0, count = below(12); block < count; ++block) {
        const std::uint32_t branches = 1 + std::uint32_t(below(3)),
                            in_block = std::uint32_t(below(6));
        const std::uint32_t each = in_block + std::uint32_t(below(3)) + 1;
        for (std::uint32_t w = 0; w < in_block; ++w) {  // every branch reads it, one after another
          const std::uint64_t bytes = below(4) == 0 ? 1 + below(20'000) : 1 + below(3 * kBlock);
          weights.push_back(
              {bytes, ops + w, ops + (branches - 1) * each + w + std::uint32_t(below(2))});
        }
        ops += branches * each;
      }
      return ops;
    };
    add(paging.once);
    const std::uint32_t ops = add(paging.loop) + 1;
    for (std::uint32_t op = 0; op < ops; ++op)
      paging.op_seconds.push_back(double(below(1000)) * 1e-6);
    paging.from_host.bytes_per_second = 1 / (double(below(100)) * 1e-11);
    paging.from_host.latency_seconds = double(below(2)) * 1e-5;
    const std::uint64_t least = engine::min_weight_memory(paging).bytes();
    const std::uint64_t all = bytes_of(paging.once) + bytes_of(paging.loop);
    BOOST_TEST_REQUIRE(least <= all);
    paging.available = least + (below(4) == 0 ? 0 : below(all - least + 1));
    const PagingPlan plan = engine::plan_paging(paging);
    BOOST_TEST_REQUIRE(faults_of(paging, plan).empty(),
                       "case " << i << ": " << all_of(faults_of(paging, plan)));
    BOOST_TEST(plan.step_seconds == engine::simulate_paging(paging, plan));
    streamed += plan.loop.size() + plan.once.size();
  }
  BOOST_TEST(streamed > 10'000u);
}

// Nothing is smaller than what one op reads.
BOOST_AUTO_TEST_CASE(the_least_room_is_what_is_read_at_one_time_and_the_small_weights) {
  PagingCase paging = blocks({{kBlock, 2 * kBlock}, {3 * kBlock, 100}, {kBlock}}, 1e-3, 1e-9);
  BOOST_TEST(engine::min_weight_memory(paging).staging_ring_bytes == 3 * kBlock);
  BOOST_TEST(engine::min_weight_memory(paging).small_bytes == 256u);
  paging.loop[1].first = 0;  // read together with the one before
  paging.loop[4].last = 4;
  BOOST_TEST(engine::min_weight_memory(paging).staging_ring_bytes == 3 * kBlock);
  paging.once = {{5 * kBlock, 0, 0}};
  BOOST_TEST(engine::min_weight_memory(paging).staging_ring_bytes == 5 * kBlock);
  paging.available = engine::min_weight_memory(paging).bytes();
  const PagingPlan plan = engine::plan_paging(paging);
  BOOST_TEST(faults_of(paging, plan).empty(), all_of(faults_of(paging, plan)));
  BOOST_TEST(plan.once.size() == 1u);
}

// The device has nothing to compute while others do: copies go on.
BOOST_AUTO_TEST_CASE(copies_hide_behind_the_computing_of_other_devices) {
  PagingCase paging = blocks(std::vector(20, std::vector<std::uint64_t>{kBlock}), 1e-3, 1e-8);
  paging.available = 10 * kBlock;
  const double alone = engine::plan_paging(paging).step_seconds;
  paging.idle_seconds = alone / 2;
  BOOST_TEST(engine::plan_paging(paging).step_seconds < alone + 0.8 * paging.idle_seconds);
}

BOOST_AUTO_TEST_SUITE_END()
