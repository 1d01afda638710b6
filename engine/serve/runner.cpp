#include "engine/serve/runner.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/serve/run_events.h"
#include "engine/serve/run_messages.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

std::int64_t system_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::size_t working_devices(const heddle::Engine& engine) {
  const std::vector<DeviceInfo> devices = engine.devices();
  return std::size_t(std::ranges::count_if(devices, [](const DeviceInfo& device) {
    return device.trouble.empty() && device.state == "healthy" && device.service == "enabled";
  }));
}

// Whoever submits names the job: it is not to name another folder.
bool is_plain_name(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

// None is made where nothing is to be written; what is there is of use all the same.
std::filesystem::path folder_of_checkpoints(const RunnerOptions& options) {
  std::error_code ignored;
  const bool is_used =
      options.checkpoint_every > 0 || std::filesystem::exists(options.checkpoint_dir, ignored);
  return is_used ? options.checkpoint_dir : std::filesystem::path();
}

}  // namespace

// Fewer jobs than devices are faster when each is divided over several devices. From there on each
// keeps to few: jobs that are divided over the same devices take turns, which takes longer than to
// run side by side, even with streamed weights.
bool Runner::is_among_many() const {
  const JobCounts counts = queue_.counts();
  const std::int64_t jobs = counts.pending + counts.running;
  return jobs > 1 && std::uint64_t(jobs) >= devices_;
}

std::string workflow_text(const Job& job) {
  std::string text = cat("{\"prompt\": ", job.prompt);
  if (!job.extra_data.empty()) text += cat(", \"extra_data\": ", job.extra_data);
  if (!job.targets.empty()) text += cat(", \"partial_execution_targets\": ", job.targets);
  return text + "}";
}

Runner::Runner(heddle::Engine& engine, JobQueue& queue, Clients& clients, EventLog& events,
               Metrics& metrics, RunnerOptions options)
    : engine_(engine),
      queue_(queue),
      clients_(clients),
      events_(events),
      metrics_(metrics),
      options_(std::move(options)),
      checkpoints_(folder_of_checkpoints(options_)) {}

// Devices are counted once: to ask for their state takes a driver's locks, which runs need.
void Runner::start() {
  devices_ = working_devices(engine_);
  checkpoints_.forget_others([this](const std::string& id) {
    const std::optional<Job> job = options_.resumes ? queue_.find(id) : std::nullopt;
    return job && !has_ended(job->state);
  });
  for (unsigned i = 0; i < std::max(1u, options_.jobs); ++i)
    threads_.push_back(
        start_thread("a thread that runs jobs", [this](std::stop_token stop) { work(stop); }));
}

Runner::~Runner() {
  is_ending_ = true;
  for (std::jthread& thread : threads_) thread.request_stop();
  let_runs_leave();
  std::vector<heddle::Run> runs;  // whose last copy must not go under the lock
  {
    const std::lock_guard lock(mutex_);
    for (auto& [claim, active] : active_) {
      active.is_stopped = true;
      if (active.run) runs.push_back(*active.run);
    }
  }
  for (heddle::Run& run : runs) run.cancel();
  threads_.clear();
}

// What is between two steps of a node can go on from there: it comes there soon, and says so.
void Runner::let_runs_leave() {
  if (options_.checkpoint_every == 0) return;
  const auto end = std::chrono::steady_clock::now() + options_.shutdown;
  std::vector<heddle::Run> runs;  // whose last copy must not go under the lock
  {
    const std::lock_guard lock(mutex_);
    for (auto& [claim, active] : active_) {
      if (!active.run || !active.has_begun || active.is_stopped) continue;
      active.is_leaving = true;
      runs.push_back(*active.run);
    }
  }
  for (heddle::Run& run : runs) run.pause_and_release();
  std::unique_lock lock(mutex_);
  left_.wait_until(lock, end, [&] {
    return std::ranges::none_of(active_, [](const auto& one) { return one.second.is_leaving; });
  });
}

