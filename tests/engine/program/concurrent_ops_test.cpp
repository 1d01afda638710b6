// Launches of two lanes: whatever touches the same memory keeps its order, and nothing else waits.
#include "engine/program/concurrent_ops.h"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(concurrent)

namespace {

using Kind = SessionStorage::Kind;

SessionStorage storage(Kind kind, std::uint64_t offset, std::uint64_t bytes) {
  SessionStorage made;
  made.kind = kind;
  made.offset = offset;
  made.bytes = bytes;
  return made;
}

PlannedOp op(std::uint32_t branch, std::vector<std::int32_t> in, std::vector<std::int32_t> out,
             std::int32_t workspace = -1) {
  PlannedOp made;
  made.branch = branch;
  for (const std::int32_t s : in) made.op.in.push_back({s, 0, {}});
  for (const std::int32_t s : out) made.op.out.push_back({s, 0, {}});
  made.workspace = workspace;
  return made;
}

std::vector<ConcurrentOp> of(const SessionPlan& plan) {
  std::vector<std::uint32_t> all(plan.ops.size());
  std::iota(all.begin(), all.end(), 0u);
  return concurrent_ops(plan, all);
}

bool share_bytes(const SessionStorage& a, const SessionStorage& b) {
  const bool is_one_arena = (a.kind == Kind::scratch) == (b.kind == Kind::scratch);
  return is_one_arena && a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

// Whether one has to come before the other.
bool conflict(const SessionPlan& plan, const PlannedOp& a, const PlannedOp& b) {
  const auto touched = [&](const PlannedOp& one, bool only_written) {
    std::vector<const SessionStorage*> all;
    const auto add = [&](std::int32_t s) {
      if (s >= 0 && plan.storages[s].kind != Kind::weight) all.push_back(&plan.storages[s]);
    };
    for (const Operand& o : one.op.out) add(o.storage);
    add(one.workspace);
    if (!only_written)
      for (const Operand& o : one.op.in) add(o.storage);
    return all;
  };
  const auto meet = [&](const PlannedOp& writer, const PlannedOp& other) {
    for (const SessionStorage* x : touched(writer, true))
      for (const SessionStorage* y : touched(other, false))
        if (share_bytes(*x, *y)) return true;
    return false;
  };
  return meet(a, b) || meet(b, a);
}

// By op: whether it is surely done before `later` begins.
std::vector<bool> done_before(const std::vector<ConcurrentOp>& ops, std::size_t later) {
  std::vector<bool> done(ops.size(), false);
  std::vector<std::size_t> open{later};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const auto add = [&](std::size_t before) {
      if (done[before]) return;
      done[before] = true;
      open.push_back(before);
    };
    for (std::size_t before = at; before-- > 0;)
      if (ops[before].lane == ops[at].lane) add(before);
    if (ops[at].after >= 0) add(std::size_t(ops[at].after));
  }
  return done;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_touches_the_same_bytes_keeps_its_order) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    SessionPlan plan;
    for (int s = 0; s < 30; ++s) {
      const Kind kind = s % 7 == 0 ? Kind::weight : s % 3 == 0 ? Kind::persistent : Kind::scratch;
      plan.storages.push_back(storage(kind, random() % 2000, random() % 120));
    }
    const auto any = [&] { return std::int32_t(random() % plan.storages.size()); };
    const auto written = [&] {
      for (;;)
        if (const std::int32_t s = any(); plan.storages[s].kind != Kind::weight) return s;
    };
    for (int i = 0; i < 60; ++i)
      plan.ops.push_back(
          op(random() % 3, {any(), any()}, {written()}, random() % 2 == 0 ? written() : -1));
    const std::vector<ConcurrentOp> found = of(plan);
    for (std::size_t later = 0; later < found.size(); ++later) {
      BOOST_TEST_REQUIRE(found[later].lane == lane_of(plan.ops[later].branch));
      const std::vector<bool> done = done_before(found, later);
      for (std::size_t before = 0; before < later; ++before)
        BOOST_TEST_REQUIRE((done[before] || !conflict(plan, plan.ops[before], plan.ops[later])));
    }
  }
}

BOOST_AUTO_TEST_CASE(lanes_that_share_only_what_they_read_never_wait) {
  SessionPlan plan;
  plan.storages = {storage(Kind::weight, 0, 100), storage(Kind::step_input, 0, 64),
                   storage(Kind::scratch, 0, 64), storage(Kind::scratch, 64, 64)};
  for (int i = 0; i < 10; ++i)
    for (const std::uint32_t branch : {0u, 1u})
      plan.ops.push_back(op(branch, {0, 1, std::int32_t(2 + branch)}, {std::int32_t(2 + branch)}));
  for (const ConcurrentOp& one : of(plan)) BOOST_TEST(one.after == -1);
}

BOOST_AUTO_TEST_CASE(one_wait_is_enough_for_all_that_came_before) {
  SessionPlan plan;
  plan.storages = {storage(Kind::scratch, 0, 64), storage(Kind::scratch, 64, 64),
                   storage(Kind::scratch, 128, 64)};
  plan.ops = {op(0, {}, {0}), op(0, {}, {1}), op(1, {1}, {2}), op(1, {0}, {2}), op(0, {2}, {0})};
  const std::vector<ConcurrentOp> found = of(plan);
  const std::vector<std::int32_t> expected{-1, -1, 1, -1, 3};
  for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(found[i].after == expected[i]);
}

BOOST_AUTO_TEST_SUITE_END()
