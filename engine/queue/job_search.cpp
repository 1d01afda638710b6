// What people look for among the jobs of a queue: lists by state, tag, batch and user.
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

std::optional<Job> JobQueue::find_brief(const std::string& id) const {
  return store_.read([&](Database& database) -> std::optional<Job> {
    Statement& row =
        database.statement("SELECT " HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS " FROM jobs WHERE id = ?")
            .bind(id);
    if (!row.step()) return {};
    std::optional<Job> job = read_job(row);
    row.reset();
    return job;
  });
}

}  // namespace heddle::engine
