// Who may begin, and in which order: exact cases, and that nobody starves or waits for ever.
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

#include "engine/resources/admission_queue.h"

using heddle::engine::AdmissionQueue;
using heddle::engine::Hash128;
using heddle::engine::MemoryNeed;

namespace {

using Ids = std::vector<AdmissionQueue::Id>;

// In one memory, without weights.
MemoryNeed need(std::uint32_t memory, std::uint64_t bytes) {
  return {.memory = memory, .least = bytes, .all = bytes, .own = bytes};
}
MemoryNeed with_model(std::uint32_t memory, std::uint64_t own, Hash128 model,
                      std::uint64_t weights) {
  return {.memory = memory,
          .least = own,
          .all = own + weights,
          .own = own,
          .models = {{model, weights}}};
}
AdmissionQueue::KeptModel one_weight(std::uint64_t bytes) { return {"flux", {{{9, 9}, bytes}}}; }
std::uint64_t hundred(std::uint32_t) { return 100; }

}  // namespace

BOOST_AUTO_TEST_SUITE(admission_queue)

BOOST_AUTO_TEST_CASE(runs_begin_in_their_order_while_everything_fits_together) {
  AdmissionQueue queue;
  for (const AdmissionQueue::Id id : {1, 2, 3, 4}) queue.add(id, 0, {need(0, 40)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 2}));
  BOOST_TEST((queue.waiting() == Ids{3, 4}));
  const auto lack = queue.lack_of(3, hundred);
  BOOST_TEST(lack->wanted == 40u);
  BOOST_TEST(lack->taken == 80u);
  BOOST_TEST(lack->holders.size() == 2u);
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{3}));
  queue.remove(4);
  queue.remove(2);
  BOOST_TEST(queue.admit(hundred).empty());
}

BOOST_AUTO_TEST_CASE(a_run_has_what_kept_models_leave_and_shares_its_own) {
  const Hash128 kept{1, 1}, other{2, 2};
  AdmissionQueue queue;
  queue.keep(0, kept, one_weight(60));
  queue.add(1, 0, {with_model(0, 20, other, 40)});  // alone it streams: 20 is its least
  queue.add(2, 0, {with_model(0, 20, kept, 60)});   // beside the other one: 20 + 40 + 20 + 60
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.remove(1);
  queue.add(3, 0, {with_model(0, 20, kept, 60)});
  BOOST_TEST((queue.admit(hundred) == Ids{2, 3}));  // the model is there once
  queue.remove(2);
  queue.remove(3);
  queue.add(4, 0, {need(0, 50)});
  BOOST_TEST(queue.admit(hundred).empty());
  const auto lack = queue.lack_of(4, hundred);
  BOOST_TEST(lack->holders.empty());
  BOOST_TEST((lack->kept == std::vector<std::pair<std::string, std::uint64_t>>{{"flux", 60}}));
  queue.add(5, 0, {need(1, 50)});  // another memory
  BOOST_TEST((queue.admit(hundred) == Ids{5}));
  queue.keep(0, kept, {});
  BOOST_TEST((queue.admit(hundred) == Ids{4}));
}

BOOST_AUTO_TEST_CASE(weights_that_kept_models_share_count_once) {
  const Hash128 base{1, 1}, patched{2, 2}, third{3, 3};
  const Hash128 common{7, 0}, of_base{7, 1}, of_patched{7, 2};
  AdmissionQueue queue;
  queue.keep(0, base, {"base", {{common, 50}, {of_base, 10}}});
  // Of its 60 bytes 50 are there already.
  const AdmissionQueue::KeptModel more{"patched", {{common, 50}, {of_patched, 10}}};
  BOOST_TEST(queue.may_keep(0, patched, more, 70));
  BOOST_TEST(!queue.may_keep(0, patched, more, 69));
  queue.keep(0, patched, more);
  BOOST_TEST(queue.may_keep(0, third, one_weight(30), 100));
  BOOST_TEST(!queue.may_keep(0, third, one_weight(31), 100));
  // A run of one of them has what the other has alone beside it, and a run of neither has the rest.
  queue.add(1, 0, {with_model(0, 80, patched, 60)});
  queue.add(2, 0, {need(0, 40)});
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  BOOST_TEST(queue.lack_of(2, hundred)->kept.size() == 2u);
  queue.remove(1);
  BOOST_TEST(queue.admit(hundred).empty());
  // Without the first one the common ones are the second one's.
  queue.keep(0, base, {});
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
}

