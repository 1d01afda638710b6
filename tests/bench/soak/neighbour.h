// Another program on the same devices: it takes memory, keeps it for a while and gives it back,
// over and over. A process of its own, which takes through the plugins' device tables; of fake
// devices, whose memory is this process's alone, a thread that says that somebody has taken it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace heddle::soak {

struct NeighbourOptions {
  std::vector<std::filesystem::path> plugins;  // files and folders
  std::vector<std::string> devices;            // ids
  std::uint64_t bytes = 0;                     // of each device, at most
  std::uint64_t seed = 0;
};

class Neighbour {
 public:
  // Nothing is taken of devices that compute in host memory. Throws when no process can be started.
  explicit Neighbour(const NeighbourOptions& options);
  ~Neighbour() { end(); }
  Neighbour(const Neighbour&) = delete;
  // All is given back when it returns. "": it went well; else what went wrong.
  std::string end();

 private:
  pid_t process_ = -1;
  std::jthread thread_;
  std::vector<std::uint32_t> fakes_;
};

// What the process does, until it is asked to end.
int be_neighbour(const NeighbourOptions& options);

}  // namespace heddle::soak
