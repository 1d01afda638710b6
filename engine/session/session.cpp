#include "engine/session/session.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/program/weight_sources.h"
#include "engine/session/session_planning.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

SessionSpec::Infos infos_of(const heddle_value* record, std::string_view what) {
  SessionSpec::Infos infos;
  if (record == nullptr || kind_of(*record) == HEDDLE_KIND_NONE) return infos;
  const auto* fields = std::get_if<Record>(&record->content);
  if (fields == nullptr)
    throw Error(Code::invalid_argument,
                cat("the ", what, " of a model are ", describe(*record), ", not a record"));
  for (const auto& [name, value] : fields->fields) {
    const auto* tensor = std::get_if<Tensor>(&value->content);
    if (tensor == nullptr)
      throw Error(Code::invalid_argument, cat("the model's input ", quote(name), " is ",
                                              describe(*value), ", not a tensor"));
    infos.emplace(name, (*tensor)->info);
  }
  return infos;
}

}  // namespace

Session::Session(ChooseDevices choose_devices, SessionRequest request,
                 std::function<bool()> cancelled, Timeline* timeline, Cancel cancel)
    : context_{request, get_model(*request.model), std::move(cancelled), timeline,
               std::move(cancel)},
      choose_devices_(std::move(choose_devices)) {
  if (context_.request.constants.empty())
    throw Error(Code::invalid_argument, "a session has at least one set of inputs");
  if (context_.request.step_count == 0)
    throw Error(Code::invalid_argument, "a session has at least one step");
}

CallSpec Session::call_spec(std::span<const heddle_value* const> sets) const {
  const SessionRequest& request = context_.request;
  CallSpec call;
  call.model = request.model;
  call.step_count = request.step_count;
  call.schedule = infos_of(request.schedule.get(), "precomputed inputs");
  for (std::size_t i = 0; i < request.constants.size(); ++i)
    call.sets.push_back(
        {infos_of(request.constants[i].get(), "constants"), infos_of(sets[i], "step inputs")});
  return call;
}

std::vector<LoadTurns::Turn> Session::prepare(std::span<const heddle_value* const> sets) {
  const CallSpec call = call_spec(sets);
  const std::uint64_t ended = LoadTurns::ended();
  devices_ = choose_devices_(*context_.model, call);
  std::vector<LoadTurns::Turn> turns = take_load_turns();
  // What others have loaded meanwhile is there to be shared, and what they claimed is not claimed.
  if (LoadTurns::ended() != ended) devices_ = choose_devices_(*context_.model, call);
  std::vector<std::uint64_t> usable;  // as it is planned for
  for (const SessionDeviceSlot& device_slot : devices_.device_slots)
    usable.push_back(device_slot.budget);
  for (std::size_t p = 0; p < std::min(limits_.size(), devices_.device_slots.size()); ++p) {
    SessionDeviceSlot& device_slot = devices_.device_slots[p];
    device_slot.budget = std::min(device_slot.budget, limits_[p]);
    device_slot.spare = std::min(device_slot.spare, limits_[p] - device_slot.budget);
  }
  plan_.reset();
  plan_ = plan_at(devices_, call);
  auto prepared = std::make_unique<PreparedSession>(SessionView{context_, devices_, *plan_});
  prepared->set_up();
  prepared_ = std::move(prepared);
  // What has come free since it was planned counts, too: loading takes its time.
  for (std::size_t p = 0; p < usable.size(); ++p) {
    const SessionPlan::Arenas& own = plan_->arenas[p];
    usable[p] -=
        std::min(usable[p], own.persistent_bytes + own.scratch_bytes + own.staging_ring_bytes);
  }
  freed_.begin(std::move(usable));
  return turns;
}

