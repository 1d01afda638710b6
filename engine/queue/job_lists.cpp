// Lists of the queue's jobs, in the order in which they run or ran; places in it; how long jobs
// will wait.
#include <algorithm>
#include <map>

#include "engine/queue/job_queue.h"
#include "engine/queue/job_rows.h"
#include "engine/queue/run_times.h"
#include "engine/queue/turn_rows.h"
#include "engine/queue/wait_forecast.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostForecast = 1000;  // jobs, of which it is said how long they wait

// Jobs that wait, in the order in which they would run, as far as `most` of them.
std::vector<WaitingJob> in_order(Database& database, std::int64_t now, std::int64_t patience,
                                 bool with_paused, std::int64_t most) {
  std::vector<WaitingJob> jobs = read_all_waiting(database, with_paused), ordered;
  const TurnRules rules = read_turn_rules(database, jobs, now, patience);
  for (const std::size_t i : turn_order(jobs, rules, std::size_t(most)))
    ordered.push_back(std::move(jobs[i]));
  return ordered;
}

std::vector<Job> jobs_of(Database& database, const std::vector<WaitingJob>& order,
                         std::string_view select_by_sequence, std::int64_t limit,
                         std::int64_t offset) {
  std::vector<Job> jobs;
  for (std::size_t i = std::size_t(offset); i < order.size() && std::int64_t(jobs.size()) < limit;
       ++i) {
    std::vector<Job> one =
        read_jobs(database.statement(select_by_sequence).bind(order[i].sequence));
    if (!one.empty()) jobs.push_back(std::move(one.front()));
  }
  return jobs;
}

std::int64_t end_of(std::int64_t limit, std::int64_t offset) {
  return limit > kAll - offset ? kAll : limit + offset;
}

}  // namespace

std::optional<Job> JobQueue::find(const std::string& id) const {
  return store_.read([&](Database& database) -> std::optional<Job> {
    Statement& row =
        database.statement("SELECT " HEDDLE_JOB_COLUMNS " FROM jobs WHERE id = ?").bind(id);
    if (!row.step()) return {};
    std::optional<Job> job = read_job(row);
    row.reset();
    return job;
  });
}

std::vector<Job> JobQueue::list(JobState state, std::int64_t limit, std::int64_t offset) const {
  const std::string_view sql =
      state == JobState::pending ? "SELECT " HEDDLE_JOB_COLUMNS
                                   " FROM jobs WHERE state = 0 ORDER BY " HEDDLE_PLAIN_ORDER
                                   " LIMIT ? OFFSET ?"
      : state == JobState::running ? "SELECT " HEDDLE_JOB_COLUMNS
                                     " FROM jobs WHERE state = 1 ORDER BY seq LIMIT ? OFFSET ?"
                                   : "SELECT " HEDDLE_JOB_COLUMNS
                                     " FROM jobs WHERE state IN (0, 5) AND state = 5 ORDER "
                                     "BY " HEDDLE_PLAIN_ORDER " LIMIT ? OFFSET ?";
  return store_.read([&](Database& database) {
    if (state == JobState::pending && !is_plain_order(database))
      return jobs_of(database,
                     in_order(database, now(), options_.patience_ms, false, end_of(limit, offset)),
                     "SELECT " HEDDLE_JOB_COLUMNS " FROM jobs WHERE seq = ?", limit, offset);
    return read_jobs(database.statement(sql).bind(limit).bind(offset));
  });
}

std::vector<Job> JobQueue::waiting(std::int64_t limit, std::int64_t offset) const {
  return store_.read([&](Database& database) {
    if (!is_plain_order(database))
      return jobs_of(
          database, in_order(database, now(), options_.patience_ms, true, end_of(limit, offset)),
          "SELECT " HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS " FROM jobs WHERE seq = ?", limit, offset);
    return read_jobs(database
                         .statement("SELECT " HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS
                                    " FROM jobs WHERE state IN (0, 5) ORDER BY " HEDDLE_PLAIN_ORDER
                                    " LIMIT ? OFFSET ?")
                         .bind(limit)
                         .bind(offset));
  });
}

