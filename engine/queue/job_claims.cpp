// Jobs begin and end: claims, outcomes, and what is learnt of them.
#include <algorithm>
#include <cmath>

#include "engine/queue/job_queue.h"
#include "engine/queue/job_rows.h"
#include "engine/queue/run_times.h"
#include "engine/queue/turn_rows.h"

namespace heddle::engine {
namespace {

std::optional<Turn> next_turn(Database& database, const ClaimWish& wish, std::int64_t now,
                              std::int64_t patience) {
  const std::vector<WaitingJob> firsts = read_first_jobs(database);
  if (firsts.empty()) return {};
  TurnRules rules = read_turn_rules(database, firsts, now, patience);
  rules.interactive_only = wish.interactive_only;
  const std::vector<WaitingJob> due = due_jobs(firsts, read_placed_jobs(database), rules);
  if (due.empty()) return {};
  return choose_turn(due, wish.warm, rules,
                     [&] { return read_jobs_behind(database, due.front()); });
}

// Gives the charge back, or what the job has used beyond it.
void settle(Database& database, const std::string& user, std::int64_t charged, std::int64_t used) {
  refund_charge(database, user, charged - used);
  forget_idle_users(database);
}

}  // namespace

// Nobody else has the file open: whoever ran these is gone. What somebody has cancelled meanwhile
// does not come back. Nobody knows for how long they ran: it is not counted.
void JobQueue::recover() {
  store_.write([&](Database& database) {
    const std::vector<Job> orphans = read_jobs(database.statement(
        "SELECT " HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS " FROM jobs WHERE state = 1 ORDER BY seq"));
    for (const Job& job : orphans) {
      const JobClaim claim{job.id, job.generation};
      if (job.is_cancel_wanted)
        end(database, claim, {JobState::cancelled, "", "", 0});
      else if (options_.interrupted == JobQueueOptions::Interrupted::fail)
        end(database, claim, {JobState::failed, "", "", 0});
      else
        put_back(database, claim);
    }
  });
}

std::optional<Job> JobQueue::claim(const ClaimWish& wish) {
  std::optional<Job> claimed = store_.write([&](Database& database) -> std::optional<Job> {
    const std::uint64_t steps = database.machine_steps();
    const std::int64_t time = now();
    std::optional<Job> job;
    if (!is_paused_in(database)) {
      if (const std::optional<Turn> turn = next_turn(database, wish, time, options_.patience_ms)) {
        note_passed(database, turn->passed);
        charge_user(database, turn->job);
        Statement& row = database.statement(
            "UPDATE jobs SET state = 1, generation = generation + 1, cancel = 0, started = ?, "
            "charged = ? WHERE seq = ? RETURNING " HEDDLE_JOB_COLUMNS);
        row.bind(time).bind(turn->job.charge_ms).bind(turn->job.sequence).step();
        job = read_job(row);
        row.run();
      }
    }
    claim_steps_ += database.machine_steps() - steps;
    return job;
  });
  if (claimed) tell({claimed->id});
  return claimed;
}

// A change that comes while claim() looks is not missed: it is counted before.
std::optional<Job> JobQueue::wait_and_claim(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const std::uint64_t seen = changes();
    if (std::optional<Job> job = claim()) return job;
    wait_for_change(seen, stop);
  }
  return {};
}

std::uint64_t JobQueue::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

bool JobQueue::wait_for_change(std::uint64_t seen, std::stop_token stop,
                               std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return waiting_.wait_for(lock, stop, most, [&] { return changes_ != seen; });
}

void JobQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  waiting_.notify_all();
}

bool JobQueue::end(Database& database, const JobClaim& claim, const JobOutcome& outcome) const {
  const std::int64_t time = now();
  Statement& row = database.statement(
      "UPDATE jobs SET state = ?, cancel = 0, ended = ?, finished = (SELECT value + 1 FROM "
      "counters WHERE name = 'finished'), outputs = ?, status = ? WHERE id = ? AND generation = ? "
      "AND state = 1 RETURNING started, charged, user, kind, model");
  row.bind(static_cast<int>(outcome.state)).bind(time).bind(outcome.outputs).bind(outcome.status);
  row.bind(claim.id).bind(claim.generation);
  if (!row.step()) return false;
  // A clock may be set back.
  const std::int64_t ran = std::max<std::int64_t>(time - row.integer(0), 0);
  const std::int64_t charged = row.integer(1);
  const std::string user = row.text(2), kind = row.text(3), model = row.text(4);
  row.run();
  database.statement("UPDATE counters SET value = value + 1 WHERE name = 'finished'").run();
  const std::int64_t used =
      outcome.device_seconds ? std::llround(*outcome.device_seconds * 1000) : ran;
  settle(database, user, charged, used);
  // One whose results were all there already says nothing of others.
  if (outcome.state == JobState::done && outcome.device_seconds.value_or(1) > 0)
    RunTimes(database).learn(kind, model, double(ran) / 1000, used);
  keep_youngest(database, options_.history_limit);
  return true;
}

bool JobQueue::finish(const JobClaim& claim, const JobOutcome& outcome) {
  const bool holds =
      store_.write([&](Database& database) { return end(database, claim, outcome); });
  if (holds) notify({claim.id});
  return holds;
}

bool JobQueue::put_back(Database& database, const JobClaim& claim) const {
  Statement& row =
      database
          .statement(
              "UPDATE jobs SET state = 0 WHERE id = ? AND generation = ? AND state = 1 AND "
              "cancel = 0 RETURNING charged, user")
          .bind(claim.id)
          .bind(claim.generation);
  if (!row.step()) return false;
  const std::int64_t charged = row.integer(0);
  const std::string user = row.text(1);
  row.run();
  settle(database, user, charged, 0);
  return true;
}

bool JobQueue::give_back(const JobClaim& claim) {
  const bool holds = store_.write([&](Database& database) { return put_back(database, claim); });
  if (holds) notify({claim.id});
  return holds;
}

bool JobQueue::gives_way(const Job& job) const {
  TurnRules rules;
  rules.now_ms = now();
  rules.patience_ms = options_.patience_ms;
  return engine::gives_way({.is_background = job.is_background, .created_ms = job.created_ms},
                           rules);
}

}  // namespace heddle::engine
