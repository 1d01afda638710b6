// How fast a checkpoint comes into host memory with a limit, read ahead of somebody who asks for
// its tensors in order and does nothing with them: what the disk gives when nobody computes. Or,
// with devices, how fast each of them gets all of it, at the same time, from what the kernel has.
//
//   host_loading_bench FILE [LIMIT_MIB]     MiB/s, of a file that the kernel has nothing of
//   host_loading_bench FILE LIMIT_MIB --plugins DIR --device NAME [--device NAME]...
//                                           MB/s of each device; LIMIT_MIB 0: no limit
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string_view>

#include "engine/files/checkpoint.h"
#include "engine/memory/host_weights.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/loader.h"
#include "heddle/abi/node.h"

namespace engine = heddle::engine;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<engine::FilePart> parts_of(const engine::Checkpoint& checkpoint) {
  std::vector<engine::FilePart> parts;
  for (const engine::TensorView& tensor : checkpoint.tensors())
    parts.push_back(engine::file_part(tensor, 0, tensor.shape.empty() ? 0 : tensor.shape[0]));
  return parts;
}

void read_from_disk(const engine::Checkpoint& checkpoint, std::uint64_t limit) {
  const engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_CPU_PLUGIN});
  engine::DeviceSelection selection;
  selection.names = {"cpu:0"};
  const std::vector<engine::RunDevice> devices = engine::open_devices(plugins, selection);
  const auto reader = devices[0].state->share_device();
  const std::vector<engine::FilePart> parts = parts_of(checkpoint);
  std::uint64_t bytes = 0;
  for (const engine::FilePart& part : parts) {
    part.file->mapping->forget(0, part.file->mapping->size());
    bytes += part.bytes;
  }
  const auto room = std::make_shared<engine::HostBudget>(limit);
  engine::HostWeights host(room, {});
  const auto begin = Clock::now();
  {
    const engine::Expectation once = host.expect(parts, engine::UseOrder::once, reader);
    for (const engine::FilePart& part : parts) host.get({&part, 1}, reader);
  }
  std::printf("%.0f MiB/s, at most %.1f MiB held\n",
              double(bytes) / seconds_since(begin) / (1 << 20),
              double(host.report().peak) / (1 << 20));
}

// As a session does: its thread asks the store for one weight after another.
void load(const engine::RunDevice& device, const engine::Checkpoint& checkpoint) {
  std::vector<engine::WeightSource> sources;
  std::vector<engine::FilePart> parts;
  for (const engine::TensorView& tensor : checkpoint.tensors()) {
    if (tensor.shape.empty()) continue;
    sources.push_back({.parts = {{&tensor, 0, tensor.shape[0]}}, .use = HEDDLE_USE_TABLE});
    parts.push_back(engine::file_part(tensor, 0, tensor.shape[0]));
  }
  engine::HostWeights& host = *device.state->host_weights();
  const engine::Expectation once =
      host.expect(parts, engine::UseOrder::once, device.state->share_device());
  std::vector<std::shared_ptr<const engine::DeviceWeight>> weights;
  for (const engine::WeightSource& source : sources)
    weights.push_back(device.weights->get(source, checkpoint.identity()));
  device.weights->finish(weights);
}

void load_devices(const engine::Checkpoint& checkpoint, std::uint64_t limit,
                  const std::string& plugin_folder, const std::vector<std::string>& names) {
  const engine::LoadedPlugins plugins = engine::load_plugins({plugin_folder});
  engine::DeviceSelection selection;
  selection.names = names;
  engine::Environment environment(0);
  environment.devices = engine::open_devices(plugins, selection);
  environment.host_ledger =
      std::make_shared<engine::Ledger>("host", engine::Ledger::Limits{.budget = limit});
  environment.pinned_bytes = std::uint64_t{8} << 30;
  environment.hold_weights(std::make_shared<engine::HostBudget>(environment.host_ledger));
  std::uint64_t bytes = 0;
  for (const engine::FilePart& part : parts_of(checkpoint)) {
    part.file->mapping->touch(part.offset, part.bytes);
    part.file->mapping->advise(part.offset, part.bytes, engine::Advice::dont_need);
    bytes += part.bytes;
  }
  // The first time buffers are made, and memory of the device taken; the second time all is there.
  for (const char* turn : {"first", "again"}) {
    const auto begin = Clock::now();
    std::vector<std::future<void>> loading;
    for (const engine::RunDevice& device : environment.devices)
      loading.push_back(std::async(std::launch::async, [&] { load(device, checkpoint); }));
    for (auto& one : loading) one.get();
    const double seconds = seconds_since(begin);
    const engine::HostReport report = environment.host_weights->report();
    std::printf(
        "%s: %.3f s, %.0f MB/s for each of %zu devices; %.0f MiB pinned, %.0f MB read again\n",
        turn, seconds, double(bytes) / seconds / 1e6, environment.devices.size(),
        double(report.pinned) / (1 << 20), double(report.read_again) / 1e6);
    for (const engine::RunDevice& device : environment.devices) device.weights->drop_unused();
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices, plain;
  std::string plugins;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--device" && i + 1 < count)
      devices.emplace_back(arguments[++i]);
    else if (word == "--plugins" && i + 1 < count)
      plugins = arguments[++i];
    else
      plain.emplace_back(word);
  }
  if (plain.empty() || plugins.empty() != devices.empty()) {
    std::fprintf(stderr,
                 "usage: host_loading_bench FILE [LIMIT_MIB [--plugins DIR --device NAME...]]\n");
    return 2;
  }
  const std::uint64_t limit = std::uint64_t(plain.size() > 1 ? std::atoll(plain[1].c_str()) : 1024)
                              << 20;
  const engine::Checkpoint checkpoint = engine::open_checkpoint(plain[0]);
  if (devices.empty())
    read_from_disk(checkpoint, limit);
  else
    load_devices(checkpoint, limit == 0 ? engine::HostBudget::kUnlimited : limit, plugins, devices);
}