std::optional<std::int64_t> JobQueue::position(const std::string& id) const {
  return store_.read([&](Database& database) -> std::optional<std::int64_t> {
    if (!is_plain_order(database)) {
      const std::vector<WaitingJob> jobs = order_of_pending(database, kAll);
      const auto found = std::ranges::find(jobs, id, &WaitingJob::id);
      return found == jobs.end() ? std::nullopt : std::optional(found - jobs.begin());
    }
    Statement& row = database
                         .statement(
                             "SELECT (SELECT count(*) FROM jobs AS o WHERE o.state = 0 AND "
                             "(o.class, -o.priority, o.number, o.rank) < (j.class, -j.priority, "
                             "j.number, j.rank)) FROM jobs AS j WHERE j.id = ? AND j.state = 0")
                         .bind(id);
    if (!row.step()) return {};
    const std::int64_t before = row.integer(0);
    row.reset();
    return before;
  });
}

std::vector<WaitingJob> JobQueue::order_of_pending(Database& database, std::int64_t most) const {
  if (is_plain_order(database)) return read_in_plain_order(database, most);
  std::vector<WaitingJob> jobs = in_order(database, now(), options_.patience_ms, false, most);
  if (std::int64_t(jobs.size()) > most) jobs.resize(std::size_t(most));
  return jobs;
}

std::vector<std::string> JobQueue::pending_ids() const {
  return store_.read([&](Database& database) {
    std::vector<std::string> ids;
    for (WaitingJob& job : order_of_pending(database, kAll)) ids.push_back(std::move(job.id));
    return ids;
  });
}

std::map<std::string, double> JobQueue::expected_waits(std::size_t workers) const {
  return store_.read([&](Database& database) {
    const RunTimes times(database);
    std::vector<std::optional<double>> running, waiting;
    for (const Job& job : read_jobs(
             database.statement("SELECT " HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS
                                " FROM jobs INDEXED BY running WHERE state = 1 ORDER BY seq"))) {
      const std::optional<RunTime> time = times.find(job.kind, job.model);
      const double elapsed = double(now() - job.started_ms) / 1000;
      running.push_back(time ? std::optional(seconds_left(time->seconds, elapsed)) : std::nullopt);
    }
    const std::vector<WaitingJob> jobs = order_of_pending(database, kMostForecast);
    for (const WaitingJob& job : jobs) waiting.push_back(job.expected_seconds);
    const auto begins = forecast_waits(running, waiting, workers);
    std::map<std::string, double> waits;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (begins[i]) waits.emplace(jobs[i].id, *begins[i]);
    return waits;
  });
}

std::optional<double> JobQueue::expected_seconds(const Job& job) const {
  return store_.read([&](Database& database) {
    const std::optional<RunTime> time = RunTimes(database).find(job.kind, job.model);
    return time ? std::optional(time->seconds) : std::nullopt;
  });
}

std::vector<Job> JobQueue::history(std::int64_t limit, std::int64_t offset, bool last,
                                   bool started) const {
  return store_.read([&](Database& database) {
    if (last) {
      std::vector<Job> jobs = read_jobs(
          database
              .statement("SELECT " HEDDLE_JOB_COLUMNS " FROM jobs WHERE finished IS NOT NULL AND "
                         "started >= ? ORDER BY finished DESC LIMIT ?")
              .bind(started)
              .bind(limit));
      std::reverse(jobs.begin(), jobs.end());
      return jobs;
    }
    return read_jobs(database
                         .statement("SELECT " HEDDLE_JOB_COLUMNS
                                    " FROM jobs WHERE finished IS NOT NULL AND started >= ? ORDER "
                                    "BY finished LIMIT ? OFFSET ?")
                         .bind(started)
                         .bind(limit)
                         .bind(offset));
  });
}

}  // namespace heddle::engine