void Runner::note(const JobClaim& claim, const heddle::Event& event) {
  if (event.kind == heddle::Event::Kind::warning)
    return log(Level::warning,
               cat("job ", printable(claim.id), ": ",
                   event.node.empty() ? "" : cat("node ", quote(event.node), ": "), event.text));
  const bool begins = event.kind == heddle::Event::Kind::node_started;
  if (!begins && event.kind != heddle::Event::Kind::checkpoint_written) return;
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(claim);
  if (found == active_.end()) return;
  if (begins) found->second.has_begun = true;
  if (begins || !found->second.is_leaving) return;
  found->second.is_leaving = false;
  left_.notify_all();
}

void Runner::stop(const std::vector<JobClaim>& claims) {
  std::vector<heddle::Run> runs;
  {
    const std::lock_guard lock(mutex_);
    for (const JobClaim& claim : claims) {
      const auto found = active_.find(claim);
      if (found == active_.end()) continue;
      found->second.is_stopped = true;
      if (found->second.run) runs.push_back(*found->second.run);
    }
  }
  for (heddle::Run& run : runs) run.cancel();
}

Runner::Active* Runner::find(const std::string& id) {
  const auto found = active_.lower_bound({id, 0});
  return found == active_.end() || found->first.id != id ? nullptr : &found->second;
}

void Runner::set_pause(heddle::Run& run, Active::Pause pause) {
  if (pause == Active::Pause::none) return run.resume();
  pause == Active::Pause::released ? run.pause_and_release() : run.pause();
}

bool Runner::pause(const std::string& id, bool release) {
  std::optional<heddle::Run> run;  // whose last copy must not go under the lock
  const std::lock_guard lock(mutex_);
  Active* const active = find(id);
  if (active == nullptr || active->is_stopped) return false;
  active->pause = release ? Active::Pause::released : Active::Pause::paused;
  run = active->run;
  if (run) set_pause(*run, active->pause);
  return true;
}

bool Runner::resume(const std::string& id) {
  std::optional<heddle::Run> run;
  const std::lock_guard lock(mutex_);
  Active* const active = find(id);
  if (active == nullptr || active->pause == Active::Pause::none) return false;
  active->pause = Active::Pause::none;
  run = active->run;
  if (run) set_pause(*run, active->pause);
  return true;
}

std::map<std::string, RunSnapshot> Runner::snapshots() const {
  std::map<std::string, RunSnapshot> all;
  std::map<std::string, heddle::Run> runs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [claim, active] : active_) {
      RunSnapshot& told = all[claim.id] = active.progress->snapshot();
      told.is_paused = active.pause != Active::Pause::none;
      if (active.run) runs.emplace(claim.id, *active.run);
    }
  }
  for (const auto& [id, run] : runs) all[id].devices = run.devices();
  return all;
}

std::optional<RgbPicture> Runner::preview(const std::string& id) const {
  std::shared_ptr<RunProgress> progress;
  {
    const std::lock_guard lock(mutex_);
    const auto found = active_.lower_bound({id, 0});
    if (found == active_.end() || found->first.id != id) return {};
    progress = found->second.progress;
  }
  return progress->preview();
}

std::optional<std::string> Runner::running_node(const std::string& client,
                                                const Caller& caller) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [claim, active] : active_)
    if (active.client == client && !client.empty() && caller.may_see(active.messages->user()))
      return active.messages->running_node();
  return {};
}

void Runner::free(bool unload_models, bool drop_cached) {
  if (drop_cached) engine_.drop_cached();  // first: devices give back what is nobody's then
  if (unload_models || drop_cached) engine_.unload();
}

void Runner::begin(const JobClaim& claim, Active active) {
  const std::lock_guard lock(mutex_);
  active_[claim] = std::move(active);
}

// Whoever wants it stopped may have come before there was anything to stop.
void Runner::set_run(const JobClaim& claim, const heddle::Run& run) {
  bool is_stopped = false;
  {
    const std::lock_guard lock(mutex_);
    Active& active = active_.at(claim);
    active.run = run;
    if (active.pause != Active::Pause::none) set_pause(*active.run, active.pause);
    is_stopped = active.is_stopped || is_ending_;
  }
  if (is_stopped || queue_.is_cancel_wanted(claim)) {
    heddle::Run copy = run;
    copy.cancel();
  }
}

bool Runner::is_stopped(const JobClaim& claim) const {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_ || active_.at(claim).is_stopped) return true;
  }
  return queue_.is_cancel_wanted(claim);
}

