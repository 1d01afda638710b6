#include "engine/session/session_planning.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/session_spec.h"

namespace heddle::core {

namespace {

SessionPlan plan_within_budgets(const SessionPlaces& places, const CallSpec& call) {
  const auto device = [&](std::uint32_t place) -> const Device& {
    return places.places[place].state->device();
  };
  SessionSetup setup{call, places.placement};
  setup.home = places.home;
  for (std::uint32_t p = 0; p < places.places.size(); ++p)
    setup.devices.push_back({device(p).name(), device(p).compute(), device(p).host_visible(),
                             places.places[p].budget, places.places[p].rates});
  setup.are_peers = [&](std::uint32_t a, std::uint32_t b) {
    return device(a).link(&device(b)).kind == HEDDLE_LINK_PEER;
  };
  for (const SessionDonor& donor : places.donors) setup.donors.push_back(donor.offer);
  setup.pinned_bytes = places.pinned_bytes;
  setup.form = [&](std::uint32_t place, const WeightSource& source) {
    return places.places[place].weights->form(source);
  };
  const SessionSpec spec = session_spec(std::move(setup));
  const Graph& graph = *get_model(*call.model)->graph;
  return plan_session(graph, spec, [&](std::uint32_t place, const heddle_op_call& op) {
    const heddle_kernel& kernel = places.places[place].state->kernels().choose(device(place), op);
    return ChosenKernel{
        &kernel, kernel.workspace == nullptr ? 0 : kernel.workspace(device(place).raw(), &op)};
  });
}

SessionPlan plan_with_spare(SessionPlaces& places, const CallSpec& call) {
  try {
    return plan_within_budgets(places, call);
  } catch (const Error& error) {
    const bool has_spare = std::ranges::any_of(
        places.places, [](const SessionPlace& place) { return place.spare > 0; });
    if (error.code() != Code::out_of_memory || !has_spare) throw;
  }
  for (SessionPlace& place : places.places) place.budget += std::exchange(place.spare, 0);
  return plan_within_budgets(places, call);
}

}  // namespace

SessionPlan plan_at(SessionPlaces& places, const CallSpec& call) {
  try {
    return plan_with_spare(places, call);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    // The plan knows what it lacks, the ledgers who has it.
    std::string text = error.what();
    for (const SessionPlace& place : places.places)
      if (place.budget != kNoLimit)
        text +=
            cat(" ", place.state->device().name(), " has a ", place.state->ledger().figures(), ".");
    throw Error(Code::out_of_memory, text);
  }
}

}  // namespace heddle::core
