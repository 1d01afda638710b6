#include "engine/queue/job_queue.h"

#include <chrono>
#include <random>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/queue/job_rows.h"
#include "engine/queue/turn_rows.h"

namespace heddle::engine {
namespace {

std::int64_t add_to_counter(Database& database, std::string_view name) {
  Statement& next =
      database.statement("UPDATE counters SET value = value + 1 WHERE name = ? RETURNING value");
  next.bind(name);
  const std::int64_t value = next.step() ? next.integer(0) : 0;
  next.run();
  return value;
}

std::int64_t count(Database& database, std::string_view sql) {
  Statement& rows = database.statement(sql);
  const std::int64_t value = rows.step() ? rows.integer(0) : 0;
  rows.reset();
  return value;
}

constexpr std::string_view kActive = "SELECT sum(jobs) FROM counts WHERE state IN (0, 1, 5)";
constexpr std::string_view kEnded = "SELECT sum(jobs) FROM counts WHERE state IN (2, 3, 4)";

bool is_there(Database& database, const std::string& id) {
  Statement& row = database.statement("SELECT 1 FROM jobs WHERE id = ?").bind(id);
  const bool found = row.step();
  row.reset();
  return found;
}

}  // namespace

std::int64_t JobQueue::keep_youngest(Database& database, std::int64_t keep) {
  const std::int64_t surplus = count(database, kEnded) - keep;
  if (surplus <= 0) return 0;
  database
      .statement(
          "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE finished IS NOT NULL ORDER BY "
          "finished LIMIT ?)")
      .bind(surplus)
      .run();
  return surplus;
}

std::string make_job_id() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 32; ++i) {
    std::size_t digit = random() % 16;
    if (i == 12) digit = 4;
    if (i == 16) digit = 8 + digit % 4;
    if (i == 8 || i == 12 || i == 16 || i == 20) id += '-';
    id += kDigits[digit];
  }
  return id;
}

JobQueue::JobQueue(const std::filesystem::path& file, JobQueueOptions options)
    : options_(std::move(options)), store_(file) {
  recover();
}

