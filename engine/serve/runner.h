// Takes jobs out of the queue and runs them, several at a time. No lock is held while a node runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/queue/job_queue.h"
#include "engine/serve/clients.h"
#include "engine/serve/event_log.h"
#include "engine/serve/job_checkpoints.h"
#include "engine/serve/metrics.h"
#include "engine/serve/run_progress.h"
#include "engine/serve/seats.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

class RunMessages;

struct RunnerOptions {
  // At most under way at a time; how many fit is for the engine to say. Beside them background jobs
  // that give way, and are paused.
  unsigned jobs = 4;
  // A job's own preview_method (extra_data) counts more.
  PreviewMethod previews = PreviewMethod::linear;
  std::filesystem::path traces;         // a folder for timelines of jobs, by id; empty: none
  std::function<std::int64_t()> clock;  // ms of the system; any thread; empty: the system's own
  // Called with what a node shows (JSON) before others are told, on a thread of the run; or empty.
  std::function<void(const Job& job, std::string_view ui)> shown;
  // What errors and warnings of a job may say to whoever sees the job: {"...": text or texts},
  // which keeps its shape. Any thread; empty: all of it.
  std::function<Json(const Job& job, Json texts)> tellable;
  // What a job goes on from after the server has ended in its midst is written at every so many
  // steps, into a folder of nothing else. 0: nothing is, and such jobs run again.
  unsigned checkpoint_every = 0;
  std::filesystem::path checkpoint_dir;
  bool resumes = true;  // false: what earlier servers have written there goes
  // At the end jobs get so long to come to their next step, from which they go on later. Only where
  // that is written; they are stopped at once else.
  std::chrono::milliseconds shutdown{10'000};
};

// Over 15 members: all that a job has to do with while it runs, and what is known of those that do.
class Runner {
 public:
  Runner(heddle::Engine& engine, JobQueue& queue, Clients& clients, EventLog& events,
         Metrics& metrics, RunnerOptions options);
  // What runs is stopped and waits again in the queue, after RunnerOptions::shutdown at the latest.
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
  std::optional<RgbPicture> preview(const std::string& id) const;  // the last one, if there is one
  unsigned jobs() const { return options_.jobs; }
  // Of a client's job that runs, and that the caller may see: what is under way. Nothing: none
  // runs.
  std::optional<std::string> running_node(const std::string& client, const Caller& caller) const;
  // Somebody has: from now on jobs that want what is on the devices are warm there, and not only
  // those that are like the last one.
  void models_were_loaded() { has_loaded_ = true; }
  // Between two jobs, and now where none runs.
  void free(bool unload_models, bool drop_cached);

 private:
  struct Active {
    std::string client, model;
    bool is_background = false;  // what JobQueue::gives_way() asks for, with created_ms
    std::int64_t created_ms = 0;
    std::shared_ptr<RunProgress> progress;
    std::optional<heddle::Run> run;         // as soon as there is one
    const RunMessages* messages = nullptr;  // the same
    bool is_stopped = false;
    // As it is wanted: who asks may come before there is a run.
    enum class Pause { none, paused, released } pause = Pause::none;
    bool gives_way = false;    // to interactive jobs: released, whatever else is wanted
    bool has_begun = false;    // a node of it
    bool is_leaving = false;   // the server ends, and waits until it can go on later
    bool has_left = false;     // it is released, and what it goes on from is written
    Pause told = Pause::none;  // what the run was told last
    Pause wanted() const { return gives_way ? Pause::released : pause; }
  };
  void work(std::stop_token stop);
  std::optional<Job> take_job();
  ClaimWish wish_of(Seats::Open open) const;
  // Held from before a job is claimed until its run has begun.
  using Turn = std::unique_lock<std::mutex>;
  void carry_out(const Job& job, Turn turn);
  void count(const JobOutcome& outcome, double seconds);
  JobOutcome run(const Job& job, Turn turn, RunMessages& messages, RunProgress& progress);
  Active* find(const std::string& id);  // with mutex_ held; nullptr: it does not run
  static void apply_pause(Active& active);
  void let_give_way();
  // `goes_on` comes back true where it is the rest of an interrupted one.
  heddle::Run start_run(const Job& job, Turn& turn, StartOptions start, bool& goes_on);
  void note(const JobClaim& claim, const heddle::Event& event);
  // What may be said of them: without what is somebody else's.
  heddle::EngineError tellable(const Job& job, const heddle::EngineError& error) const;
  std::string tellable(const Job& job, std::string_view text) const;
  void let_runs_leave();
  std::size_t device_count() const;
  void set_run(const JobClaim& claim, const heddle::Run& run);
  bool is_stopped(const JobClaim& claim) const;
  double device_seconds(const JobClaim& claim, const RunProgress& progress) const;
  void forget(const JobClaim& claim);
  bool finish(const JobClaim& claim, const JobOutcome& outcome);
  void put_back(const JobClaim& claim);  // of which nothing is known to have come

  heddle::Engine& engine_;
  JobQueue& queue_;
  Clients& clients_;
  EventLog& events_;
  Metrics& metrics_;
  const RunnerOptions options_;
  const JobCheckpoints checkpoints_;
  // Jobs are claimed and begun one after another: who comes first has devices and memory first,
  // and the next claim sees where that is.
  std::mutex beginning_;
  // Held while a job is claimed, which others then see to run, and becomes an active one. Taken
  // before mutex_.
  std::mutex claiming_;
  mutable std::mutex mutex_;
  std::map<JobClaim, Active> active_;  // mutex_
  Seats seats_;                        // mutex_
  std::set<std::string> put_back_;     // mutex_; ids of jobs that put_back() has given back
  WarmModels warm_;                    // mutex_; devices are counted once, by start()
  std::condition_variable left_;       // an active one leaves no more
  std::atomic<bool> is_ending_ = false, has_loaded_ = false;
  std::vector<std::jthread> threads_;
};

// The workflow of a job as the engine reads it.
std::string workflow_text(const Job& job);

}  // namespace heddle::engine
