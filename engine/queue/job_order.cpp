// The queue's order and what is taken out of it: moves, pauses, cancels.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/queue/job_queue.h"
#include "engine/queue/job_rows.h"
#include "engine/queue/turn_rows.h"

namespace heddle::engine {
namespace {

struct Place {
  std::int64_t background = 0, priority = 0;
  double number = 0, rank = 0;
};

std::optional<Place> place_of(Database& database, const std::string& id) {
  Statement& row =
      database
          .statement(
              "SELECT class, priority, number, rank FROM jobs WHERE id = ? AND state IN (0, 5)")
          .bind(id);
  if (!row.step()) return {};
  const Place place{row.integer(0), row.integer(1), row.real(2), row.real(3)};
  row.reset();
  return place;
}

// The rank of the last one before `place` of its class, priority and number, that of `but` left
// out.
std::optional<double> rank_before(Database& database, const Place& place, const std::string& but) {
  Statement& row = database
                       .statement(
                           "SELECT max(rank) FROM jobs WHERE state IN (0, 5) AND class = ? AND "
                           "priority = ? AND number = ? AND rank < ? AND id <> ?")
                       .bind(place.background)
                       .bind(place.priority)
                       .bind(place.number)
                       .bind(place.rank)
                       .bind(but);
  row.step();
  const std::optional<double> rank =
      row.is_null(0) ? std::nullopt : std::optional<double>(row.real(0));
  row.reset();
  return rank;
}

// Halving ends after some fifty moves to one place: then there is room again.
void spread_ranks(Database& database, const Place& place) {
  std::vector<std::int64_t> rows;
  Statement& all = database
                       .statement(
                           "SELECT seq FROM jobs WHERE state IN (0, 5) AND class = ? AND "
                           "priority = ? AND number = ? ORDER BY rank")
                       .bind(place.background)
                       .bind(place.priority)
                       .bind(place.number);
  while (all.step()) rows.push_back(all.integer(0));
  double rank = 0;
  for (const std::int64_t row : rows)
    database.statement("UPDATE jobs SET rank = ? WHERE seq = ?").bind(++rank).bind(row).run();
}

// Where it stands from now on by somebody's hand.
void put(Database& database, const std::string& id, const Place& place, bool is_placed = true) {
  database
      .statement(
          "UPDATE jobs SET class = ?, priority = ?, number = ?, rank = ?, placed = ? WHERE id = ?")
      .bind(place.background)
      .bind(place.priority)
      .bind(place.number)
      .bind(place.rank)
      .bind(is_placed)
      .bind(id)
      .run();
}

// The end of the queue, in one direction. Behind all it is by nobody's right: what comes later is
// not to wait for it.
bool move_to_end(Database& database, const std::string& id, bool front) {
  if (!place_of(database, id)) return false;
  Statement& row = database.statement(
      front ? "SELECT class, priority, number, rank, id FROM jobs WHERE state IN (0, 5) ORDER BY "
              "class, priority DESC, number, rank LIMIT 1"
            : "SELECT class, priority, number, rank, id FROM jobs WHERE state IN (0, 5) ORDER BY "
              "class DESC, priority, number DESC, rank DESC LIMIT 1");
  row.step();
  Place place{row.integer(0), row.integer(1), row.real(2), row.real(3)};
  const bool is_there = row.text(4) == id;
  row.reset();
  if (!is_there) place.rank += front ? -1 : 1;
  put(database, id, place, front);
  return true;
}

bool fits(const Job& job, const JobSelection& selection) {
  const bool runs = job.state == JobState::running;
  if (runs ? selection.but_running : selection.only_running) return false;
  const bool says_nothing = selection.ids.empty() && selection.batch.empty() &&
                            selection.tag.empty() && selection.user.empty();
  if (says_nothing) return selection.all;
  if (!selection.ids.empty() &&
      std::find(selection.ids.begin(), selection.ids.end(), job.id) == selection.ids.end())
    return false;
  return (selection.batch.empty() || job.batch == selection.batch) &&
         (selection.tag.empty() || job.tag == selection.tag) &&
         (selection.user.empty() || job.user == selection.user);
}

constexpr std::string_view kBrief =
    "SELECT id, state, generation, user, tag, batch, seq FROM jobs WHERE state IN (0, 5) UNION ALL "
    "SELECT id, state, generation, user, tag, batch, seq FROM jobs WHERE state = 1";
constexpr std::string_view kBriefOfOne =
    "SELECT id, state, generation, user, tag, batch, seq FROM jobs WHERE id = ? AND state IN (0, "
    "1, 5)";

// Without the long texts.
void read_brief(Statement& rows, std::vector<Job>& jobs) {
  while (rows.step()) {
    Job job;
    job.id = rows.text(0);
    job.state = static_cast<JobState>(rows.integer(1));
    job.generation = rows.integer(2);
    job.user = rows.text(3);
    job.tag = rows.text(4);
    job.batch = rows.text(5);
    job.sequence = rows.integer(6);
    jobs.push_back(std::move(job));
  }
}

std::vector<Job> selected(Database& database, const JobSelection& selection) {
  std::vector<Job> jobs;
  if (selection.ids.empty())
    read_brief(database.statement(kBrief), jobs);
  else
    for (const std::string& id : selection.ids)
      read_brief(database.statement(kBriefOfOne).bind(id), jobs);
  std::erase_if(jobs, [&](const Job& job) { return !fits(job, selection); });
  return jobs;
}

}  // namespace

JobQueue::Cancelled JobQueue::cancel(const JobSelection& selection) {
  const std::int64_t time = now();
  Cancelled cancelled = store_.write([&](Database& database) {
    Cancelled done;
    for (const Job& job : selected(database, selection)) {
      if (job.state == JobState::running) {
        database.statement("UPDATE jobs SET cancel = 1 WHERE seq = ?").bind(job.sequence).run();
        done.running.push_back({job.id, job.generation});
        continue;
      }
      database
          .statement(
              "UPDATE jobs SET state = 4, ended = ?, finished = (SELECT value + 1 FROM "
              "counters WHERE name = 'finished') WHERE seq = ?")
          .bind(time)
          .bind(job.sequence)
          .run();
      database.run("UPDATE counters SET value = value + 1 WHERE name = 'finished'");
      done.ended.push_back(job.id);
    }
    return done;
  });
  std::vector<std::string> ids = cancelled.ended;
  for (const JobClaim& claim : cancelled.running) ids.push_back(claim.id);
  if (!ids.empty()) notify(ids);
  return cancelled;
}

bool JobQueue::change(std::string_view sql, const std::string& id, bool comes) {
  const bool changed = store_.write([&](Database& database) {
    if (comes) {
      Statement& row = database.statement("SELECT user FROM jobs WHERE id = ?").bind(id);
      const std::string user = row.step() ? row.text(0) : "";
      row.reset();
      note_user_comes(database, user);
    }
    database.statement(sql).bind(id).run();
    return database.changes() > 0;
  });
  if (changed) notify({id});
  return changed;
}

bool JobQueue::pause(const std::string& id) {
  return change("UPDATE jobs SET state = 5 WHERE id = ? AND state = 0", id);
}
bool JobQueue::resume(const std::string& id) {
  return change("UPDATE jobs SET state = 0 WHERE id = ? AND state = 5", id, true);
}

bool JobQueue::is_paused_in(Database& database) {
  Statement& row = database.statement("SELECT value FROM counters WHERE name = 'paused'");
  const bool paused = row.step() && row.integer(0) != 0;
  row.reset();
  return paused;
}

bool JobQueue::is_paused() const {
  return store_.read([](Database& database) { return is_paused_in(database); });
}

bool JobQueue::move_before(const std::string& id, const std::string& other) {
  const bool moved = store_.write([&](Database& database) {
    std::optional<Place> place = place_of(database, other);
    if (!place || !place_of(database, id)) return false;
    if (id == other) return true;
    for (int tries = 0; tries < 2; ++tries) {
      const std::optional<double> before = rank_before(database, *place, id);
      const double rank = before ? *before + (place->rank - *before) / 2 : place->rank - 1;
      if (rank < place->rank && (!before || rank > *before)) {
        put(database, id, {place->background, place->priority, place->number, rank});
        return true;
      }
      spread_ranks(database, *place);
      place = place_of(database, other);
    }
    throw Error(Code::internal, cat("job ", quote(id), " finds no place before ", quote(other)));
  });
  if (moved) notify({id});
  return moved;
}

bool JobQueue::move_to_front(const std::string& id) {
  const bool moved =
      store_.write([&](Database& database) { return move_to_end(database, id, true); });
  if (moved) notify({id});
  return moved;
}

bool JobQueue::move_to_back(const std::string& id) {
  const bool moved =
      store_.write([&](Database& database) { return move_to_end(database, id, false); });
  if (moved) notify({id});
  return moved;
}

bool JobQueue::set_priority(const std::string& id, std::int64_t priority) {
  const bool set = store_.write([&](Database& database) {
    database.statement("UPDATE jobs SET priority = ? WHERE id = ? AND state IN (0, 5)")
        .bind(priority)
        .bind(id)
        .run();
    return database.changes() > 0;
  });
  if (set) notify({id});
  return set;
}

}  // namespace heddle::engine