std::int64_t JobQueue::now() const {
  if (options_.clock) return options_.clock();
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

void JobQueue::notify(const std::vector<std::string>& ids) {
  wake();
  tell(ids);
}

// What has changed is written: whoever asked for it is not to hear that it has failed, and ask
// again.
void JobQueue::tell(const std::vector<std::string>& ids) const {
  if (!options_.changed) return;
  try {
    options_.changed(ids);
  } catch (const std::exception& error) {
    log(Level::error, cat("the queue has changed, and not all know: jobs ",
                          printable(join(ids, ", ")), ": ", error.what()));
  }
}

Job JobQueue::insert(Database& database, const NewJob& job) const {
  double number = 0;
  if (job.number) {
    number = *job.number;
  } else {
    number = static_cast<double>(add_to_counter(database, "number"));
    if (job.front) number = -number;
  }
  const std::string id = job.id.empty() ? make_job_id() : job.id;
  if (is_there(database, id))
    throw Error(Code::invalid_argument,
                cat("there is a job ", quote(id), " already. Give every job an id of its own."));
  const int state = static_cast<int>(job.is_paused ? JobState::paused : JobState::pending);
  if (!job.is_paused) note_user_comes(database, job.user);
  Statement& row = database.statement(
      "INSERT INTO jobs(id, state, class, placed, priority, number, rank, created, user, tag, "
      "batch, client, retry_of, kind, model, prompt, extra_data, targets) VALUES(?, ?, ?, ?, ?, ?, "
      "(SELECT ifnull(max(rank), 0) + 1 FROM jobs WHERE state IN (0, 5) AND class = ? AND priority "
      "= ? AND number = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING " HEDDLE_JOB_COLUMNS);
  const bool is_placed = job.number.has_value() || job.front;
  row.bind(id).bind(state).bind(job.is_background).bind(is_placed).bind(job.priority).bind(number);
  row.bind(job.is_background).bind(job.priority).bind(number).bind(now());
  for (const std::string* text :
       {&job.user, &job.tag, &job.batch, &job.client, &job.retry_of, &job.kind, &job.model,
        &job.prompt, &job.extra_data, &job.targets})
    row.bind(*text);
  row.step();
  Job made = read_job(row);
  row.run();
  if (job.from_start) {
    database.statement("INSERT INTO from_start VALUES(?)").bind(made.sequence).run();
    made.from_start = true;
  }
  return made;
}

std::vector<Job> JobQueue::submit(const std::vector<NewJob>& jobs) {
  std::vector<Job> made = store_.write([&](Database& database) {
    if (count(database, kActive) + static_cast<std::int64_t>(jobs.size()) > options_.capacity)
      throw QueueFull(cat("the queue is full: it holds ", options_.capacity,
                          " jobs at most. Try again when some of them have run."));
    std::vector<Job> inserted;
    for (const NewJob& job : jobs) inserted.push_back(insert(database, job));
    return inserted;
  });
  std::vector<std::string> ids;
  for (const Job& job : made) ids.push_back(job.id);
  notify(ids);
  return made;
}

Job JobQueue::retry(const std::string& of, std::string id, std::int64_t most_priority,
                    bool from_start) {
  const std::optional<Job> old = find(of);
  if (!old || !has_ended(old->state))
    throw Error(Code::not_found, cat("there is no job ", quote(of), " that has ended."));
  NewJob again;
  again.id = std::move(id);
  again.priority = std::min(old->priority, most_priority);
  again.user = old->user;
  again.tag = old->tag;
  again.batch = old->batch;
  again.client = old->client;
  again.retry_of = of;
  again.kind = old->kind;
  again.model = old->model;
  again.is_background = old->is_background;
  again.from_start = from_start;
  again.prompt = old->prompt;
  again.extra_data = old->extra_data;
  again.targets = old->targets;
  return submit({again}).front();
}

bool JobQueue::is_cancel_wanted(const JobClaim& claim) const {
  return store_.read([&](Database& database) {
    Statement& row =
        database.statement("SELECT cancel FROM jobs WHERE id = ? AND generation = ? AND state = 1");
    const bool wanted = !row.bind(claim.id).bind(claim.generation).step() || row.integer(0) != 0;
    row.reset();
    return wanted;
  });
}

void JobQueue::pause_all(bool paused) {
  store_.write([&](Database& database) {
    database.statement("UPDATE counters SET value = ? WHERE name = 'paused'").bind(paused).run();
  });
  notify({});
}

std::int64_t JobQueue::forget(const std::vector<std::string>& ids) {
  const auto gone = store_.write([&](Database& database) {
    std::map<std::string, std::string> owners;
    for (const std::string& id : ids) {
      Statement& row = database.statement(
          "DELETE FROM jobs WHERE id = ? AND finished IS NOT NULL RETURNING user");
      if (!row.bind(id).step()) continue;
      owners.emplace(id, row.text(0));
      row.run();
    }
    return owners;
  });
  if (options_.forgotten)
    for (const auto& [id, user] : gone) options_.forgotten(id, user);
  if (!gone.empty()) notify(ids);
  return std::int64_t(gone.size());
}

std::int64_t JobQueue::prune(std::int64_t keep) {
  const std::int64_t gone =
      store_.write([&](Database& database) { return keep_youngest(database, keep); });
  if (gone > 0) notify({});
  return gone;
}

std::int64_t JobQueue::prune_before(std::int64_t ended_ms) {
  const std::int64_t gone = store_.write([&](Database& database) {
    database.statement("DELETE FROM jobs WHERE finished IS NOT NULL AND ended < ?")
        .bind(ended_ms)
        .run();
    return std::int64_t{database.changes()};
  });
  if (gone > 0) notify({});
  return gone;
}

JobCounts JobQueue::counts() const {
  return store_.read([&](Database& database) {
    return JobCounts{count(database, "SELECT jobs FROM counts WHERE state = 0"),
                     count(database, "SELECT jobs FROM counts WHERE state = 1"),
                     count(database, "SELECT jobs FROM counts WHERE state = 5"),
                     count(database, kEnded)};
  });
}

void JobQueue::back_up(const std::filesystem::path& to) {
  std::error_code ignored;
  if (std::filesystem::exists(to, ignored))
    throw Error(Code::invalid_argument,
                cat(to.string(), ": is there already. Name a new file for the backup."));
  constexpr int kPages = 256;  // between two pieces others may write
  try {
    auto copy = store_.between_writes(
        [&](Database& database) { return std::make_unique<Backup>(database, to); });
    while (store_.between_writes([&](Database&) { return copy->copy(kPages); })) {
    }
    store_.between_writes([&](Database&) { copy.reset(); });
  } catch (...) {
    std::filesystem::remove(to, ignored);
    throw;
  }
}

}  // namespace heddle::engine
