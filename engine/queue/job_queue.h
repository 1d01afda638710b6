// A durable queue of jobs: what was submitted is there after a crash, each job is claimed by one
// claimer at a time, and what is said of a claim never reaches a later one. It knows neither
// workflows nor networks. Any thread; no call waits for a job's work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/queue/job.h"
#include "engine/queue/job_turns.h"
#include "engine/queue/store.h"

namespace heddle::engine {

struct JobQueueOptions {
  // What becomes of jobs that ran when the process before this one ended: they wait again, each at
  // its place, or they have failed.
  enum class Interrupted { run_again, fail } interrupted = Interrupted::run_again;
  std::int64_t capacity = 100'000;         // jobs that wait, run or are paused
  std::int64_t history_limit = 10'000;     // jobs that have ended; the oldest go first
  std::int64_t patience_ms = 30 * 60'000;  // a background job that has waited so long gives way to
                                           // nobody any more
  std::function<std::int64_t()> clock;     // ms, of the system; any thread; empty: the system's own
  // Called behind every change that others may see, once it is on the disk; any thread, without a
  // lock. `ids`: of jobs that came, went or changed; the history's limit takes others silently.
  std::function<void(const std::vector<std::string>& ids)> changed;
  // Called before it, of each job that forget() has taken: whose it was.
  std::function<void(const std::string& id, const std::string& user)> forgotten;
};

struct JobCounts {
  std::int64_t pending = 0, running = 0, paused = 0, ended = 0;
};

class JobQueue {
 public:
  // Opens the file or makes it. Throws as Store does.
  explicit JobQueue(const std::filesystem::path& file, JobQueueOptions options = {});

  // All of them or, where anything is wrong, none. Throws QueueFull, and Error(invalid_argument)
  // for an id that is there already.
  std::vector<Job> submit(const std::vector<NewJob>& jobs);
  // A new job of what an ended one was, linked to it; `id`: of the new one, or empty. Its priority
  // is that of the old one, and `most_priority` at most. `from_start`: it uses no results that are
  // kept of earlier jobs.
  Job retry(const std::string& of, std::string id = {},
            std::int64_t most_priority = std::numeric_limits<std::int64_t>::max(),
            bool from_start = false);

  // The job whose turn it is of those that wait (job_turns.h says which), now running; nothing
  // where none does, or where the queue is paused.
  std::optional<Job> claim(const ClaimWish& wish = {});
  // Waits for one; nothing when a stop is asked for.
  std::optional<Job> wait_and_claim(std::stop_token stop);
  // For those who wait in another way: what came after `seen` is not missed.
  std::uint64_t changes() const;  // so far; wake() is one
  // False: none has come in that time.
  bool wait_for_change(std::uint64_t seen, std::stop_token stop,
                       std::chrono::milliseconds most = std::chrono::hours(1));
  void wake();
  // Whether it is a background job that interactive ones still come before.
  bool gives_way(const Job& job) const;

  // Of a claim that still holds: true, and the job has ended. False: the claim is over, nothing is
  // written. The time of one that is done is learnt, for expected_waits().
  bool finish(const JobClaim& claim, const JobOutcome& outcome);
  bool give_back(const JobClaim& claim);               // it waits again, at its place
  bool is_cancel_wanted(const JobClaim& claim) const;  // true also where the claim is over

  struct Cancelled {
    std::vector<std::string> ended;  // waited or were paused: have ended by this
    std::vector<JobClaim> running;   // to be told to stop; it is written that they shall
  };
  Cancelled cancel(const JobSelection& selection);

  bool pause(const std::string& id);   // one that waits; false: it does not
  bool resume(const std::string& id);  // one that is paused
  void pause_all(bool paused);         // no claims while it is true; survives a restart
  bool is_paused() const;

  // Puts one that waits or is paused before another such one, with its class, priority and number.
  // No job behind it overtakes it there. False: one of both is not there.
  bool move_before(const std::string& id, const std::string& other);
  bool move_to_front(const std::string& id);
  bool move_to_back(const std::string& id);
  bool set_priority(const std::string& id, std::int64_t priority);

  std::optional<Job> find(const std::string& id) const;
  // Without the long texts: prompt, extra_data, targets, outputs and status.
  std::optional<Job> find_brief(const std::string& id) const;
  // Pending ones or paused ones, in the order in which they would run; or running ones, in the
  // order of their submission.
  std::vector<Job> list(JobState state,
                        std::int64_t limit = std::numeric_limits<std::int64_t>::max(),
                        std::int64_t offset = 0) const;
  // Those that have ended, oldest first; `last`: the youngest ones of them; `started`: those alone
  // that have run.
  std::vector<Job> history(std::int64_t limit = std::numeric_limits<std::int64_t>::max(),
                           std::int64_t offset = 0, bool last = false, bool started = false) const;
  // Pending and paused ones together, in the order in which they would run, without the long texts.
  std::vector<Job> waiting(std::int64_t limit = std::numeric_limits<std::int64_t>::max(),
                           std::int64_t offset = 0) const;
  // Youngest first, without the long texts that were submitted: prompt, extra_data and targets.
  std::vector<Job> search(const JobSearch& search) const;
  std::int64_t count_of(const JobSearch& search) const;  // without its limit and `before`
  // How many pending ones run before this pending one, if nothing comes or is warm; nothing where
  // it is none. Takes a look at each of them: for several, ask for pending_ids().
  std::optional<std::int64_t> position(const std::string& id) const;
  std::vector<std::string> pending_ids() const;  // in the order in which they would run
  // Seconds until pending jobs begin where so many run at a time, by id; as far as that can be told
  // by how long such jobs have taken, and of the first thousand.
  std::map<std::string, double> expected_waits(std::size_t workers) const;
  // How long such jobs have taken from their beginning to their end; nothing: none has run.
  std::optional<double> expected_seconds(const Job& job) const;
  JobCounts counts() const;

  // Forgets jobs that have ended; gives their number.
  std::int64_t forget(const std::vector<std::string>& ids);
  std::int64_t prune(std::int64_t keep);             // all but the youngest
  std::int64_t prune_before(std::int64_t ended_ms);  // that have ended before

  // A copy in a new file, whole, while the queue is in use. Throws Error where the file is there.
  void back_up(const std::filesystem::path& to);

  // For a moment in which nobody waits for the queue's disk (Store::tidy()).
  void tidy() { store_.tidy(); }

  // Instructions of SQLite that claims have taken so far.
  std::uint64_t claim_steps() const { return claim_steps_; }
  std::uint64_t commits() const { return store_.commits(); }

 private:
  std::int64_t now() const;
  Job insert(Database& database, const NewJob& job) const;
  bool end(Database& database, const JobClaim& claim, const JobOutcome& outcome) const;
  bool put_back(Database& database, const JobClaim& claim) const;
  std::vector<WaitingJob> order_of_pending(Database& database, std::int64_t most) const;
  static bool is_paused_in(Database& database);
  static std::int64_t keep_youngest(Database& database, std::int64_t keep);  // gives how many go
  void recover();
  void notify(const std::vector<std::string>& ids);
  void tell(const std::vector<std::string>& ids) const;
  bool change(std::string_view sql, const std::string& id, bool comes = false);

  const JobQueueOptions options_;
  mutable Store store_;
  mutable std::mutex mutex_;
  std::condition_variable_any waiting_;
  std::uint64_t changes_ = 0;  // mutex_
  std::atomic<std::uint64_t> claim_steps_ = 0;
};

// A random UUID, of version 4.
std::string make_job_id();

}  // namespace heddle::engine
