// Whose turn it is: which of the jobs that wait runs next. Pure; any thread.
//
// Jobs stand in a plain order: interactive ones before background ones, then higher priorities,
// then smaller numbers, then as they came or were moved. With one user and one model that is the
// order in which they run. Else:
// - Users take turns, whoever has used the devices least first. What counts is device time since a
//   common start: a user who comes, or comes back, starts where the others are, so that idle time
//   gives no credit and earlier work no debt.
// - What somebody has put at a place by hand is overtaken by no job behind it.
// - A job whose model is warm on a device may overtake others of its class and priority. No job is
//   overtaken by more than kMostPassed, whatever comes; and no user gets ahead of another one so by
//   more than the time of as many jobs.
// - A background job that has waited for the patience counts as an interactive one, and so has its
//   user's turn at last. Priorities are strict: a higher one runs first, however long others wait.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace heddle::engine {

inline constexpr int kMostPassed = 3;
inline constexpr std::size_t kTurnWindow =
    64;  // of one user's jobs, so far a warm one is looked for

// What a job's turn depends on.
struct WaitingJob {
  std::int64_t sequence = 0;  // of no other job
  std::string id;
  std::string user, model;  // model: "": none
  bool is_background = false;
  std::int64_t priority = 0;
  double number = 0, rank = 0;
  bool is_placed = false;  // by hand
  int passed = 0;          // so many have overtaken it
  std::int64_t created_ms = 0;
  std::int64_t charge_ms = 0;              // device time that it is expected to take
  std::optional<double> expected_seconds;  // from its beginning to its end; nothing: not known
};

// The plain order, but for classes: smaller runs first.
inline std::tuple<std::int64_t, double, double, std::int64_t> place_of(const WaitingJob& job) {
  return {-job.priority, job.number, job.rank, job.sequence};
}

// What else it depends on.
struct TurnRules {
  std::int64_t now_ms = 0;
  std::int64_t patience_ms = 0;
  bool interactive_only = false;
  std::map<std::string, std::int64_t> used;  // device ms by user; one who is not there: 0
};

// Whether it gives way to interactive ones.
bool gives_way(const WaitingJob& job, const TurnRules& rules);

// Those whose turn it may be, the first one first: of each user the first job, as far as it is of
// the class and priority that is highest now, and before what is placed. `firsts`: of each user and
// class the first job in the plain order. `placed`: of each class the first one that was placed.
std::vector<WaitingJob> due_jobs(const std::vector<WaitingJob>& firsts,
                                 const std::vector<WaitingJob>& placed, const TurnRules& rules);

struct Turn {
  WaitingJob job;
  std::vector<std::int64_t> passed;  // sequences of those that it overtakes
};

// `due`: of due_jobs(), at least one. `behind`: the jobs of the first one's user, class and
// priority from that one on, in the plain order; kTurnWindow of them will do. It is called only if
// a warm model is looked for.
Turn choose_turn(const std::vector<WaitingJob>& due, const std::set<std::string>& warm,
                 const TurnRules& rules, const std::function<std::vector<WaitingJob>()>& behind);

// In which order jobs would run if nothing came and nothing was warm: indices into `jobs`. Behind
// the first `most` of them it is the plain order.
std::vector<std::size_t> turn_order(const std::vector<WaitingJob>& jobs, TurnRules rules,
                                    std::size_t most);

}  // namespace heddle::engine
