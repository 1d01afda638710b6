// How fast a checkpoint comes into host memory with a limit, read ahead of somebody who asks for
// its tensors in order and does nothing with them: what the disk gives when nobody computes.
//
//   host_loading_bench FILE [LIMIT_MIB]     MiB/s, of a file that the kernel has nothing of
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "engine/files/checkpoint.h"
#include "engine/memory/host_weights.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/loader.h"

namespace core = heddle::core;

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: host_loading_bench FILE [LIMIT_MIB]\n");
    return 2;
  }
  const std::uint64_t limit = std::uint64_t(count > 2 ? std::atoi(arguments[2]) : 1024) << 20;
  const core::LoadedPlugins plugins = core::load_plugins({HEDDLE_CPU_PLUGIN});
  core::DeviceSelection selection;
  selection.names = {"cpu:0"};
  const std::vector<core::RunDevice> devices = core::open_devices(plugins, selection);
  const auto reader = devices[0].state->share_device();
  const core::Checkpoint checkpoint = core::open_checkpoint(arguments[1]);
  std::vector<core::FilePart> parts;
  std::uint64_t bytes = 0;
  for (const core::TensorView& tensor : checkpoint.tensors()) {
    parts.push_back(core::file_part(tensor, 0, tensor.shape.empty() ? 0 : tensor.shape[0]));
    parts.back().file->mapping->forget(0, parts.back().file->mapping->size());
    bytes += parts.back().bytes;
  }
  const auto room = std::make_shared<core::HostRoom>(limit);
  core::HostWeights host(room, {});
  const auto begin = std::chrono::steady_clock::now();
  {
    const core::Expectation once = host.expect(parts, core::UseOrder::once, reader);
    for (const core::FilePart& part : parts) host.get({&part, 1}, reader);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%.0f MiB/s, at most %.1f MiB held\n", double(bytes) / seconds / (1 << 20),
              double(host.report().peak) / (1 << 20));
}
