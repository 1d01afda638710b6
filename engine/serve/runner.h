// Takes jobs out of the queue and runs them, several at a time. No lock is held while a node runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/queue/job_queue.h"
#include "engine/serve/clients.h"
#include "engine/serve/run_progress.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

class RunMessages;

struct RunnerOptions {
  unsigned jobs = 4;  // at most under way at a time; how many fit is for the engine to say
  bool previews = true;
  std::filesystem::path traces;         // a folder for timelines of jobs, by id; empty: none
  std::function<std::int64_t()> clock;  // ms of the system; any thread; empty: the system's own
};

class Runner {
 public:
  Runner(heddle::Engine& engine, JobQueue& queue, Clients& clients, RunnerOptions options);
  // What runs is stopped and waits again in the queue.
  ~Runner();
  Runner(const Runner&) = delete;

  void start();
  // Those of the claims that are still under way are told to stop.
  void stop(const std::vector<JobClaim>& claims);
  // No node and no step of the job begins any more, and with `release` its memory is given back; it
  // keeps its place among those that run. False: it does not run.
  bool pause(const std::string& id, bool release = false);
  bool resume(const std::string& id);  // false: it does not run, or is not paused
  // Of the jobs that run, by id.
  std::map<std::string, RunSnapshot> snapshots() const;
  unsigned jobs() const { return options_.jobs; }
  // Of a client's job that runs: what is under way. Nothing: none runs.
  std::optional<std::string> running_node(const std::string& client) const;
  // Between two jobs, and now where none runs.
  void free(bool unload_models, bool drop_cached);

 private:
  struct Active {
    std::optional<heddle::Run> run;
    const RunMessages* messages = nullptr;
    std::string client;
    bool is_stopped = false;
    std::shared_ptr<RunProgress> progress;
    // As it is wanted: who asks may come before there is a run.
    enum class Pause { none, paused, released } pause = Pause::none;
  };
  void work(std::stop_token stop);
  void carry_out(const Job& job);
  JobOutcome run(const Job& job, RunMessages& messages, RunProgress& progress);
  Active* find(const std::string& id);  // with mutex_ held; nullptr: it does not run
  static void set_pause(heddle::Run& run, Active::Pause pause);
  bool is_among_many() const;
  void begin(const JobClaim& claim, Active active);
  void set_run(const JobClaim& claim, const heddle::Run& run);
  bool is_stopped(const JobClaim& claim) const;
  void forget(const JobClaim& claim);

  heddle::Engine& engine_;
  JobQueue& queue_;
  Clients& clients_;
  const RunnerOptions options_;
  std::size_t devices_ = 0;  // from start() on
  mutable std::mutex mutex_;
  std::map<JobClaim, Active> active_;  // mutex_
  std::atomic<bool> is_ending_ = false;
  std::vector<std::jthread> threads_;
};

// The workflow of a job as the engine reads it.
std::string workflow_text(const Job& job);

}  // namespace heddle::engine
