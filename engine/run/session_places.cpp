#include "engine/run/session_places.h"

#include <algorithm>

namespace heddle::core {

SessionPlaces session_places(Environment& environment, const Node& caller, const RunDevice& home, const Model& model, const CallSpec& call) {
  const auto home_index = std::uint32_t(&home - environment.devices.data());
  SessionPlaces places;
  if (environment.place_call) places.placement = environment.place_call(caller, home_index, model, call);
  if (places.placement.devices.empty()) places.placement = {Split::none, {home_index}, {}, {}, {}};
  std::vector<std::uint32_t> devices = places.placement.devices;
  auto at = std::ranges::find(devices, home_index);
  if (at == devices.end()) at = devices.insert(at, home_index);
  places.home = std::uint32_t(at - devices.begin());
  for (const std::uint32_t d : devices) places.places.push_back({environment.devices[d].state.get(), environment.devices[d].weights.get()});
  return places;
}

}  // namespace heddle::core