BOOST_AUTO_TEST_CASE(what_runs_need_is_not_kept_from_them) {
  const Hash128 model{1, 1}, own{2, 2};
  AdmissionQueue queue;
  BOOST_TEST(queue.may_keep(0, model, one_weight(100), 100));
  BOOST_TEST(!queue.may_keep(0, model, one_weight(101), 100));
  queue.add(1, 0, {with_model(0, 30, own, 40)});
  queue.admit(hundred);
  BOOST_TEST(queue.may_keep(0, model, one_weight(30), 100));
  BOOST_TEST(!queue.may_keep(0, model, one_weight(31), 100));
  BOOST_TEST(queue.may_keep(0, own, one_weight(70), 100));  // it is there for the run already
  BOOST_TEST(queue.may_keep(1, model, one_weight(100), 100));
  queue.remove(1);
  queue.add(2, 0, {need(0, 80)});  // it waits, and would never begin
  BOOST_TEST(queue.may_keep(0, model, one_weight(20), 100));
  BOOST_TEST(!queue.may_keep(0, model, one_weight(21), 100));
  BOOST_TEST(queue.may_keep(0, model, one_weight(20), 100));  // asking keeps nothing
}

BOOST_AUTO_TEST_CASE(a_run_takes_all_its_memories_at_once_or_none) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 80)});
  queue.add(2, 0, {need(0, 40), need(1, 40)});
  queue.add(3, 0, {need(1, 80)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 3}));  // 2 holds nothing of memory 1 while it waits
  queue.remove(1);
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST(queue.lack_of(2, hundred)->memory == 1u);
  queue.remove(3);
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
}

BOOST_AUTO_TEST_CASE(smaller_ones_pass_three_times_and_then_wait_behind) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 60)});
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.add(2, 0, {need(0, 80)});
  for (const AdmissionQueue::Id id : {3, 4, 5, 6}) queue.add(id, 0, {need(0, 10)});
  BOOST_TEST((queue.admit(hundred) == Ids{3, 4, 5}));
  BOOST_TEST(queue.lack_of(6, hundred)->ahead == 2u);
  for (const AdmissionQueue::Id id : {3, 4, 5}) queue.remove(id);
  BOOST_TEST(queue.admit(hundred).empty());
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{2, 6}));
}

BOOST_AUTO_TEST_CASE(who_takes_nothing_that_the_first_lacks_does_not_pass_it) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 60)});
  queue.add(2, 0, {need(0, 80), need(1, 10)});
  for (AdmissionQueue::Id id = 3; id < 10; ++id) queue.add(id, 0, {need(1, 10)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 3, 4, 5, 6, 7, 8, 9}));
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
}

BOOST_AUTO_TEST_CASE(a_higher_priority_comes_first_and_a_paused_run_is_passed_by) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 100)});
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.add(2, 0, {need(0, 100)});
  queue.add(3, 1, {need(0, 100)});
  queue.add(4, 0, {need(0, 100)});
  BOOST_TEST((queue.waiting() == Ids{3, 2, 4}));
  queue.set_paused(3, true);
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
  queue.set_paused(3, false);
  queue.remove(2);
  BOOST_TEST((queue.admit(hundred) == Ids{3}));
}

BOOST_AUTO_TEST_CASE(weights_of_one_model_count_once) {
  const Hash128 a{1, 1}, b{2, 2};
  AdmissionQueue queue;
  for (const AdmissionQueue::Id id : {1, 2, 3}) queue.add(id, 0, {with_model(0, 10, a, 60)});
  queue.add(4, 0, {with_model(0, 10, b, 20)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 2, 3}));  // 3 x 10 + 60, and 4 would need 30 more
  queue.remove(1);
  queue.remove(2);
  BOOST_TEST((queue.admit(hundred) == Ids{4}));
}

