// A file of random tensors and devices that ask for them in host memory: cpu:0, which reads the
// mapping, and fakes, which want pinned memory.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <mutex>
#include <random>

#include "engine/memory/host_weights.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

// What an action that has to fail throws; code 0 when it does not.
template <class Action>
engine::Error error_of(Action&& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return error;
  }
  return engine::Error(engine::Code{}, "nothing was thrown");
}

struct HostFixture {
  static constexpr std::uint64_t kPart = 64 << 10;  // bytes of a tensor, whole pages

  HostFixture() : plugins(engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", kFakePlugin})) {
    engine::DeviceSelection selection;
    selection.names = {"cpu:0", "fake:0", "fake:1"};
    selection.compute["fake"] = "f32";
    selection.reference_kernels = true;
    devices = engine::open_devices(plugins, selection);
  }

  const std::shared_ptr<const engine::Device>& cpu() const {
    return devices[0].state->share_device();
  }
  const std::shared_ptr<const engine::Device>& fake(std::size_t i = 0) const {
    return devices[1 + i].state->share_device();
  }

  // `count` tensors of one size, "0", "1", ...; their data begin at a page's border, or a little
  // behind one.
  void write(std::size_t count, std::size_t behind = 0, std::uint64_t bytes = kPart) {
    write_sizes(std::vector<std::uint64_t>(count, bytes), behind);
  }
  // Of such sizes, which are multiples of 64.
  void write_sizes(const std::vector<std::uint64_t>& sizes, std::size_t behind = 0) {
    std::mt19937 random(unsigned(sizes.size()) + 17);
    std::string data;
    std::vector<FileTensor> tensors;
    for (const std::uint64_t bytes : sizes) {
      tensors.push_back({std::to_string(tensors.size()), "F32", {16, std::int64_t(bytes / 64)}});
      for (std::uint64_t i = 0; i < bytes; i += sizeof(std::uint32_t)) {
        const auto four = std::uint32_t(random());
        data.append(reinterpret_cast<const char*>(&four), sizeof four);
      }
    }
    std::string header = safetensors_header(tensors);
    header.resize((header.size() + 8 + 4095) / 4096 * 4096 - 8 + behind, ' ');
    content = with_length(header, data);
    path = folder.write("weights.safetensors", content);
    checkpoint.emplace(engine::open_checkpoint(path));
  }

  engine::FilePart part(std::size_t i, std::int64_t begin = 0, std::int64_t end = 16) const {
    return engine::file_part(checkpoint->at(std::to_string(i)), begin, end);
  }
  std::vector<engine::FilePart> all() const {
    std::vector<engine::FilePart> parts;
    for (std::size_t i = 0; i < checkpoint->tensors().size(); ++i) parts.push_back(part(i));
    return parts;
  }

  // Host memory with a limit. Without readers everything happens in one order.
  engine::HostWeights& make(std::uint64_t limit, std::uint64_t pinned = 0,
                            std::uint64_t staging = 0, unsigned readers = 0, unsigned copiers = 0,
                            unsigned staging_devices = 1,
                            std::uint64_t group_bytes = std::uint64_t{32} << 20) {
    room = std::make_shared<engine::HostBudget>(limit);
    host.emplace(room, engine::HostWeights::Options{.pinned_bytes = pinned,
                                                    .staging_bytes = staging,
                                                    .staging_devices = staging_devices,
                                                    .readers = readers,
                                                    .copiers = copiers,
                                                    .piece_bytes = 16 << 10,
                                                    .group_bytes = group_bytes});
    return *host;
  }

  std::shared_ptr<engine::HostLease> get(const engine::FilePart& one,
                                         const std::shared_ptr<const engine::Device>& reader) {
    return host->get({&one, 1}, reader);
  }
  bool is_right(const engine::HostLease& lease, const engine::FilePart& one,
                std::size_t at = 0) const {
    return std::memcmp(lease.data(at), content.data() + one.offset, one.bytes) == 0;
  }
  // Asks for it, looks at it and releases it.
  bool use(std::size_t i, const std::shared_ptr<const engine::Device>& reader) {
    return is_right(*get(part(i), reader), part(i));
  }

  // The names of what is read from the file, in that order, each once for all its pieces.
  engine::ReadWatch note_reads() {
    return [this](const engine::FileRead& read) {
      const std::lock_guard lock(mutex);
      watched_bytes += read.bytes;
      if (reads.empty() || reads.back() != read.name) reads.push_back(read.name);
    };
  }

  engine::LoadedPlugins plugins;
  FakeControl control;
  std::vector<engine::RunDevice> devices;
  TemporaryFolder folder;
  std::string content;
  std::filesystem::path path;
  std::optional<engine::Checkpoint> checkpoint;
  std::shared_ptr<engine::HostBudget> room;
  std::optional<engine::HostWeights> host;
  std::mutex mutex;
  std::vector<std::string> reads;   // mutex
  std::uint64_t watched_bytes = 0;  // mutex
};

}  // namespace heddle::test
