#include "engine/isolate/worker_devices.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/isolate/device_buffers.h"
#include "engine/plugin/host.h"
#include "engine/plugin/loader.h"

namespace heddle::engine {

struct WorkerDevices::Opened {
  LoadedPlugins plugins;
  std::unique_ptr<DeviceState> state;
};

namespace {

// The engine may count devices in another order, or see others.
std::uint32_t index_of(const heddle_device_desc& desc, const DescribedDevice& device) {
  if (device.names.uuid.empty()) return device.source.index;
  if (identify(desc, device.source.index, plugin_host()).names.uuid == device.names.uuid)
    return device.source.index;
  for (std::uint32_t i = 0; i < desc.count(); ++i)
    if (identify(desc, i, plugin_host()).names.uuid == device.names.uuid) return i;
  throw Error(Code::not_found,
              cat("a worker finds no device ", device.names.uuid, ", which is ", device.names.name,
                  " in the engine. Leave the plugin out of --isolate"));
}

LoadedPlugins load_device_plugins(const DescribedDevice& device) {
  std::vector<std::filesystem::path> files(device.source.plugins.begin(),
                                           device.source.plugins.end());
  return load_plugins(files);
}

std::unique_ptr<DeviceState> open_device(const DescribedDevice& device,
                                         const LoadedPlugins& plugins) {
  const auto kind = std::ranges::find_if(
      plugins.devices, [&](const DeviceKind& k) { return device.names.kind == k.desc->kind; });
  if (kind == plugins.devices.end()) {
    std::string reasons;
    for (const RefusedPlugin& refused : plugins.refused) reasons += cat(" ", refused.reason);
    throw Error(Code::not_found,
                cat("a worker has no plugin for the device ", device.names.name, ".", reasons));
  }
  const std::uint32_t index = index_of(*kind->desc, device);
  heddle_device* raw = nullptr;
  throw_status(kind->desc->open(plugin_host(), index, device.source.options.get(), &raw),
               cat("opening ", device.names.name, " in a worker"));
  DeviceIdentity identity = identify(*kind->desc, index, plugin_host());
  identity.names.name = device.names.name;
  return std::make_unique<DeviceState>(
      std::make_shared<const Device>(std::move(identity), *kind->desc, raw, kind->plugin),
      plugins.kernels);
}

}  // namespace

DeviceState& WorkerDevices::open(std::string_view description) {
  const auto opened = opened_.lock();
  if (const auto found = opened->find(description); found != opened->end())
    return *found->second->state;
  const DescribedDevice device = read_described_device(description);
  auto made = std::make_unique<Opened>();
  made->plugins = load_device_plugins(device);
  made->state = open_device(device, made->plugins);
  return *opened->emplace(std::string(description), made.release()).first->second->state;
}

void WorkerDevices::settle() noexcept {
  const auto opened = opened_.lock();
  for (const auto& [description, device] : *opened) device->state->settle();
}

}  // namespace heddle::engine