BOOST_AUTO_TEST_CASE(alone_a_run_needs_only_the_least) {
  AdmissionQueue queue;
  queue.add(1, 0, {{.memory = 0, .least = 30, .all = 300, .own = 300}});
  queue.add(2, 0, {need(0, 10)});
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.remove(1);
  queue.add(3, 0, {{.memory = 0, .least = 130, .all = 300, .own = 300}});
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
  queue.remove(2);
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST(queue.lack_of(3, hundred)->holders.empty());
  BOOST_TEST(queue.lack_of(3, hundred)->wanted == 130u);
}

BOOST_AUTO_TEST_CASE(a_run_that_writes_after_another_begins_after_it) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 60)});
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.add(2, 0, {need(0, 80)});
  queue.add(3, 0, {need(0, 10)}, 2);  // it would wait for 2 with the memory that 2 waits for
  queue.add(4, 0, {need(0, 10)});
  BOOST_TEST((queue.admit(hundred) == Ids{4}));
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{2, 3}));
}

// It may wait for its turn to write, and never gets it while the other lacks what it has.
BOOST_AUTO_TEST_CASE(a_run_gives_back_what_one_that_it_writes_after_lacks) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 60)});
  queue.add(2, 3, {need(0, 10)}, 1);
  queue.add(3, 3, {need(0, 30)}, 2);
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  BOOST_TEST((queue.admit(hundred) == Ids{2, 3}));
  queue.give_back(1);
  queue.add(4, 0, {need(0, 30)});
  BOOST_TEST((queue.admit(hundred) == Ids{4}));
  BOOST_TEST(queue.preempt(hundred).empty());  // it is paused, and they may wait for it
  queue.set_needs(1, {need(0, 60)});
  queue.set_paused(1, false);
  BOOST_TEST(queue.admit(hundred).empty());
  queue.remove(2);  // its turn has not come for all that
  queue.add(5, 0, {need(0, 10)});
  BOOST_TEST((queue.admit(hundred) == Ids{5}));
  BOOST_TEST((queue.preempt(hundred) == Ids{3}));
  queue.give_back(3);
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
}

// A run begins again alone where it lacked memory beside others; those that write after it do not
// hold it up, nor take turns with it at evicting each other.
BOOST_AUTO_TEST_CASE(a_run_that_begins_again_gets_what_those_that_write_after_it_hold) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 30)});
  queue.add(2, 3, {need(0, 30)}, 1);
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
  queue.remove(1);
  queue.add(1, 0, {need(0, 100)});
  queue.move_to_front(1);
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST((queue.preempt(hundred) == Ids{2}));
  queue.give_back(2);
  BOOST_TEST((queue.admit(hundred) == Ids{1}));
  queue.set_needs(2, {need(0, 30)});
  queue.set_paused(2, false);
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST(queue.preempt(hundred).empty());  // though its priority is higher
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{2}));
}

BOOST_AUTO_TEST_CASE(a_row_holds_behind_a_run_that_is_over) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 30)});
  queue.add(2, 0, {need(0, 30)}, 1);
  BOOST_TEST((queue.admit(hundred) == Ids{1, 2}));
  queue.give_back(1);
  queue.remove(2);
  queue.add(3, 0, {need(0, 80)}, 2);
  BOOST_TEST((queue.admit(hundred) == Ids{3}));
  queue.set_needs(1, {need(0, 30)});
  queue.set_paused(1, false);
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST((queue.preempt(hundred) == Ids{3}));
}

