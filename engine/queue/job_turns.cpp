#include "engine/queue/job_turns.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

namespace heddle::engine {
namespace {

std::int64_t used_by(const std::string& user, const TurnRules& rules) {
  const auto found = rules.used.find(user);
  return found == rules.used.end() ? 0 : found->second;
}

// Jobs of one class, in the plain order; of both classes.
using Lane = std::deque<std::size_t>;
using Lanes = std::array<Lane, 2>;

}  // namespace

bool gives_way(const WaitingJob& job, const TurnRules& rules) {
  return job.is_background && rules.now_ms - job.created_ms < rules.patience_ms;
}

std::vector<WaitingJob> due_jobs(const std::vector<WaitingJob>& firsts,
                                 const std::vector<WaitingJob>& placed, const TurnRules& rules) {
  const auto tier = [&](const WaitingJob& job) {
    return std::pair(gives_way(job, rules), -job.priority);
  };
  std::map<std::string, WaitingJob> first_of;  // by user
  for (const WaitingJob& job : firsts) {
    if (rules.interactive_only && gives_way(job, rules)) continue;
    const auto [at, is_new] = first_of.emplace(job.user, job);
    const bool is_before =
        std::pair(tier(job), place_of(job)) < std::pair(tier(at->second), place_of(at->second));
    if (!is_new && is_before) at->second = job;
  }
  std::vector<WaitingJob> due;
  for (const auto& [user, job] : first_of) due.push_back(job);
  if (due.empty()) return due;
  const auto top = tier(*std::ranges::min_element(due, {}, tier));
  std::erase_if(due, [&](const WaitingJob& job) { return tier(job) != top; });
  const auto is_held = [&](const WaitingJob& job) {
    return std::ranges::any_of(placed, [&](const WaitingJob& barrier) {
      return tier(barrier) == top && place_of(barrier) < place_of(job);
    });
  };
  // One that was placed behind a job which still gives way stops nobody.
  if (!std::ranges::all_of(due, is_held)) std::erase_if(due, is_held);
  std::ranges::sort(due, {}, [&](const WaitingJob& job) {
    return std::pair(used_by(job.user, rules), place_of(job));
  });
  return due;
}

namespace {

// `model` as of a job: files, a line each, in their folders perhaps.
bool wants_one_of(const std::set<std::string>& warm, std::string_view model) {
  if (model.empty() || warm.empty()) return false;
  if (warm.contains(std::string(model))) return true;
  while (!model.empty()) {
    const std::string_view file = model.substr(0, model.find('\n'));
    if (warm.contains(std::string(file.substr(file.find_last_of('/') + 1)))) return true;
    model.remove_prefix(std::min(file.size() + 1, model.size()));
  }
  return false;
}

}  // namespace

Turn choose_turn(const std::vector<WaitingJob>& due, const std::set<std::string>& warm,
                 const TurnRules& rules, const std::function<std::vector<WaitingJob>()>& behind) {
  const WaitingJob& first = due.front();
  const auto is_warm = [&](const WaitingJob& job) { return wants_one_of(warm, job.model); };
  const auto keeps_its_place = [](const WaitingJob& job) {
    return job.is_placed || job.passed >= kMostPassed;
  };
  // A job without a model loads none.
  if (warm.empty() || first.model.empty() || is_warm(first) || keeps_its_place(first))
    return {first, {}};
  const auto find_in = [&](const std::vector<WaitingJob>& jobs) -> std::optional<Turn> {
    Turn turn;
    for (const WaitingJob& job : jobs) {
      turn.job = job;
      const std::int64_t ahead = used_by(job.user, rules) - used_by(first.user, rules);
      if (is_warm(job) && gives_way(job, rules) == gives_way(first, rules) &&
          ahead <= kMostPassed * job.charge_ms)
        return turn;
      if (keeps_its_place(job)) return {};
      turn.passed.push_back(job.sequence);
    }
    return {};
  };
  // Of the same user first: that changes nothing between users.
  if (std::optional<Turn> turn = find_in(behind())) return *std::move(turn);
  return find_in(due).value_or(Turn{first, {}});
}

std::vector<std::size_t> turn_order(const std::vector<WaitingJob>& jobs, TurnRules rules,
                                    std::size_t most) {
  std::vector<std::size_t> sorted(jobs.size()), order;
  for (std::size_t i = 0; i < jobs.size(); ++i) sorted[i] = i;
  std::ranges::sort(sorted, {}, [&](std::size_t i) { return place_of(jobs[i]); });
  std::map<std::string, Lanes> lanes_of;
  Lanes placed;
  for (const std::size_t i : sorted) {
    const std::size_t background = jobs[i].is_background ? 1 : 0;
    lanes_of[jobs[i].user][background].push_back(i);
    if (jobs[i].is_placed) placed[background].push_back(i);
  }
  const auto tier = [&](std::size_t i) {
    return std::pair(gives_way(jobs[i], rules), -jobs[i].priority);
  };
  const auto earlier = [&](std::size_t one, std::size_t other) {
    return std::pair(tier(one), place_of(jobs[one])) <
           std::pair(tier(other), place_of(jobs[other]));
  };
  // The first of each user's, as due_jobs() has it.
  const auto due_before = [&](std::size_t one, std::size_t other) {
    const auto key = [&](std::size_t i) {
      return std::tuple(tier(i), used_by(jobs[i].user, rules), place_of(jobs[i]));
    };
    return key(one) < key(other);
  };
  std::set<std::size_t, decltype(due_before)> firsts(due_before);
  const auto add_first = [&](const Lanes& lanes) {
    if (lanes[0].empty() && lanes[1].empty()) return;
    const bool is_second =
        lanes[0].empty() || (!lanes[1].empty() && earlier(lanes[1].front(), lanes[0].front()));
    firsts.insert(lanes[is_second ? 1 : 0].front());
  };
  for (const auto& [user, lanes] : lanes_of) add_first(lanes);
  std::vector<char> has_turn(jobs.size(), 0);
  while (order.size() < std::min(most, jobs.size())) {
    const auto is_held = [&](std::size_t i) {
      return std::ranges::any_of(placed, [&](const Lane& lane) {
        return !lane.empty() && tier(lane.front()) == tier(i) &&
               place_of(jobs[lane.front()]) < place_of(jobs[i]);
      });
    };
    auto at = firsts.begin();
    while (at != firsts.end() && tier(*at) == tier(*firsts.begin()) && is_held(*at)) ++at;
    if (at == firsts.end() || tier(*at) != tier(*firsts.begin())) at = firsts.begin();
    const std::size_t next = *at, background = jobs[next].is_background ? 1 : 0;
    firsts.erase(at);  // before what it stands by changes
    order.push_back(next);
    has_turn[next] = 1;
    rules.used[jobs[next].user] += jobs[next].charge_ms;
    Lanes& lanes = lanes_of.at(jobs[next].user);
    lanes[background].pop_front();
    if (jobs[next].is_placed) std::erase(placed[background], next);
    add_first(lanes);
  }
  for (const bool background : {false, true})
    for (const std::size_t i : sorted)
      if (has_turn[i] == 0 && jobs[i].is_background == background) order.push_back(i);
  return order;
}

}  // namespace heddle::engine
