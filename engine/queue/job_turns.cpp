#include "engine/queue/job_turns.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace heddle::engine {
namespace {

std::int64_t used_by(const std::string& user, const TurnRules& rules) {
  const auto found = rules.used.find(user);
  return found == rules.used.end() ? 0 : found->second;
}

// The jobs of one class and user, in the plain order.
using Lane = std::deque<std::size_t>;

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
  for (const WaitingJob& barrier : placed)
    if (tier(barrier) == top)
      std::erase_if(due, [&](const WaitingJob& job) { return place_of(barrier) < place_of(job); });
  std::ranges::sort(due, {}, [&](const WaitingJob& job) {
    return std::pair(used_by(job.user, rules), place_of(job));
  });
  return due;
}

Turn choose_turn(const std::vector<WaitingJob>& due, const std::set<std::string>& warm,
                 const TurnRules& rules, const std::function<std::vector<WaitingJob>()>& behind) {
  const WaitingJob& first = due.front();
  const auto is_warm = [&](const WaitingJob& job) {
    return !job.model.empty() && warm.contains(job.model);
  };
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
  std::map<std::pair<std::string, bool>, Lane> lanes;
  std::map<std::int64_t, std::size_t> index_of;
  std::vector<std::size_t> sorted(jobs.size()), order;
  for (std::size_t i = 0; i < jobs.size(); ++i) sorted[i] = i;
  std::ranges::sort(sorted, {}, [&](std::size_t i) { return place_of(jobs[i]); });
  Lane placed[2];
  for (const std::size_t i : sorted) {
    index_of[jobs[i].sequence] = i;
    lanes[{jobs[i].user, jobs[i].is_background}].push_back(i);
    if (jobs[i].is_placed) placed[jobs[i].is_background ? 1 : 0].push_back(i);
  }
  rules.interactive_only = false;
  std::vector<char> has_turn(jobs.size(), 0);
  while (order.size() < std::min(most, jobs.size())) {
    std::vector<WaitingJob> firsts, barriers;
    for (const auto& [whose, lane] : lanes)
      if (!lane.empty()) firsts.push_back(jobs[lane.front()]);
    for (const Lane& lane : placed)
      if (!lane.empty()) barriers.push_back(jobs[lane.front()]);
    const std::size_t next = index_of.at(due_jobs(firsts, barriers, rules).front().sequence);
    const WaitingJob& job = jobs[next];
    order.push_back(next);
    has_turn[next] = 1;
    rules.used[job.user] += job.charge_ms;
    lanes.at({job.user, job.is_background}).pop_front();
    if (job.is_placed) std::erase(placed[job.is_background ? 1 : 0], next);
  }
  for (const bool background : {false, true})
    for (const std::size_t i : sorted)
      if (has_turn[i] == 0 && jobs[i].is_background == background) order.push_back(i);
  return order;
}

}  // namespace heddle::engine
