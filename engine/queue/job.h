// A job: a workflow that waits, runs or has ended, as the queue keeps it. The queue looks at none
// of the JSON texts. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace heddle::engine {

// The numbers stand in files.
enum class JobState { pending = 0, running = 1, done = 2, failed = 3, cancelled = 4, paused = 5 };

std::string_view job_state_name(JobState state);
constexpr bool has_ended(JobState state) {
  return state == JobState::done || state == JobState::failed || state == JobState::cancelled;
}

// Over 15 members: what whoever submits may say of a job.
struct NewJob {
  std::string id;                        // of no other job; empty: one is made (a UUID)
  std::int64_t priority = 0;             // higher ones run first
  std::optional<double> number;          // then smaller ones; none: behind all that had none
  bool front = false;                    // without a number: before all that had none
  std::string user, tag, batch, client;  // whom it belongs to, what it can be found by; may be ""
  std::string retry_of;                  // id of the job that it repeats
  // What takes as long as it does, and the models that it loads, by any names: equal ones of two
  // jobs mean that they are alike. "": not known, or none.
  std::string kind, model;
  bool is_background = false;  // behind those that are not, until it has waited for long
  bool is_paused = false;
  bool from_start = false;                  // without results that earlier jobs have kept
  std::string prompt, extra_data, targets;  // JSON
};

// Over 15 members: a row of the queue.
struct Job {
  std::string id;
  JobState state = JobState::pending;
  std::int64_t sequence = 0;    // rising with submissions, never used again
  std::int64_t generation = 0;  // how often it has been claimed
  std::int64_t priority = 0;
  double number = 0;
  bool is_cancel_wanted = false;                              // of a running one
  std::int64_t created_ms = 0, started_ms = 0, ended_ms = 0;  // of the system's clock; 0: not yet
  std::string user, tag, batch, client, retry_of, kind, model;
  bool is_background = false, from_start = false;
  std::string prompt, extra_data, targets;  // JSON
  std::string outputs, status;              // JSON, of one that has ended
};

// One claim of a job: what is said of it later holds for that claim alone.
struct JobClaim {
  std::string id;
  std::int64_t generation = 0;
  friend auto operator<=>(const JobClaim&, const JobClaim&) = default;
};

// How a run of a job has ended.
struct JobOutcome {
  JobState state = JobState::done;
  std::string outputs, status;  // JSON
  // Time that devices were busy with it, all of them together; nothing: as long as it ran.
  std::optional<double> device_seconds;
};

// What whoever claims a job would like.
struct ClaimWish {
  // That wait on devices: all models of a job (Job::model), or a file of one, without its folder.
  std::set<std::string> warm;
  bool interactive_only = false;  // no job that gives way to others
};

// Which jobs are meant: those that fit everything given. Nothing given: none, unless `all`.
struct JobSelection {
  std::vector<std::string> ids;
  std::string batch, tag, user;
  bool all = false;
  bool but_running = false;   // leave those alone that run
  bool only_running = false;  // and these, that do not
};

// Which jobs are listed: those that fit everything given.
struct JobSearch {
  std::vector<JobState> states;  // none: all
  std::string batch, tag, user;  // "": any
  std::int64_t before = 0;       // submitted before the one of this sequence; 0: all
  std::int64_t limit = 100;      // of them, the youngest
};

// There is no room for another job.
class QueueFull : public Error {
 public:
  explicit QueueFull(const std::string& message) : Error(Code::unsupported, message) {}
};

}  // namespace heddle::engine
