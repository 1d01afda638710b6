#include "engine/queue/store.h"

#include <iterator>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kApplication = 0x48646C51;          // "HdlQ", in the header of the file
constexpr int kLongJournal = 500, kLongestJournal = 4000;  // pages of 4 KiB

// Of schema 1: upgrades bring a new file to the present one. The columns that are long stand last:
// what looks for others does not read them. Of a job that waits, `rank` decides between equal
// numbers; of one that has ended, `finished` is its place in history: clocks are set back.
constexpr std::string_view kTables = R"(
CREATE TABLE jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  state INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  priority INTEGER NOT NULL,
  number REAL NOT NULL,
  rank REAL NOT NULL,
  cancel INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL, started INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,
  finished INTEGER,
  user TEXT NOT NULL, tag TEXT NOT NULL, batch TEXT NOT NULL, client TEXT NOT NULL,
  retry_of TEXT NOT NULL,
  prompt TEXT NOT NULL, extra_data TEXT NOT NULL, targets TEXT NOT NULL,
  outputs TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '');
CREATE INDEX waiting ON jobs(priority DESC, number, rank) WHERE state = 0;
CREATE INDEX ordered ON jobs(priority DESC, number, rank) WHERE state IN (0, 5);
CREATE INDEX running ON jobs(seq) WHERE state = 1;
CREATE INDEX history ON jobs(finished) WHERE finished IS NOT NULL;
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO counters VALUES('number', -1), ('finished', 0), ('paused', 0);
CREATE TABLE counts(state INTEGER PRIMARY KEY, jobs INTEGER NOT NULL);
INSERT INTO counts VALUES(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
CREATE TRIGGER job_comes AFTER INSERT ON jobs BEGIN
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
END;
CREATE TRIGGER job_changes AFTER UPDATE OF state ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
END;
CREATE TRIGGER job_goes AFTER DELETE ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
END;
)";

// Users take turns, background jobs give way, warm models overtake. The table is made anew, as the
// long columns stay last. `class`: 1 in the background. `charged`: device ms that a running job
// counts as. `users`: device ms of each, in the common time of the counter device_ms. `passed`: how
// many have overtaken a job that waits.
constexpr std::string_view kTurns = R"(
ALTER TABLE jobs RENAME TO old_jobs;
CREATE TABLE jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  state INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  priority INTEGER NOT NULL,
  number REAL NOT NULL,
  rank REAL NOT NULL,
  cancel INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL, started INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,
  finished INTEGER,
  user TEXT NOT NULL, tag TEXT NOT NULL, batch TEXT NOT NULL, client TEXT NOT NULL,
  retry_of TEXT NOT NULL,
  class INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '',
  placed INTEGER NOT NULL DEFAULT 0, charged INTEGER NOT NULL DEFAULT 0,
  prompt TEXT NOT NULL, extra_data TEXT NOT NULL, targets TEXT NOT NULL,
  outputs TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '');
INSERT INTO jobs(seq, id, state, generation, priority, number, rank, cancel, created, started,
  ended, finished, user, tag, batch, client, retry_of, prompt, extra_data, targets, outputs, status)
  SELECT seq, id, state, generation, priority, number, rank, cancel, created, started, ended,
  finished, user, tag, batch, client, retry_of, prompt, extra_data, targets, outputs, status
  FROM old_jobs;
DELETE FROM sqlite_sequence WHERE name = 'jobs';
UPDATE sqlite_sequence SET name = 'jobs' WHERE name = 'old_jobs';
DROP TABLE old_jobs;
CREATE INDEX waiting ON jobs(class, priority DESC, number, rank) WHERE state = 0;
CREATE INDEX ordered ON jobs(class, priority DESC, number, rank) WHERE state IN (0, 5);
CREATE INDEX turns ON jobs(user, class, priority DESC, number, rank, placed, created, model, kind,
  id) WHERE state = 0;
CREATE INDEX placed ON jobs(class, priority DESC, number, rank) WHERE state = 0 AND placed = 1;
CREATE INDEX running ON jobs(seq) WHERE state = 1;
CREATE INDEX history ON jobs(finished) WHERE finished IS NOT NULL;
CREATE INDEX ages ON jobs(ended) WHERE finished IS NOT NULL;
CREATE TABLE users(name TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE passed(seq INTEGER PRIMARY KEY, times INTEGER NOT NULL);
CREATE TABLE run_times(key TEXT PRIMARY KEY, seconds REAL NOT NULL, device_ms INTEGER NOT NULL,
  runs INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX run_times_seen ON run_times(seen);
INSERT INTO counters VALUES('device_ms', 0);
CREATE TRIGGER job_comes AFTER INSERT ON jobs BEGIN
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
END;
CREATE TRIGGER job_changes AFTER UPDATE OF state ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
  DELETE FROM passed WHERE seq = new.seq AND new.state NOT IN (0, 5);
END;
CREATE TRIGGER job_goes AFTER DELETE ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
END;
)";

// Jobs that use no results of earlier ones, by `seq`.
constexpr std::string_view kFromStart = R"(
CREATE TABLE from_start(job INTEGER PRIMARY KEY);
CREATE TRIGGER from_start_goes AFTER DELETE ON jobs BEGIN
  DELETE FROM from_start WHERE job = old.seq;
END;
)";

