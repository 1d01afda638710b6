// What people look for among the jobs of a queue: lists by state, tag, batch and user; places.
#include "engine/queue/job_queue.h"
#include "engine/queue/job_rows.h"

namespace heddle::engine {
namespace {

// Of a WHERE with everything that a search may give.
#define HEDDLE_SEARCHED                                                                      \
  " FROM jobs WHERE (? >> state) & 1 AND (? = '' OR batch = ?) AND (? = '' OR tag = ?) AND " \
  "(? = '' OR user = ?)"

Statement& bind_search(Statement& rows, const JobSearch& search) {
  std::int64_t states = 0;  // a bit for each
  for (const JobState state : search.states) states |= std::int64_t{1} << static_cast<int>(state);
  rows.bind(search.states.empty() ? ~std::int64_t{0} : states);
  for (const std::string* text : {&search.batch, &search.tag, &search.user})
    rows.bind(*text).bind(*text);
  return rows;
}

}  // namespace

std::vector<Job> JobQueue::search(const JobSearch& search) const {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  return store_.read([&](Database& database) {
    Statement& rows = database.statement("SELECT " HEDDLE_JOB_COLUMNS_IN_BRIEF HEDDLE_SEARCHED
                                         " AND seq < ? ORDER BY seq DESC LIMIT ?");
    bind_search(rows, search).bind(search.before == 0 ? kAll : search.before).bind(search.limit);
    return read_jobs(rows);
  });
}

std::int64_t JobQueue::count_of(const JobSearch& search) const {
  return store_.read([&](Database& database) {
    Statement& row = bind_search(database.statement("SELECT count(*)" HEDDLE_SEARCHED), search);
    row.step();
    const std::int64_t jobs = row.integer(0);
    row.reset();
    return jobs;
  });
}

std::vector<Job> JobQueue::waiting(std::int64_t limit, std::int64_t offset) const {
  return store_.read([&](Database& database) {
    return read_jobs(database
                         .statement("SELECT " HEDDLE_JOB_COLUMNS_IN_BRIEF
                                    " FROM jobs WHERE state IN (0, 5) ORDER BY priority DESC, "
                                    "number, rank LIMIT ? OFFSET ?")
                         .bind(limit)
                         .bind(offset));
  });
}

std::optional<std::int64_t> JobQueue::position(const std::string& id) const {
  return store_.read([&](Database& database) -> std::optional<std::int64_t> {
    Statement& row = database
                         .statement(
                             "SELECT (SELECT count(*) FROM jobs AS o WHERE o.state = 0 AND "
                             "(-o.priority, o.number, o.rank) < (-j.priority, j.number, j.rank)) "
                             "FROM jobs AS j WHERE j.id = ? AND j.state = 0")
                         .bind(id);
    if (!row.step()) return {};
    const std::int64_t before = row.integer(0);
    row.reset();
    return before;
  });
}

std::vector<std::string> JobQueue::pending_ids() const {
  return store_.read([&](Database& database) {
    std::vector<std::string> ids;
    Statement& rows = database.statement(
        "SELECT id FROM jobs WHERE state = 0 ORDER BY priority DESC, number, rank");
    while (rows.step()) ids.push_back(rows.text(0));
    return ids;
  });
}

std::optional<Job> JobQueue::find_brief(const std::string& id) const {
  return store_.read([&](Database& database) -> std::optional<Job> {
    Statement& row =
        database
            .statement(
                "SELECT id, state, seq, generation, priority, number, cancel, created, started, "
                "ended, user, tag, batch, client, retry_of, '', '', '', '', '' FROM jobs WHERE id "
                "= ?")
            .bind(id);
    if (!row.step()) return {};
    std::optional<Job> job = read_job(row);
    row.reset();
    return job;
  });
}

}  // namespace heddle::engine