void Runner::forget(const JobClaim& claim) {
  std::optional<heddle::Run> last;  // waits for its threads, so not under the lock
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(claim);
  last = std::move(found->second.run);
  active_.erase(found);
  left_.notify_all();
}

void Runner::work(std::stop_token stop) {
  while (const std::optional<Job> job = queue_.wait_and_claim(stop)) {
    try {
      carry_out(*job);
    } catch (const Error& error) {  // of the queue: its disk is full, perhaps
      log(Level::error, cat("job ", printable(job->id), ": ", error.full()));
    } catch (const std::exception& error) {
      log(Level::error, cat("job ", printable(job->id), ": ", error.what()));
    }
  }
}

void Runner::carry_out(const Job& job) {
  const JobClaim claim{job.id, job.generation};
  const Json prompt = parse_json(job.prompt, "prompt");
  RunMessages messages(job, prompt, clients_, options_.clock ? options_.clock : system_ms);
  metrics_.job_began(double(job.started_ms - job.created_ms) / 1000);
  const auto progress = std::make_shared<RunProgress>();
  begin(claim, {std::nullopt, &messages, job.client, false, progress});
  const auto began = std::chrono::steady_clock::now();  // the system's clock is set back
  std::optional<JobOutcome> outcome;
  try {
    outcome = run(job, messages, *progress);
  } catch (...) {
    forget(claim);
    throw;
  }
  forget(claim);
  if (is_ending_ && outcome->state == JobState::cancelled && queue_.give_back(claim)) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (queue_.finish(claim, *outcome)) count(*outcome, took.count());
  checkpoints_.forget(job.id);
  messages.end();
}

void Runner::count(const JobOutcome& outcome, double seconds) {
  std::string code;
  if (outcome.state == JobState::failed)
    code = v1_code(int(parse_json(outcome.status, "status").at("error").at("code").as_int64()));
  metrics_.job_ended(outcome.state, seconds, code);
}

// One that cannot go on begins anew, whatever the reason: its file is damaged, a plugin or a model
// is another one, or the devices are.
heddle::Run Runner::start_run(const Job& job, StartOptions start, bool& goes_on) {
  if (options_.checkpoint_every > 0) {
    start.checkpoint = checkpoints_.file_of(job.id);
    start.checkpoint_every = options_.checkpoint_every;
    start.checkpoint_note = job.id;
  }
  if (const std::optional<heddle::RunCheckpoint> checkpoint = checkpoints_.load(job.id)) {
    try {
      heddle::Run run = engine_.resume(*checkpoint, start);
      log(Level::info, cat("job ", job.id, " goes on where it was interrupted"));
      goes_on = true;
      return run;
    } catch (const heddle::EngineError& error) {
      log(Level::warning, cat("job ", job.id, " begins anew: ", error.what()));
    }
  }
  return engine_.start(engine_.parse(workflow_text(job), "prompt"), std::move(start));
}

JobOutcome Runner::run(const Job& job, RunMessages& messages, RunProgress& progress) {
  const JobClaim claim{job.id, job.generation};
  RunEvents events(job.id, job.user, events_);
  messages.begin();
  try {
    StartOptions start;
    start.observer = [&, claim](const heddle::Event& event) {
      note(claim, event);
      if (event.kind == heddle::Event::Kind::node_shows && options_.shown)
        options_.shown(job, event.text);
      progress.take(event);
      events.take(event);
      metrics_.take(event);
      messages.take(event);
    };
    start.partly = true;
    start.among_many = is_among_many();
    if (!options_.traces.empty() && is_plain_name(job.id))
      start.trace = options_.traces / (job.id + ".json");
    start.previews = options_.previews && clients_.count() + events_.readers() > 0;
    bool goes_on = false;
    heddle::Run run = start_run(job, std::move(start), goes_on);
    set_run(claim, run);
    const heddle::Results results = run.wait();
    if (goes_on) messages.add_shown(results.ui());
    return messages.succeed();
  } catch (const heddle::EngineError& error) {
    // What a node says when it is told to stop is its own affair.
    if (error.code() == int(Code::cancelled) || is_stopped(claim)) return messages.interrupt();
    return messages.fail(error);
  }
}

}  // namespace heddle::engine
