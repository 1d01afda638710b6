#include "engine/session/session_graphs.h"

#include <optional>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/program/concurrent_ops.h"

namespace heddle::engine {

namespace {

using Kind = SessionAction::Kind;

// The device slot whose segment an action ends, if there is one.
std::optional<std::uint32_t> ends_on(const SessionPlan& plan, const SessionAction& action,
                                     SessionGraphs::Grain grain) {
  switch (action.kind) {
    case Kind::launch:
      return {};
    case Kind::block:
      if (grain == SessionGraphs::Grain::step) return {};
      return plan.blocks[action.index].device_slot;
    case Kind::transfer:
      return plan.transfers[action.index].from;
    case Kind::await:
      return plan.transfers[action.index].to;
    case Kind::page_in:
    case Kind::await_page:
      return plan.pages[action.index].device_slot;
  }
  return {};
}

// Launches by segment, as actions of the step.
std::vector<std::vector<std::uint32_t>> find_segments(const SessionPlan& plan,
                                                      std::size_t device_slots,
                                                      SessionGraphs::Grain grain) {
  const std::vector<SessionAction>& actions = plan.phases[int(Phase::per_step)];
  std::vector<std::vector<std::uint32_t>> found, open(device_slots);
  const auto end = [&](std::uint32_t device_slot) {
    if (!open[device_slot].empty()) found.push_back(open[device_slot]);
    open[device_slot].clear();
  };
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == Kind::launch) open[plan.ops[actions[i].index].device_slot].push_back(i);
    if (const auto device_slot = ends_on(plan, actions[i], grain)) end(*device_slot);
  }
  for (std::uint32_t device_slot = 0; device_slot < device_slots; ++device_slot) end(device_slot);
  return found;
}

// Two streams of one device whose launches are kept in one graph: nobody has to wait while they are
// recorded.
class Recorder {
 public:
  explicit Recorder(const Device& device) : device_(device), main_(device) {}

  // `ops`: of the plan.
  std::unique_ptr<CapturedGraph> record(const SessionPlan& plan,
                                        const std::vector<std::uint32_t>& ops,
                                        const SessionGraphs::Launch& launch) {
    const bool has_lanes = device_.captures_other_streams() &&
                           plan.arenas[plan.ops[ops.front()].device_slot].has_lanes;
    if (!has_lanes)
      return main_.capture([&] {
        for (const std::uint32_t op : ops) launch(op, main_);
      });
    if (side_ == nullptr) side_ = std::make_unique<Stream>(device_);
    const std::vector<ConcurrentOp> lanes = concurrent_ops(plan, ops);
    // By op: reached when it is done, where the other lane waits for it.
    std::vector<std::optional<Event>> done(ops.size());
    for (const ConcurrentOp& one : lanes)
      if (one.after >= 0 && !done[one.after]) done[one.after].emplace(device_);
    Event begun(device_), ended(device_);
    return main_.capture([&] {
      main_.record(begun);
      side_->wait_for(begun);
      for (std::size_t i = 0; i < ops.size(); ++i) {
        Stream& stream = lanes[i].lane == 0 ? main_ : *side_;
        if (lanes[i].after >= 0) stream.wait_for(*done[lanes[i].after]);
        launch(ops[i], stream);
        if (done[i]) stream.record(*done[i]);
      }
      side_->record(ended);
      main_.wait_for(ended);
    });
  }

 private:
  const Device& device_;
  Stream main_;
  std::unique_ptr<Stream> side_;
};

}  // namespace

SessionGraphs::SessionGraphs(const SessionPlan& plan, std::span<const Device* const> device_slots,
                             Grain grain, const Launch& launch, const Take& take) {
  const std::vector<SessionAction>& actions = plan.phases[int(Phase::per_step)];
  held_.resize(actions.size(), false);
  std::vector<std::unique_ptr<Recorder>> recorders(device_slots.size());
  for (const std::vector<std::uint32_t>& launches :
       find_segments(plan, device_slots.size(), grain)) {
    const std::uint32_t device_slot = plan.ops[actions[launches.front()].index].device_slot;
    const Device& device = *device_slots[device_slot];
    if (!device.can_capture()) continue;
    std::unique_ptr<Recorder>& recorder = recorders[device_slot];
    std::vector<std::uint32_t> ops;
    for (const std::uint32_t i : launches) ops.push_back(actions[i].index);
    try {
      if (recorder == nullptr) recorder = std::make_unique<Recorder>(device);
      auto captured_graph = recorder->record(plan, ops, launch);
      TakenBytes taken;
      if (const std::uint64_t bytes = captured_graph->bytes(); bytes > 0)
        taken = take(device_slot, bytes);
      segments_.emplace(launches.front(),
                        Segment{device_slot, std::move(taken), std::move(captured_graph)});
      for (const std::uint32_t i : launches) held_[i] = true;
    } catch (const Error& error) {
      if (error.code() != Code::unsupported && error.code() != Code::out_of_memory) throw;
      log(Level::debug, cat("launches are not recorded: ", error.full()));
    }
  }
}

}  // namespace heddle::engine