std::vector<LoadTurns::Turn> Session::take_load_turns() const {
  std::set<WeightStore*, std::less<>> stores;  // by address: in the same order for all
  for (const SessionDeviceSlot& slot : devices_.device_slots) stores.insert(slot.weights);
  std::vector<LoadTurns::Turn> turns;
  for (WeightStore* store : stores)
    turns.push_back(store->load_turns().take(context_.model->identity, context_.cancelled));
  return turns;
}

void Session::tear_down() {
  prepared_.reset();
  for (const SessionDeviceSlot& device_slot : devices_.device_slots)
    device_slot.state->synchronize();
  for (const SessionDeviceSlot& device_slot : devices_.device_slots) device_slot.state->trim();
}

// First the same again, because what others took may have come free; then with half of what is
// above the least, then with that.
void Session::set_limits(int attempt) {
  if (attempt == 1 || !plan_) return;
  limits_.assign(devices_.device_slots.size(), kNoLimit);
  for (std::uint32_t p = 0; p < limits_.size(); ++p) {
    if (devices_.device_slots[p].budget == kNoLimit || p >= plan_->needs.size()) continue;
    const std::uint64_t least = plan_->min_bytes(p), need = std::max(least, plan_->need_bytes(p));
    limits_[p] = attempt == 2 ? least + (need - least) / 2 : least;
  }
}

bool Session::streams() const { return plan_ && !plan_->pages.empty(); }

std::vector<std::uint64_t> Session::usable_now() const {
  std::vector<std::uint64_t> usable;
  for (const SessionDeviceSlot& slot : devices_.device_slots)
    usable.push_back(slot.budget_now ? slot.budget_now() : 0);
  return usable;
}

void Session::use_freed_memory(std::uint32_t index) {
  if (prepared_ == nullptr || !streams()) return;
  std::vector<std::uint64_t> streamed;
  for (const SessionPlan::Needs& needs : plan_->needs) streamed.push_back(needs.step_page_bytes);
  const std::vector<std::uint64_t> usable = usable_now();
  if (!freed_.is_worth_it(usable, streamed, context_.request.step_count - index)) return;
  log(Level::info,
      cat("memory has come free: ", weights_name(*context_.model), " is set up anew before step ",
          index + 1, ", to stream less than ",
          format_bytes(std::accumulate(streamed.begin(), streamed.end(), std::uint64_t{0})),
          " a step"));
  tear_down();
  limits_.clear();
}

std::vector<Value> Session::step(std::uint32_t index, std::span<const heddle_value* const> sets) {
  const SessionRequest& request = context_.request;
  if (index >= request.step_count)
    throw Error(Code::invalid_argument,
                cat("step ", index, " of a session of ", request.step_count, " steps"));
  if (sets.size() != request.constants.size())
    throw Error(Code::invalid_argument,
                cat("step ", index, ": ", sets.size(),
                    " sets of inputs, the session was opened with ", request.constants.size()));
  if (context_.cancelled()) throw Error(Code::cancelled, "cancelled");
  constexpr int kAttempts = 4;
  for (int attempt = 1;; ++attempt) {
    try {
      if (attempt == 1) use_freed_memory(index);
      std::vector<LoadTurns::Turn> turns;
      if (prepared_ == nullptr) turns = prepare(sets);
      return prepared_->step(index, sets, may_capture_);
    } catch (Error& error) {
      // What makes room has been asked already. A plan that not even the least would do for has no
      // smaller one: it is made again once, when the captured graphs of sessions that have ended
      // are done, which stay until then.
      const bool is_refused = !plan_ && attempt > 1;
      if (error.code() != Code::out_of_memory || attempt == kAttempts || is_refused ||
          context_.cancelled()) {
        if (request.step_count > 1) error.at(cat("step ", index + 1));
        throw;
      }
    }
    // The step's inputs are still there, and nothing that it made has left it: it begins anew,
    // without what replays may take for themselves.
    if (prepared_ != nullptr && prepared_->has_recordings()) may_capture_ = false;
    tear_down();
    set_limits(attempt);
  }
}

}  // namespace heddle::engine