// Whatever comes and goes in whatever order: never more than there is, nobody is passed more often
// than he may be, and all end.
BOOST_AUTO_TEST_CASE(nobody_starves_and_nobody_waits_for_ever) {
  constexpr std::uint32_t kMemories = 4;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return random() % n; };
    AdmissionQueue queue;
    std::map<AdmissionQueue::Id, std::vector<MemoryNeed>> needs, under_way;
    AdmissionQueue::Id next = 1;
    std::size_t over = 0;
    const std::size_t all = 100;
    for (int round = 0; over < all; ++round) {
      BOOST_REQUIRE_MESSAGE(round < 10000, "seed " << seed << ": nothing goes on");
      if (next <= all && below(2) == 0) {
        std::vector<MemoryNeed> wanted;
        for (std::uint32_t m = 0; m < kMemories; ++m)
          if (below(2) == 0) wanted.push_back(need(m, 1 + below(below(3) == 0 ? 100 : 30)));
        needs[next] = wanted;
        queue.add(next, int(below(2)), wanted, below(4) == 0 ? next - 1 : 0);
        ++next;
      }
      for (const AdmissionQueue::Id id : queue.admit(hundred)) under_way[id] = needs.at(id);
      std::vector<std::uint64_t> taken(kMemories);
      for (const auto& [id, wanted] : under_way)
        for (const MemoryNeed& each : wanted) taken[each.memory] += each.all;
      for (const std::uint64_t bytes : taken) BOOST_REQUIRE(bytes <= 100u);
      if (!under_way.empty() && below(3) == 0) {
        const auto ends = std::next(under_way.begin(), below(unsigned(under_way.size())));
        queue.remove(ends->first);
        under_way.erase(ends);
        ++over;
      }
    }
    BOOST_TEST(queue.is_empty());
  }
}

BOOST_AUTO_TEST_CASE(a_higher_priority_is_given_room_by_as_few_and_as_low_ones_as_will_do) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 30)});
  queue.add(2, 1, {need(0, 30)});
  queue.add(3, 0, {need(0, 40)});
  BOOST_TEST((queue.admit(hundred) == Ids{2, 1, 3}));
  BOOST_TEST(queue.preempt(hundred).empty());
  queue.add(4, 2, {need(0, 40)});
  queue.add(5, 0, {need(0, 10)});
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST((queue.preempt(hundred) == Ids{3}));  // 1 alone would not do, and 3 alone does
  BOOST_TEST(queue.preempt(hundred).empty());      // it was told
  queue.give_back(3);
  BOOST_TEST((queue.admit(hundred) == Ids{4}));
  BOOST_TEST(queue.preempt(hundred).empty());
  queue.set_needs(3, {need(0, 40)});
  queue.set_paused(3, false);
  BOOST_TEST((queue.waiting() == Ids{3, 5}));  // it keeps its place
  queue.remove(4);
  BOOST_TEST((queue.admit(hundred) == Ids{3}));
}

BOOST_AUTO_TEST_CASE(nobody_takes_the_room_that_is_made_for_another) {
  AdmissionQueue queue;
  queue.add(1, 0, {need(0, 50)});
  queue.add(2, 0, {need(0, 50)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 2}));
  queue.add(3, 1, {need(0, 100)});
  queue.add(4, 0, {need(0, 50)});
  BOOST_TEST(queue.admit(hundred).empty());
  BOOST_TEST((queue.preempt(hundred) == Ids{2, 1}));
  queue.give_back(2);
  BOOST_TEST(queue.admit(hundred).empty());  // 4 would fit
  queue.remove(1);
  BOOST_TEST((queue.admit(hundred) == Ids{3}));
}

BOOST_AUTO_TEST_CASE(nobody_is_preempted_in_vain) {
  AdmissionQueue queue;
  queue.add(1, 5, {need(0, 60)});
  queue.add(2, 0, {need(0, 40)});
  BOOST_TEST((queue.admit(hundred) == Ids{1, 2}));
  queue.add(3, 3, {need(0, 50)});  // would not fit beside 1
  BOOST_TEST(queue.preempt(hundred).empty());
  queue.add(4, 9, {need(0, 40)}, 3);  // waits for 3 to begin
  BOOST_TEST(queue.preempt(hundred).empty());
}

BOOST_AUTO_TEST_SUITE_END()
