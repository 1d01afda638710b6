#include "engine/facade/run_admission.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/kept_models.h"
#include "engine/session/run_needs.h"

namespace heddle {

namespace {

constexpr unsigned kMostRestarts = 3;
constexpr unsigned kMostPlans = 100;
constexpr std::uint64_t kEverything = std::uint64_t{1} << 60;

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool waits_for_others(const Run::Data& run) { return run.options.memory_wait_seconds > 0; }

// Of host memory, for what nobody counts.
std::uint64_t host_floor_of(const Engine::Data& engine) {
  constexpr std::uint64_t kMost = 64 << 20, kPart = 64;
  const std::uint32_t host = std::uint32_t(engine.environment->devices.size());
  const std::uint64_t budget = engine::budget_of(host, *engine.environment);
  if (const auto& given = engine.options.host_floor)
    return engine::MemorySize{given->bytes, given->share}.of(budget);
  return std::min(kMost, budget / kPart);
}

// Every run has the floor of host memory, however little it is known to need.
void add_floor(std::vector<engine::MemoryNeed>& needs, std::uint32_t host, std::uint64_t floor) {
  if (floor == 0) return;
  auto need = std::ranges::find(needs, host, &engine::MemoryNeed::memory);
  if (need == needs.end()) {
    engine::MemoryNeed none;
    none.memory = host;
    need = needs.insert(needs.end(), std::move(none));
  }
  for (std::uint64_t* bytes : {&need->least, &need->all, &need->own})
    *bytes = std::max(*bytes, floor);
}

// Who waits for what other programs hold needs room for everything; else a run that is alone
// streams what finds none.
std::vector<engine::MemoryNeed> needs_of(const Ready& ready, bool needs_room, bool is_alone,
                                         const Engine::Data& engine) {
  engine::Environment& environment = *engine.environment;
  std::vector<engine::MemoryNeed> needs = engine::run_needs(
      ready.graph, ready.plan, ready.inferred, ready.wanted, ready.topology, environment);
  add_floor(needs, std::uint32_t(environment.devices.size()), host_floor_of(engine));
  for (engine::MemoryNeed& need : needs) {
    const std::uint64_t all = std::min(need.all, need.limit);
    if (needs_room && all <= engine::budget_of(need.memory, environment))
      need.least = std::max(need.least, all);
    if (is_alone) need.all = need.own = need.limit = kEverything;
  }
  return needs;
}

}  // namespace

Ready plan_run(const Run::Data& run, Engine::Data& engine, bool by_budget) {
  engine::DeviceLoad load = engine.device_load(run.status.get());
  load.among_many = run.options.among_many;
  std::map<std::uint32_t, std::string> avoid;
  for (const std::uint32_t d : run.restarts.crowded_devices)
    avoid[d] = "it had no room for this run";
  for (const std::uint32_t d : run.restarts.failed_devices) avoid[d] = "it has failed this run";
  return engine.prepare(
      *run.flow, {Describe::for_a_run, std::move(load), run.given, run.options.fetch, true,
                  run.options.partly, std::move(avoid), by_budget, run.so_far.saved.content(),
                  run.has_checkpoints() ? &engine.file_hashes() : nullptr, run.so_far.begun.get(),
                  run.options.fidelity, run.options.anew});
}

void enter(Run::Data& run, Engine::Data& engine) {
  run.ticket.emplace(engine.environment->admission.enter(
      {.id = run.id,
       .priority = run.options.priority,
       .needs =
           [&run, &engine] {
             return needs_of(run.ready, waits_for_others(run), run.restarts.is_alone, engine);
           },
       .wake = [wake_up = run.status->control.wake_up()] { wake_up->notify(); },
       .counts_alone = waits_for_others(run),
       .after = run.options.writes_after,
       .at_front = run.restarts.is_alone,
       .preempt = [status = run.status] { status->control.preempt(); }}));
}

void wait_to_go_on(Run::Data& run, Engine::Data& engine) {
  run.so_far.saved.set_places(
      engine::places_of(run.ready.graph, run.ready.plan, run.ready.topology));
  *run.status->work.lock() = {};
  run.ticket->give_back();  // first: another run that comes may be counting what this one needs
  run.ready = {};
  engine.finish_drains();
  const engine::Error cancelled(engine::Code::cancelled, "cancelled");
  if (!run.status->control.rearm()) throw cancelled;
  if (run.status->control.paused()) {
    try {
      engine.unload_where_idle(*run.status);
    } catch (const engine::Error&) {
      // A device that has failed tells whoever gives it work.
    }
    run.status->control.wait_while_paused();
  }
  if (run.status->control.cancelled()) throw cancelled;
  const bool by_budget = waits_for_others(run);
  Ready ready = plan_run(run, engine, by_budget);
  *run.status->work.lock() = engine.planned_work(ready.plan);
  run.status->done_seconds = 0;
  run.ready = std::move(ready);
  run.ticket->replace_needs(
      [&] { return needs_of(run.ready, by_budget, run.restarts.is_alone, engine); });
  run.ticket->set_paused(false);
}

engine::MemoryWait memory_wait_of(Run::Data& run, Engine::Data& engine) {
  const std::function<double()>& clock = engine.options.clock;
  return {run.options.memory_wait_seconds, clock ? clock : system_seconds,
          [&](std::uint32_t memory) { return engine.memory_name(memory); },
          [&](bool by_budget) {
            Ready ready = plan_run(run, engine, by_budget);
            PlannedWork work = engine.planned_work(ready.plan);
            if (!run.ticket->replace_needs(
                    [&] { return needs_of(ready, by_budget, run.restarts.is_alone, engine); }))
              return false;
            run.ready = std::move(ready);
            *run.status->work.lock() = std::move(work);
            return true;
          }};
}

std::vector<std::uint32_t> devices_of(const engine::Plan& plan) {
  std::set<std::uint32_t> devices;
  for (const engine::Assignment& assignment : plan.assignments) {
    if (!assignment.on_host) devices.insert(assignment.devices.begin(), assignment.devices.end());
    for (const engine::PlacedCall& call : assignment.calls)
      devices.insert(call.placement.devices.begin(), call.placement.devices.end());
  }
  return {devices.begin(), devices.end()};
}

void plan_again(Run::Data& run, Engine::Data& engine) {
  if (++run.restarts.plans > kMostPlans)
    throw engine::Error(engine::Code::io, "the devices of this run were disabled again and again");
  run.ticket.reset();
  run.ready = {};
  run.ready = plan_run(run, engine, waits_for_others(run));
  *run.status->work.lock() = engine.planned_work(run.ready.plan);
  run.status->done_seconds = 0;
  enter(run, engine);
}

std::vector<std::uint64_t> device_failures(const Engine::Data& engine) {
  std::vector<std::uint64_t> failures;
  for (const engine::RunDevice& device : engine.environment->devices)
    failures.push_back(device.health->failed_runs());
  return failures;
}

namespace {

// The next try writes its own: "trace.json" becomes "trace.try1.json".
void keep_trace(const Run::Data& run) {
  const std::filesystem::path& path = run.options.trace;
  if (path.empty()) return;
  std::filesystem::path kept = path;
  kept.replace_filename(
      engine::cat(path.stem().string(), ".try", run.restarts.count, path.extension().string()));
  std::error_code ignored;  // then it is written over
  std::filesystem::rename(path, kept, ignored);
}

// Of what is pinned, that of the run itself: it is kept for such runs, and not from them. Whether
// there was any.
bool release_own_models(const engine::Plan& plan, engine::Environment& environment) {
  bool is_any = false;
  for (const engine::Assignment& assignment : plan.assignments)
    for (const engine::PlacedCall& call : assignment.calls)
      for (const std::uint32_t d : call.placement.devices)
        for (const engine::ModelWeights& each : environment.devices[d].weights->models()) {
          if (!each.is_kept() || call.of == nullptr || each.model != call.of->identity) continue;
          is_any = true;
          engine::release_model(each.model, d, environment);
          engine::log(engine::Level::warning,
                      engine::cat(each.name, " is not pinned on ",
                                  environment.devices[d].state->device().name(),
                                  " any more: a run of it needs more room than it leaves"));
        }
  return is_any;
}

}  // namespace

bool begins_again(Run::Data& run, Engine::Data& engine, const engine::Error& failure,
                  const std::vector<std::uint64_t>& before) {
  if (run.status->control.has_computed()) return false;
  const std::vector<std::uint64_t> now = device_failures(engine);
  std::set<std::uint32_t> failed = run.restarts.failed_devices;
  for (std::uint32_t d = 0; d < now.size(); ++d)
    if (now[d] > before[d]) failed.insert(d);
  const bool is_short = failure.code() == engine::Code::out_of_memory;
  const bool lacked_memory =
      is_short && (release_own_models(run.ready.plan, *engine.environment) ||
                   (!run.restarts.is_alone && run.ticket && run.ticket->ran_beside_others()) ||
                   (waits_for_others(run) && run.restarts.count < kMostRestarts));
  std::set<std::uint32_t> crowded = run.restarts.crowded_devices;
  if (const auto device = run.restarts.finished.crowded; device && !lacked_memory)
    crowded.insert(*device);
  std::set<std::uint32_t> left_out = failed;
  left_out.insert(crowded.begin(), crowded.end());
  const bool has_others =
      (failed != run.restarts.failed_devices || crowded != run.restarts.crowded_devices) &&
      left_out.size() < now.size();
  if (!lacked_memory && !has_others) return false;
  run.ticket.reset();
  if (!run.status->control.rearm()) return false;
  try {
    run.restarts.failed_devices = failed;
    run.restarts.crowded_devices = crowded;
    // Nobody knows what the device has done to it; but files are not written twice.
    engine::SavedContent saved = run.so_far.saved.content();
    saved.states.clear();
    saved.outputs.clear();
    run.so_far.saved.set(std::move(saved));
    // A run that waits holds nothing that others may be waiting for.
    for (auto& [id, node] : run.restarts.finished.nodes)
      for (engine::Value& value : node.outputs)
        if (value) value = engine::brought_to_host(*engine.environment, std::move(value));
    run.ready = {};
    run.ready = plan_run(run, engine, waits_for_others(run));
    *run.status->work.lock() = engine.planned_work(run.ready.plan);
    run.status->done_seconds = 0;
    ++run.restarts.count;
    run.restarts.why =
        engine::cat(failure.full(), lacked_memory ? ". The run begins again, alone on its devices"
                                                  : ". The run begins again on other devices");
    run.restarts.is_alone = run.restarts.is_alone || lacked_memory;
    keep_trace(run);
    enter(run, engine);
    return true;
  } catch (const engine::Error&) {
    return false;  // what failed first is what has to be reported
  }
}

}  // namespace heddle
