#include "engine/queue/turn_rows.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/queue/job_rows.h"
#include "engine/queue/run_times.h"

namespace heddle::engine {
namespace {

#define HEDDLE_TURN_COLUMNS                                                                       \
  "jobs.seq, id, user, model, class, priority, number, rank, placed, ifnull(times, 0), created, " \
  "kind"
#define HEDDLE_WITH_PASSED " LEFT JOIN passed ON passed.seq = jobs.seq "

// Jobs are of few kinds.
class KnownTimes {
 public:
  explicit KnownTimes(Database& database) : times_(database) {}

  void fill(WaitingJob& job, const std::string& kind) {
    const auto [at, is_new] = known_.try_emplace({kind, job.model});
    if (is_new) at->second = {times_.charge_of(kind, job.model), times_.find(kind, job.model)};
    job.charge_ms = at->second.first;
    if (at->second.second) job.expected_seconds = at->second.second->seconds;
  }

 private:
  const RunTimes times_;
  std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, std::optional<RunTime>>>
      known_;
};

std::vector<WaitingJob> read_rows(Database& database, Statement& rows) {
  std::vector<WaitingJob> jobs;
  std::vector<std::string> kinds;
  while (rows.step()) {
    WaitingJob job;
    job.sequence = rows.integer(0);
    job.id = rows.text(1);
    job.user = rows.text(2);
    job.model = rows.text(3);
    job.is_background = rows.integer(4) != 0;
    job.priority = rows.integer(5);
    job.number = rows.real(6);
    job.rank = rows.real(7);
    job.is_placed = rows.integer(8) != 0;
    job.passed = int(rows.integer(9));
    job.created_ms = rows.integer(10);
    kinds.push_back(rows.text(11));
    jobs.push_back(std::move(job));
  }
  KnownTimes times(database);
  for (std::size_t i = 0; i < jobs.size(); ++i) times.fill(jobs[i], kinds[i]);
  return jobs;
}

// One after another by the index: it is not gone through for them.
std::vector<std::string> waiting_users(Database& database) {
  std::vector<std::string> users;
  Statement& rows = database.statement(
      "WITH RECURSIVE next(name) AS (SELECT min(user) FROM jobs INDEXED BY turns WHERE state = 0 "
      "UNION ALL SELECT (SELECT min(user) FROM jobs INDEXED BY turns WHERE state = 0 AND user > "
      "next.name) FROM next WHERE next.name IS NOT NULL) SELECT name FROM next WHERE name IS NOT "
      "NULL");
  while (rows.step()) users.push_back(rows.text(0));
  return users;
}

std::int64_t virtual_time(Database& database) {
  return database.ask("SELECT value FROM counters WHERE name = 'device_ms'");
}

bool has_jobs(Database& database, const std::string& user) {
  Statement& row =
      database
          .statement(
              "SELECT EXISTS(SELECT 1 FROM jobs INDEXED BY turns WHERE state = 0 AND user = ?) OR "
              "EXISTS(SELECT 1 FROM jobs INDEXED BY running WHERE state = 1 AND user = ?)")
          .bind(user)
          .bind(user);
  const bool has = row.step() && row.integer(0) != 0;
  row.reset();
  return has;
}

}  // namespace

std::vector<WaitingJob> read_first_jobs(Database& database) {
  std::vector<WaitingJob> firsts;
  for (const std::string& user : waiting_users(database))
    for (const int background : {0, 1})
      for (WaitingJob& job : read_rows(
               database,
               database
                   .statement("SELECT " HEDDLE_TURN_COLUMNS
                              " FROM jobs INDEXED BY turns" HEDDLE_WITH_PASSED
                              "WHERE state = 0 AND user = ? AND class = ? ORDER BY priority DESC, "
                              "number, rank LIMIT 1")
                   .bind(user)
                   .bind(background)))
        firsts.push_back(std::move(job));
  return firsts;
}

std::vector<WaitingJob> read_placed_jobs(Database& database) {
  std::vector<WaitingJob> placed;
  for (const int background : {0, 1})
    for (WaitingJob& job : read_rows(
             database,
             database
                 .statement("SELECT " HEDDLE_TURN_COLUMNS
                            " FROM jobs INDEXED BY placed" HEDDLE_WITH_PASSED
                            "WHERE state = 0 AND placed = 1 AND class = ? ORDER BY priority DESC, "
                            "number, rank LIMIT 1")
                 .bind(background)))
      placed.push_back(std::move(job));
  return placed;
}

std::vector<WaitingJob> read_jobs_behind(Database& database, const WaitingJob& first) {
  return read_rows(
      database,
      database
          .statement("SELECT " HEDDLE_TURN_COLUMNS " FROM jobs INDEXED BY turns" HEDDLE_WITH_PASSED
                     "WHERE state = 0 AND user = ? AND class = ? AND priority = ? AND "
                     "(number, rank) >= (?, ?) ORDER BY number, rank LIMIT ?")
          .bind(first.user)
          .bind(int(first.is_background))
          .bind(first.priority)
          .bind(first.number)
          .bind(first.rank)
          .bind(kTurnWindow));
}

std::vector<WaitingJob> read_all_waiting(Database& database, bool with_paused) {
  std::vector<WaitingJob> jobs =
      read_rows(database, database.statement("SELECT " HEDDLE_TURN_COLUMNS
                                             " FROM jobs INDEXED BY turns" HEDDLE_WITH_PASSED
                                             "WHERE state = 0"));
  if (!with_paused) return jobs;
  for (WaitingJob& job :
       read_rows(database, database.statement("SELECT " HEDDLE_TURN_COLUMNS
                                              " FROM jobs INDEXED BY ordered" HEDDLE_WITH_PASSED
                                              "WHERE state IN (0, 5) AND state = 5")))
    jobs.push_back(std::move(job));
  return jobs;
}

std::vector<WaitingJob> read_in_plain_order(Database& database, std::int64_t most) {
  return read_rows(database,
                   database
                       .statement("SELECT " HEDDLE_TURN_COLUMNS
                                  " FROM jobs INDEXED BY waiting" HEDDLE_WITH_PASSED
                                  "WHERE state = 0 ORDER BY " HEDDLE_PLAIN_ORDER " LIMIT ?")
                       .bind(most));
}

TurnRules read_turn_rules(Database& database, const std::vector<WaitingJob>& jobs,
                          std::int64_t now_ms, std::int64_t patience_ms) {
  TurnRules rules;
  rules.now_ms = now_ms;
  rules.patience_ms = patience_ms;
  std::set<std::string> users;
  for (const WaitingJob& job : jobs) users.insert(job.user);
  if (users.size() < 2) return rules;  // nobody to take turns with
  for (const std::string& user : users) {
    Statement& row = database.statement("SELECT used FROM users WHERE name = ?").bind(user);
    rules.used[user] = row.step() ? row.integer(0) : virtual_time(database);
    row.reset();
  }
  return rules;
}

bool is_plain_order(Database& database) { return read_first_jobs(database).size() <= 1; }

void note_passed(Database& database, const std::vector<std::int64_t>& sequences) {
  for (const std::int64_t sequence : sequences)
    database
        .statement(
            "INSERT INTO passed VALUES(?, 1) ON CONFLICT(seq) DO UPDATE SET times = times + 1")
        .bind(sequence)
        .run();
}

void note_user_comes(Database& database, const std::string& user) {
  if (has_jobs(database, user)) return;
  database
      .statement(
          "INSERT INTO users VALUES(?, (SELECT value FROM counters WHERE name = 'device_ms')) ON "
          "CONFLICT(name) DO UPDATE SET used = max(used, excluded.used)")
      .bind(user)
      .run();
}

// The common time is that of whoever begins: those who come later start there.
void charge_user(Database& database, const WaitingJob& job) {
  database
      .statement(
          "UPDATE counters SET value = max(value, ifnull((SELECT used FROM users WHERE name = ?), "
          "value)) WHERE name = 'device_ms'")
      .bind(job.user)
      .run();
  database
      .statement(
          "INSERT INTO users VALUES(?, ? + (SELECT value FROM counters WHERE name = 'device_ms')) "
          "ON CONFLICT(name) DO UPDATE SET used = used + ?")
      .bind(job.user)
      .bind(job.charge_ms)
      .bind(job.charge_ms)
      .run();
}

void refund_charge(Database& database, const std::string& user, std::int64_t charge_ms) {
  database.statement("UPDATE users SET used = used - ? WHERE name = ?")
      .bind(charge_ms)
      .bind(user)
      .run();
}

void forget_idle_users(Database& database) {
  database
      .statement(
          "DELETE FROM users WHERE used <= (SELECT value FROM counters WHERE name = 'device_ms') "
          "AND "
          "NOT EXISTS(SELECT 1 FROM jobs INDEXED BY turns WHERE state = 0 AND user = name) AND NOT "
          "EXISTS(SELECT 1 FROM jobs INDEXED BY running WHERE state = 1 AND user = name)")
      .run();
}

}  // namespace heddle::engine
