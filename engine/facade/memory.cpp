// Memory, as people ask for it: who holds what, and eviction.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/facade/data.h"
#include "engine/facade/load_turn.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/kept_models.h"
#include "engine/session/load_ahead.h"

namespace heddle {

namespace {

engine::MemorySize size_of(const MemorySize& size) { return {size.bytes, size.share}; }

double seconds_of(const std::function<double()>& clock) {
  return clock ? clock()
               : std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
                     .count();
}

}  // namespace

engine::LoadTurns::Turn take_load_turn(engine::LoadTurns& turns, const engine::Hash128& model,
                                       std::string_view name, std::string_view device,
                                       const Patience& patience) {
  constexpr double kMostSeconds = 10;
  const double begun = seconds_of(patience.clock);
  try {
    return turns.take(model, [&] {
      return patience.stop.stop_requested() || seconds_of(patience.clock) - begun > kMostSeconds;
    });
  } catch (const engine::Error& error) {
    if (error.code() != engine::Code::cancelled) throw;
    if (patience.stop.stop_requested()) engine::throw_stopped();
    throw engine::Error(engine::Code::cancelled,
                        engine::cat(name, " is being loaded on ", device,
                                    " now. Try again when it is there, or cancel what loads it"));
  }
}

engine::MemoryPolicy memory_policy_of(const EngineOptions& options) {
  engine::MemoryPolicy policy;
  for (const auto& [device, size] : options.budgets) policy.budgets[device] = size_of(size);
  for (const auto& [device, size] : options.reserves) policy.reserves[device] = size_of(size);
  if (options.host_budget) policy.host_budget = size_of(*options.host_budget);
  if (options.pinned) policy.pinned = size_of(*options.pinned);
  policy.poll_seconds = options.memory_poll_seconds;
  policy.now = options.clock;
  return policy;
}

MemoryReport report_of(const engine::LedgerReport& ledger) {
  MemoryReport report{ledger.budget == engine::Ledger::kNoLimit ? 0 : ledger.budget,
                      ledger.headroom,
                      ledger.taken,
                      ledger.reserved,
                      ledger.available,
                      ledger.peak,
                      {},
                      0,
                      0,
                      {}};
  for (const engine::LedgerReport::Line& line : ledger.held)
    report.held.push_back(
        {std::string(engine::memory_kind_name(line.kind)), line.owner, line.bytes, line.pinned});
  for (std::size_t what = 0; what < ledger.evicted.size(); ++what)
    if (const auto& evicted = ledger.evicted[what]; evicted.times > 0)
      report.evictions.push_back(
          {std::string(engine::kEvictionNames[what]), evicted.times, evicted.bytes});
  return report;
}

bool is_named(std::string_view owner, std::string_view name) {
  return owner == name || (owner.starts_with(name) && owner.substr(name.size()).starts_with(' '));
}

MemoryReport Engine::host_memory() const {
  return translate_errors([&] {
    MemoryReport report = report_of(data_->environment->host_ledger->report());
    const engine::HostReport weights = data_->environment->host_weights->report();
    report.read_first = weights.read_first;
    report.read_again = weights.read_again;
    return report;
  });
}

std::uint64_t Engine::unload(std::string_view device, std::string_view model) {
  return translate_errors([&] { return data_->unload(device, model, {}); });
}

std::uint64_t Engine::Data::unload(std::string_view device, std::string_view model,
                                   const std::stop_token& stop) {
  std::uint64_t bytes = 0;
  bool is_known = device.empty(), has_model = model.empty();
  std::vector<std::string> models;
  for (std::size_t d = 0; d < environment->devices.size(); ++d) {
    const engine::RunDevice& one = environment->devices[d];
    const engine::Device& of = one.state->device();
    if (!device.empty() && named_by(device, of.names()) == engine::NamedBy::nothing) continue;
    is_known = true;
    if (model.empty()) {
      bytes += engine::unload(*environment, d);
      continue;
    }
    const std::uint64_t before = one.state->memory_use().reserved;
    for (const engine::ModelWeights& each : one.weights->models()) {
      models.push_back(each.name);
      if (!is_named(each.name, model)) continue;
      has_model = true;
      const engine::LoadTurns::Turn turn = take_load_turn(
          one.weights->load_turns(), each.model, each.name, of.name(), {options.clock, stop});
      engine::release_model(each.model, std::uint32_t(d), *environment);
      one.weights->unload(each.name);
    }
    one.state->trim();
    const std::uint64_t after = one.state->memory_use().reserved;
    bytes += before - std::min(before, after);
  }
  if (!is_known)
    throw engine::Error(engine::Code::not_found,
                        engine::cat("there is no device ", engine::quote(device), "; there are: ",
                                    engine::all_device_names(environment->topology)));
  if (!has_model)
    throw engine::Error(
        engine::Code::not_found,
        engine::cat("no model ", engine::quote(model), " is loaded",
                    device.empty() ? "" : engine::cat(" on ", device),
                    models.empty() ? ", nor any other"
                                   : engine::cat("; there are: ", engine::join(models, ", "))));
  return bytes;
}

std::uint64_t Engine::drop_cached() {
  return translate_errors([&] { return data_->environment->cache.clear(); });
}

void Engine::unload_idle() {
  translate_errors([&] { data_->unload_idle(); });
}

void Engine::Data::unload_idle() {
  if (options.idle_seconds <= 0) return;
  engine::expire(*environment, seconds_of(options.clock), options.idle_seconds);
}

void Engine::Data::unload_where_idle(const RunStatus& run) {
  for (const auto& other : runs_under_way())
    if (other.get() != &run) return;
  for (std::size_t d = 0; d < environment->devices.size(); ++d) engine::unload(*environment, d);
}

void Engine::Data::start_housekeeping() {
  if (options.idle_seconds <= 0 || options.clock) return;
  housekeeping =
      engine::start_thread("the thread that unloads idle models", [this](std::stop_token stop) {
        const std::chrono::duration<double> pause(std::clamp(options.idle_seconds / 10, 0.05, 5.0));
        try {
          std::mutex waiting;
          std::condition_variable_any stopped;
          while (!stop.stop_requested()) {
            try {
              unload_idle();
            } catch (const std::exception&) {
              // A device that has failed tells whoever gives it work.
            }
            std::unique_lock lock(waiting);
            stopped.wait_for(lock, stop, pause, [] { return false; });
          }
        } catch (const std::exception&) {
          // No memory for what it waits with: models stay until somebody needs their room.
        }
      });
}

}  // namespace heddle
