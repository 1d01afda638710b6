#include "engine/serve/runner.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/serve/other_jobs.h"
#include "engine/serve/preview_method.h"
#include "engine/serve/run_events.h"
#include "engine/serve/run_messages.h"
#include "engine/serve/v1.h"
#include "heddle/models.hpp"

namespace heddle::engine {
namespace {

std::int64_t system_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::vector<std::string> working_devices(const heddle::Engine& engine) {
  std::vector<std::string> ids;
  for (const DeviceInfo& device : engine.devices())
    if (device.trouble.empty() && device.state == "healthy" && device.service == "enabled")
      ids.push_back(device.id);
  return ids;
}

// Whoever submits names the job: it is not to name another folder.
bool is_plain_name(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

std::string told(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known == nullptr ? error.what() : known->full();
}

// Background jobs come of age without a change of the queue.
constexpr std::chrono::seconds kBetweenLooks{30};
constexpr std::chrono::milliseconds kQuiet{100};  // then nobody waits for the queue's disk

constexpr int kBackground = -1;  // StartOptions::priority: takes no memory that others wait for

bool is_for_people(const heddle::Event& event) {
  return event.kind == heddle::Event::Kind::warning ||
         event.kind == heddle::Event::Kind::node_blocked;
}

// None is made where nothing is to be written; what is there is of use all the same.
std::filesystem::path folder_of_checkpoints(const RunnerOptions& options) {
  std::error_code ignored;
  const bool is_used =
      options.checkpoint_every > 0 || std::filesystem::exists(options.checkpoint_dir, ignored);
  return is_used ? options.checkpoint_dir : std::filesystem::path();
}

}  // namespace

std::size_t Runner::device_count() const {
  const std::lock_guard lock(mutex_);
  return warm_.devices().size();
}

Runner::Runner(heddle::Engine& engine, JobQueue& queue, Clients& clients, EventLog& events,
               Metrics& metrics, RunnerOptions options)
    : engine_(engine),
      queue_(queue),
      clients_(clients),
      events_(events),
      metrics_(metrics),
      options_(std::move(options)),
      checkpoints_(folder_of_checkpoints(options_)),
      seats_(options_.jobs, 1) {}

// Devices are counted once: to ask for their state takes a driver's locks, which runs need.
void Runner::start() {
  warm_ = WarmModels(working_devices(engine_));
  seats_ = Seats(options_.jobs, warm_.devices().size());
  checkpoints_.forget_others([this](const std::string& id) {
    const std::optional<Job> job = options_.resumes ? queue_.find(id) : std::nullopt;
    return job && !has_ended(job->state);
  });
  // As many interactive jobs may begin beside as many background ones that give way to them; and
  // one thread looks whether these have come of age.
  for (unsigned i = 0; i < 2 * std::max(1u, options_.jobs) + 1; ++i)
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
      if (!active.run || !active.has_begun || active.is_stopped || active.has_left) continue;
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
  Active& active = found->second;
  if (begins) active.has_begun = true;
  if (begins) return;
  active.has_left = active.wanted() == Active::Pause::released;
  if (!active.is_leaving) return;
  active.is_leaving = false;
  left_.notify_all();
}

// Whoever wants it stopped may have come before there was anything to stop.
void Runner::set_run(const JobClaim& claim, const heddle::Run& run) {
  bool is_stopped = false;
  {
    const std::lock_guard lock(mutex_);
    Active& active = active_.at(claim);
    active.run = run;
    warm_.ran_on(run.devices(), active.model);
    if (active.wanted() != Active::Pause::none) apply_pause(active);
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
  {
    const std::lock_guard lock(mutex_);
    const auto found = active_.find(claim);
    if (found == active_.end()) return;
    last = std::move(found->second.run);
    active_.erase(found);
    seats_.leave(claim);
    left_.notify_all();
  }
  last.reset();
  let_give_way();
}

// Pauses those that have to give way now, and lets go on those that need not any more.
void Runner::let_give_way() {
  std::vector<heddle::Run> runs;  // whose last copies must not go under the lock
  const std::lock_guard lock(mutex_);
  if (is_ending_) return;  // what waits goes on when there is a server again
  for (auto& [claim, active] : active_)
    if (active.is_background)
      seats_.set_gives_way(
          claim, queue_.gives_way({.created_ms = active.created_ms, .is_background = true}));
  const std::set<JobClaim> giving_way = seats_.giving_way();
  for (auto& [claim, active] : active_) {
    const bool gives_way = giving_way.contains(claim);
    if (gives_way == active.gives_way) continue;
    active.gives_way = gives_way;
    if (!active.run) continue;
    runs.push_back(*active.run);
    apply_pause(active);
  }
}

ClaimWish Runner::wish_of(Seats::Open open) const {
  // Before the lock, because this waits while a device loads weights.
  const std::vector<ResidentModel> resident =
      has_loaded_ ? Models(engine_).resident() : std::vector<ResidentModel>();
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<std::string>> busy;
  for (const auto& [claim, active] : active_)
    if (active.run && active.wanted() == Active::Pause::none) busy.push_back(active.run->devices());
  ClaimWish wish{warm_.waiting(busy), open == Seats::Open::interactive};
  if (resident.empty()) return wish;
  const std::set<std::string> idlest = warm_.idlest(busy);
  for (const ResidentModel& model : resident)
    if (idlest.contains(model.device))
      wish.warm.insert(model.name.substr(model.name.find_last_of("/ ") + 1));
  return wish;
}

// With the turn: between the look at the seats and the claim nobody takes one.
std::optional<Job> Runner::take_job() {
  Seats::Open open = Seats::Open::none;
  {
    const std::lock_guard lock(mutex_);
    open = seats_.open();
  }
  if (open == Seats::Open::none || queue_.counts().pending == 0) return {};
  const ClaimWish wish = wish_of(open);
  std::optional<Job> job;
  {
    const std::lock_guard claiming(claiming_);
    job = queue_.claim(wish);
    if (!job) return {};
    const JobClaim claim{job->id, job->generation};
    const std::lock_guard lock(mutex_);
    Active& active = active_[claim];
    active.client = job->client;
    active.model = job->model;
    active.is_background = job->is_background;
    active.created_ms = job->created_ms;
    active.progress = std::make_shared<RunProgress>();
    seats_.take(claim, queue_.gives_way(*job));
  }
  try {
    let_give_way();
  } catch (const std::exception& error) {  // the job is claimed all the same
    log(Level::error, cat("background jobs do not give way: ", told(error)));
  }
  return job;
}

// Who has the turn waits for a job: one thread is woken by a change, and not all of them.
void Runner::work(std::stop_token stop) {
  while (true) {
    std::optional<Job> job;
    Turn turn(beginning_);
    while (!job && !stop.stop_requested()) {
      const std::uint64_t seen = queue_.changes();
      try {
        job = take_job();
        if (job) break;
        if (!queue_.wait_for_change(seen, stop, kQuiet)) {
          queue_.tidy();
          queue_.wait_for_change(seen, stop, kBetweenLooks);
        }
        let_give_way();
      } catch (const std::exception& error) {  // the queue's disk is full, perhaps
        log(Level::error, cat("no job is taken from the queue: ", told(error)));
        queue_.wait_for_change(seen, stop, kBetweenLooks);
      }
    }
    if (!job) return;
    bool is_lost = false;
    try {
      carry_out(*job, std::move(turn));
    } catch (const std::exception& error) {
      log(Level::error, cat("job ", printable(job->id), ": ", told(error)));
      is_lost = true;
    }
    const JobClaim claim{job->id, job->generation};
    forget(claim);
    if (is_lost) put_back(claim);
    queue_.wake();  // there is a seat again
  }
}

void Runner::carry_out(const Job& job, Turn turn) {
  const JobClaim claim{job.id, job.generation};
  const Json prompt = parse_json(job.prompt, "prompt");
  RunMessages messages(job, prompt, clients_, options_.clock ? options_.clock : system_ms);
  metrics_.job_began(double(job.started_ms - job.created_ms) / 1000);
  const auto began = std::chrono::steady_clock::now();  // the system's clock is set back
  std::shared_ptr<RunProgress> progress;
  {
    const std::lock_guard lock(mutex_);
    Active& active = active_.at(claim);
    active.messages = &messages;
    progress = active.progress;
  }
  std::optional<JobOutcome> outcome;
  try {
    outcome = run(job, std::move(turn), messages, *progress);
    outcome->device_seconds = device_seconds(claim, *progress);
  } catch (...) {
    forget(claim);  // before the messages go
    throw;
  }
  forget(claim);
  if (is_ending_ && outcome->state == JobState::cancelled && queue_.give_back(claim)) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (finish(claim, *outcome)) count(*outcome, took.count());
  checkpoints_.forget(job.id);  // behind that: a job whose end is not known goes on from it
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
heddle::Run Runner::start_run(const Job& job, Turn& turn, StartOptions start, bool& goes_on) {
  if (options_.checkpoint_every > 0) {
    start.checkpoint = checkpoints_.file_of(job.id);
    start.checkpoint_every = options_.checkpoint_every;
    start.checkpoint_note = job.id;
    start.keeps_checkpoint = true;
  }
  if (const std::optional<heddle::RunCheckpoint> checkpoint = checkpoints_.load(job.id)) {
    turn = {};  // whole model files may be read to compare them
    try {
      heddle::Run run = engine_.resume(*checkpoint, start);
      log(Level::info, cat("job ", job.id, " goes on where it was interrupted"));
      goes_on = true;
      return run;
    } catch (const heddle::EngineError& error) {
      log(Level::warning, cat("job ", job.id, " begins anew: ", error.what()));
    }
  }
  const Workflow flow = engine_.parse(workflow_text(job), "prompt");
  return engine_.start(flow, std::move(start));
}

JobOutcome Runner::run(const Job& job, Turn turn, RunMessages& messages, RunProgress& progress) {
  const JobClaim claim{job.id, job.generation};
  RunEvents events(job.id, job.user, events_);
  messages.begin();
  try {
    StartOptions start;
    start.observer = [&, claim](const heddle::Event& event) {
      note(claim, event);
      if (event.kind == heddle::Event::Kind::node_shows && options_.shown)
        options_.shown(job, event.text);
      heddle::Event told = event;
      const std::string text = is_for_people(event) ? tellable(job, event.text) : std::string();
      if (!text.empty()) told.text = text;
      progress.take(event);
      events.take(told);
      metrics_.take(event);
      messages.take(told);
    };
    start.partly = true;
    start.anew = job.from_start;
    const std::size_t devices = device_count();
    wait_for_others(queue_, job, devices, is_ending_);
    start.among_many = is_among_many(queue_, devices);
    start.priority = queue_.gives_way(job) ? kBackground : 0;
    if (!options_.traces.empty() && is_plain_name(job.id))
      start.trace = options_.traces / (job.id + ".json");
    if (clients_.count() + events_.readers() > 0)
      start.previews = preview_method_of(job, options_.previews);
    bool goes_on = false;
    heddle::Run run = start_run(job, turn, std::move(start), goes_on);
    set_run(claim, run);
    turn = {};
    const heddle::Results results = run.wait();
    if (goes_on) messages.add_shown(results.ui());
    return messages.succeed();
  } catch (const heddle::EngineError& error) {
    // What a node says when it is told to stop is its own affair.
    if (error.code() == int(Code::cancelled) || is_stopped(claim)) return messages.interrupt();
    return messages.fail(tellable(job, error));
  }
}

}  // namespace heddle::engine
