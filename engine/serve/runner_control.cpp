// What others ask of the jobs under way: stop, pause, go on; how far they are.
#include <utility>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/run_messages.h"
#include "engine/serve/runner.h"
#include "engine/serve/v1.h"

namespace heddle::engine {

void Runner::stop(const std::vector<JobClaim>& claims) {
  std::vector<heddle::Run> runs;
  {
    const std::scoped_lock lock(claiming_, mutex_);
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

void Runner::apply_pause(Active& active) {
  const Active::Pause wanted = active.wanted();
  // One that is released already says nothing again.
  if (std::exchange(active.told, wanted) != wanted) active.has_left = false;
  if (wanted == Active::Pause::none) return active.run->resume();
  wanted == Active::Pause::released ? active.run->pause_and_release() : active.run->pause();
}

// What a job has made is not to be made again because the queue's disk is full when it ends: its
// end is kept until it can be written. Jobs are not claimed meanwhile either.
bool Runner::finish(const JobClaim& claim, const JobOutcome& outcome) {
  constexpr std::chrono::seconds kBetweenTries{1};
  for (bool is_first = true;; is_first = false) {
    const std::uint64_t seen = queue_.changes();
    try {
      return queue_.finish(claim, outcome);
    } catch (const std::exception& error) {
      const auto* const known = dynamic_cast<const Error*>(&error);
      const bool may_pass = known == nullptr || known->code() == Code::io ||
                            known->code() == Code::unsupported ||  // the file is busy
                            known->code() == Code::out_of_memory;
      if (is_ending_ || !may_pass) throw;
      if (is_first)
        log(Level::error, cat("job ", printable(claim.id),
                              ": its end cannot be written, which is tried again: ", error.what()));
    }
    queue_.wait_for_change(seen, {}, kBetweenTries);
  }
}

// One that nothing can be done with is not to be claimed again and again: the second time it fails.
void Runner::put_back(const JobClaim& claim) {
  try {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = put_back_.insert(claim.id).second;
    }
    if (is_first && queue_.give_back(claim)) return;
    const bool is_unwanted = queue_.is_cancel_wanted(claim);
    queue_.finish(claim, {is_unwanted ? JobState::cancelled : JobState::failed, "", "", 0});
  } catch (const std::exception& error) {
    log(Level::error, cat("job ", printable(claim.id), " is not put back: ", error.what()));
  }
}

bool Runner::pause(const std::string& id, bool release) {
  std::optional<heddle::Run> run;  // whose last copy must not go under the lock
  const std::scoped_lock lock(claiming_, mutex_);
  Active* const active = find(id);
  if (active == nullptr || active->is_stopped) return false;
  active->pause = release ? Active::Pause::released : Active::Pause::paused;
  run = active->run;
  if (run) apply_pause(*active);
  return true;
}

bool Runner::resume(const std::string& id) {
  std::optional<heddle::Run> run;
  const std::scoped_lock lock(claiming_, mutex_);
  Active* const active = find(id);
  if (active == nullptr || active->pause == Active::Pause::none) return false;
  active->pause = Active::Pause::none;
  run = active->run;
  if (run) apply_pause(*active);
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
      told.gives_way = active.gives_way;
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
    if (active.client == client && !client.empty() && active.messages != nullptr &&
        caller.may_see(active.messages->user()))
      return active.messages->running_node();
  return {};
}

void Runner::free(bool unload_models, bool drop_cached) {
  if (drop_cached) engine_.drop_cached();  // first: devices give back what is nobody's then
  if (unload_models || drop_cached) engine_.unload();
}

// What its nodes took, on each of the devices that its plan keeps busy.
double Runner::device_seconds(const JobClaim& claim, const RunProgress& progress) const {
  std::optional<heddle::Run> run;
  {
    const std::lock_guard lock(mutex_);
    run = active_.at(claim).run;
  }
  const std::size_t devices = run ? run->devices().size() : 0;
  return progress.node_seconds() * double(std::max<std::size_t>(devices, 1));
}

std::string Runner::tellable(const Job& job, std::string_view text) const {
  if (!options_.tellable) return std::string(text);
  const Json told = options_.tellable(job, Json(Json::object().set("text", text)));
  return told.at("text").as_string();
}

heddle::EngineError Runner::tellable(const Job& job, const heddle::EngineError& error) const {
  if (!options_.tellable) return error;
  Json texts = Json::object();
  texts.set("what", error.what()).set("trail", json_list(error.trail()));
  const Json told = options_.tellable(job, std::move(texts));
  std::vector<std::string> trail;
  for (const Json& frame : told.at("trail").as_array()) trail.push_back(frame.as_string());
  if (told.at("what").as_string() != error.what())
    log(Level::warning, cat("job ", printable(job.id), ": ", error.what()));
  return {error.code(), std::move(trail), told.at("what").as_string()};
}

std::string workflow_text(const Job& job) {
  std::string text = cat("{\"prompt\": ", job.prompt);
  if (!job.extra_data.empty()) text += cat(", \"extra_data\": ", job.extra_data);
  if (!job.targets.empty()) text += cat(", \"partial_execution_targets\": ", job.targets);
  return text + "}";
}

}  // namespace heddle::engine