// From each schema to the next one, from 1 on. A new file is brought here the same way.
constexpr std::string_view kUpgrades[] = {
    // History goes by age, too.
    "CREATE INDEX ages ON jobs(ended) WHERE finished IS NOT NULL;", kTurns, kFromStart};
static_assert(std::size(kUpgrades) + 1 == kQueueSchema);

void refuse(const std::filesystem::path& file, std::string_view what) {
  throw Error(Code::invalid_argument,
              cat(file.string(), ": ", what, " Nothing was changed in the file."));
}

// Before anything is written: a file that is not ours stays as it is, to the byte.
bool is_new(Database& database) {
  const std::int64_t application = database.ask("PRAGMA application_id"),
                     schema = database.ask("PRAGMA user_version");
  if (application == 0 && schema == 0 && database.ask("SELECT count(*) FROM sqlite_master") == 0)
    return true;
  if (application != kApplication)
    refuse(database.file(),
           "this is a database of another program. Name another file for the queue.");
  if (schema > kQueueSchema)
    refuse(database.file(),
           cat("this queue was written by a newer heddle (schema ", schema, ", this one knows ",
               kQueueSchema, "). Use that heddle, or name another file for the queue."));
  return false;
}

void check_content(Database& database) {
  std::string finding;
  {
    Statement& check = database.statement("PRAGMA quick_check(1)");
    if (check.step()) finding = check.text(0);
    check.reset();
  }
  if (finding != "ok")
    refuse(database.file(),
           cat("the file is damaged (", finding, "). Move it away, or restore a backup."));
}

}  // namespace

Store::Store(const std::filesystem::path& file) : database_(file) {
  // One process alone: what runs when a queue is opened is then known to be nobody's.
  database_.run("PRAGMA locking_mode = EXCLUSIVE");
  database_.run("PRAGMA trusted_schema = OFF");
  const bool is_fresh = is_new(database_);
  if (!is_fresh) check_content(database_);
  database_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database_.run("BEGIN IMMEDIATE");
  if (is_fresh) {
    database_.run(cat("PRAGMA application_id = ", kApplication));
    database_.run(kTables);
    database_.run("PRAGMA user_version = 1");
  }
  for (std::int64_t schema = database_.ask("PRAGMA user_version"); schema < kQueueSchema; ++schema)
    database_.run(cat(kUpgrades[schema - 1], "PRAGMA user_version = ", schema + 1));
  database_.run("COMMIT");
}

std::uint64_t Store::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

int Store::journal_pages() const {
  const std::lock_guard lock(mutex_);
  return database_.journal_pages();
}

void Store::tidy() {
  const std::lock_guard lock(mutex_);
  if (batch_ == nullptr && database_.journal_pages() >= kLongJournal) database_.empty_journal();
}

// Without the lock: whoever commits has it, and learns so who will be next.
Store::Turn::Turn(Store& store) : store_(store) { ++store.arriving_; }

Store::Turn::~Turn() {
  if (has_arrived_) return;
  const std::lock_guard lock(store_.mutex_);
  --store_.arriving_;
  store_.changed_.notify_all();
}

void Store::Turn::take(const std::function<void(Database&)>& body) {
  std::unique_lock lock(store_.mutex_);
  store_.changed_.wait(lock, [&] { return store_.quiet_ == 0; });
  has_arrived_ = true;
  --store_.arriving_;
  store_.changed_.notify_all();
  Database& database = store_.database_;
  if (store_.batch_ == nullptr) {
    database.run("BEGIN IMMEDIATE");
    store_.batch_ = std::make_shared<Batch>();
  }
  batch_ = store_.batch_;
  try {
    database.run("SAVEPOINT part");
    body(database);
    database.run("RELEASE part");
    ++batch_->parts;
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    // A full disk ends the whole transaction, and with it what others have a part in.
    if (database.is_in_transaction() && batch_->parts > 0) {
      database.run("ROLLBACK TO part; RELEASE part");
    } else {
      if (database.is_in_transaction()) database.run("ROLLBACK");
      batch_->failure = failure;
      batch_->is_over = true;
      store_.batch_ = nullptr;
    }
    std::rethrow_exception(failure);
  }
}

void Store::Turn::commit() { store_.finish(batch_); }

void Store::finish(const std::shared_ptr<Batch>& batch) {
  std::unique_lock lock(mutex_);
  while (!batch->is_over) {
    if (is_committing_) {
      changed_.wait(lock, [&] { return batch->is_over || !is_committing_; });
      continue;
    }
    // Others are on their way: they come along. Each of them waits here afterwards, so there are
    // never more than threads.
    is_committing_ = true;
    changed_.wait(lock, [&] { return arriving_ == 0 || quiet_ > 0 || batch->is_over; });
    if (!batch->is_over) {
      try {
        database_.run("COMMIT");
        ++commits_;
      } catch (...) {
        batch->failure = std::current_exception();
        if (database_.is_in_transaction()) database_.run("ROLLBACK");
        database_.empty_journal();  // on a full disk that is room for the next one
      }
      batch->is_over = true;
      batch_ = nullptr;
      if (database_.journal_pages() >= kLongestJournal) database_.empty_journal();
    }
    is_committing_ = false;
    changed_.notify_all();
  }
  if (batch->failure != nullptr) std::rethrow_exception(batch->failure);
}

}  // namespace heddle::engine
