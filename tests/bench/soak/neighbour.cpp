#include "tests/bench/soak/neighbour.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/loader.h"
#include "heddle/testing/fake_control.h"

namespace heddle::soak {

namespace {

constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;  // bytes; a smaller piece is nothing
constexpr std::chrono::milliseconds kPause{300};

volatile sig_atomic_t is_to_end = 0;

std::chrono::milliseconds pause_of(std::mt19937_64& random) { return kPause * (1 + random() % 6); }

const heddle_fake_control* fake_control() {
  for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_FAKE_CONTROL))
    return static_cast<const heddle_fake_control*>(provided.desc);
  return nullptr;
}

// As much as is wanted, or as there is, in halves of halves.
void* take(const engine::Device& device, std::uint64_t& bytes) {
  for (; bytes >= kLeast; bytes /= 2) {
    try {
      return device.allocate(bytes);
    } catch (const engine::Error& error) {
      if (error.code() != engine::Code::out_of_memory) throw;
    }
  }
  return nullptr;
}

}  // namespace

Neighbour::Neighbour(const NeighbourOptions& options) {
  std::vector<std::string> devices;
  for (const std::string& device : options.devices) {
    if (device.starts_with("fake:"))
      fakes_.push_back(std::uint32_t(std::stoul(device.substr(5))));
    else if (!device.starts_with("cpu:"))
      devices.push_back(device);
  }
  if (options.bytes == 0) return;
  if (const heddle_fake_control* control = fake_control(); control != nullptr && !fakes_.empty())
    thread_ = std::jthread([=, fakes = fakes_](std::stop_token stop) {
      std::mt19937_64 random(options.seed);
      while (!stop.stop_requested()) {
        for (const std::uint32_t fake : fakes)
          control->set_foreign_bytes(fake, random() % 3 == 0 ? 0 : random() % options.bytes);
        std::this_thread::sleep_for(pause_of(random) / 10);
      }
      for (const std::uint32_t fake : fakes) control->set_foreign_bytes(fake, 0);
    });
  if (devices.empty()) return;
  const std::string bytes = std::to_string(options.bytes), seed = std::to_string(options.seed),
                    all = engine::join(devices, ",");
  std::vector<std::string> words{"soak",      "--neighbour", "--take", bytes,
                                 "--devices", all,           "--seed", seed};
  for (const std::filesystem::path& plugin : options.plugins)
    words.insert(words.end(), {"--plugins", plugin.string()});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int fault =
      ::posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  if (fault != 0) throw engine::system_error("a second process", fault);
}

std::string Neighbour::end() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  if (process_ <= 0) return "";
  ::kill(process_, SIGTERM);
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return engine::cat("the second process ended with status ", status);
}

int be_neighbour(const NeighbourOptions& options) {
  struct sigaction action {};
  action.sa_handler = [](int) { is_to_end = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  const engine::LoadedPlugins plugins = engine::load_plugins(options.plugins);
  const std::vector<engine::RunDevice> devices =
      engine::open_devices(plugins, {.names = options.devices});
  std::mt19937_64 random(options.seed);
  std::uint64_t most = 0, turns = 0;
  const pid_t parent = ::getppid();
  while (is_to_end == 0 && ::getppid() == parent) {
    std::vector<std::pair<const engine::Device*, void*>> taken;
    for (const engine::RunDevice& each : devices) {
      const engine::Device& device = each.state->device();
      std::uint64_t bytes = random() % 4 == 0 ? options.bytes : random() % options.bytes;
      void* const memory = take(device, bytes);
      if (memory == nullptr) continue;
      taken.emplace_back(&device, memory);
      most = std::max(most, bytes);
    }
    ++turns;
    const auto until = std::chrono::steady_clock::now() + pause_of(random);
    while (is_to_end == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kPause / 10);
    for (const auto& [device, memory] : taken) device->free(memory);
    if (is_to_end == 0) std::this_thread::sleep_for(pause_of(random) / 2);
  }
  std::printf("the second process took memory %llu times, at most %s of a device\n",
              static_cast<unsigned long long>(turns), engine::format_bytes(most).c_str());
  return 0;
}

}  // namespace heddle::soak
