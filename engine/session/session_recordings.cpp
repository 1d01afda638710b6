#include "engine/session/session_recordings.h"

#include <optional>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

using Kind = SessionAction::Kind;

// The place whose stretch an action ends, if there is one.
std::optional<std::uint32_t> ends_on(const SessionPlan& plan, const SessionAction& action,
                                     SessionRecordings::Grain grain) {
  switch (action.kind) {
    case Kind::launch:
      return {};
    case Kind::block:
      if (grain == SessionRecordings::Grain::step) return {};
      return plan.blocks[action.index].place;
    case Kind::transfer:
      return plan.transfers[action.index].from;
    case Kind::await:
      return plan.transfers[action.index].to;
    case Kind::page_in:
    case Kind::await_page:
      return plan.pages[action.index].place;
  }
  return {};
}

// Launches by stretch, as actions of the step.
std::vector<std::vector<std::uint32_t>> find_stretches(const SessionPlan& plan, std::size_t places,
                                                       SessionRecordings::Grain grain) {
  const std::vector<SessionAction>& actions = plan.phases[int(Rate::step)];
  std::vector<std::vector<std::uint32_t>> found, open(places);
  const auto end = [&](std::uint32_t place) {
    if (!open[place].empty()) found.push_back(open[place]);
    open[place].clear();
  };
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == Kind::launch) open[plan.ops[actions[i].index].place].push_back(i);
    if (const auto place = ends_on(plan, actions[i], grain)) end(*place);
  }
  for (std::uint32_t place = 0; place < places; ++place) end(place);
  return found;
}

}  // namespace

SessionRecordings::SessionRecordings(const SessionPlan& plan, std::span<const Device* const> places,
                                     Grain grain, const Launch& launch) {
  const std::vector<SessionAction>& actions = plan.phases[int(Rate::step)];
  held_.resize(actions.size(), false);
  // Streams of its own: nobody has to wait while launches are recorded.
  std::vector<std::unique_ptr<Stream>> streams(places.size());
  for (const std::vector<std::uint32_t>& launches : find_stretches(plan, places.size(), grain)) {
    const std::uint32_t place = plan.ops[actions[launches.front()].index].place;
    const Device& device = *places[place];
    if (!device.can_record()) continue;
    std::unique_ptr<Stream>& stream = streams[place];
    try {
      if (stream == nullptr) stream = std::make_unique<Stream>(device);
      auto recording = stream->record_launches([&] {
        for (const std::uint32_t i : launches) launch(actions[i].index, *stream);
      });
      stretches_.emplace(launches.front(), Stretch{place, std::move(recording)});
      for (const std::uint32_t i : launches) held_[i] = true;
    } catch (const Error& error) {
      if (error.code() != Code::unsupported && error.code() != Code::out_of_memory) throw;
      log(Level::debug, cat("launches are not recorded: ", error.full()));
    }
  }
}

}  // namespace heddle::core
