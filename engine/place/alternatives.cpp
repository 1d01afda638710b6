#include "engine/place/alternatives.h"

#include "engine/base/text.h"
#include "engine/place/topology.h"

namespace heddle::engine {

std::uint64_t lacking_bytes(const Alternative& alternative) {
  std::uint64_t bytes = 0;
  for (const DeviceNeed& need : alternative.needs)
    bytes += need.wanted_bytes - std::min(need.wanted_bytes, need.there_bytes);
  return bytes;
}

std::string shortage_text(const Alternative& alternative, const Topology& topology) {
  std::vector<std::string> parts;
  for (const DeviceNeed& need : alternative.needs)
    if (need.wanted_bytes > need.there_bytes)
      parts.push_back(cat(device_name(need.device, topology), " wants ",
                          format_bytes(need.wanted_bytes), " of ", format_bytes(need.there_bytes)));
  return join(parts, ", ");
}

}  // namespace heddle::engine
