#include "engine/place/topology.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

NamedDevices find_devices(std::string_view text, const Topology& topology) {
  NamedDevices found;
  std::size_t named = 0;
  std::vector<std::uint32_t> left_out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string_view one = text.substr(begin, comma - begin);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    begin = comma + 1;
    if (one.empty())
      throw Error(Code::invalid_argument,
                  cat("the list of devices ", quote(text),
                      " names nothing in one place; there are: ", all_device_names(topology)));
    ++named;
    bool known = false, added = false;
    for (std::uint32_t d = 0; d < topology.devices.size(); ++d) {
      if (named_by(one, names_of(topology.devices[d])) == NamedBy::nothing) continue;
      known = true;
      if (!topology.devices[d].left_out.empty()) {
        left_out.push_back(d);
        added = true;
        continue;
      }
      if (std::ranges::find(found.devices, d) != found.devices.end()) continue;
      found.devices.push_back(d);
      added = true;
    }
    if (!known)
      throw Error(Code::not_found, cat("there is no device ", quote(one),
                                       "; there are: ", all_device_names(topology)));
    if (!added) found.repeated.emplace_back(one);
  }
  if (found.devices.empty()) {
    std::vector<std::string> texts;
    for (const std::uint32_t d : left_out)
      texts.push_back(
          cat(topology.devices[d].name, " is left out: ", topology.devices[d].left_out));
    throw Error(Code::io, cat("of ", quote(text), " no device can be used now: ", join(texts, "; "),
                              ". Name others, or none."));
  }
  found.is_list = named > 1 && found.devices.size() > 1;
  return found;
}

std::string device_name(std::uint32_t device, const Topology& topology) {
  return device == kHostSide ? std::string("host") : topology.devices[device].name;
}

std::string device_names(const std::vector<std::uint32_t>& devices, const Topology& topology) {
  std::vector<std::string> names;
  for (const std::uint32_t d : devices) names.push_back(device_name(d, topology));
  return join(names, ", ");
}

std::string all_device_names(const Topology& topology) {
  std::vector<std::string> names;
  for (const DeviceFacts& d : topology.devices) names.push_back(d.name);
  return join(names, ", ");
}

std::vector<std::string> left_out_texts(const Topology& topology) {
  std::vector<std::string> texts;
  for (const DeviceFacts& d : topology.devices)
    if (!d.left_out.empty()) texts.push_back(cat(d.name, " is left out: ", d.left_out));
  return texts;
}

}  // namespace heddle::engine
