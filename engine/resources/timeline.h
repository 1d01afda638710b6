// When everything of a run happened, for people to look at: spans on the streams of devices, by
// events and the devices' own clocks, and spans on host threads. Both count from the start of the
// run, when all devices are waited for once. On devices with a simulated clock the times of their
// spans are simulated. Costs two events for each span; nothing where there is no timeline. Any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/memory/host_item.h"
#include "engine/memory/watch.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

struct TimelineSpan {
  std::string process;  // a device, or "host"
  std::string thread;   // "compute", "copy in", "copy out", "host", "disk", "disk 2"
  std::string name;
  std::string kind;           // "node", "block", "step", "transfer", "page-in", "read"
  double begin = 0, end = 0;  // seconds since the start of the run
  std::uint64_t bytes = 0;
};

class Timeline {
 public:
  // What it shows of a step of a model: every block, which are then launched one by one, or all of
  // it.
  enum class Detail { blocks, steps };

  // Waits for all devices, which have to outlive it. One that has failed and cannot be waited for
  // has no spans: others may be used all the same.
  // `service`: nor has one that is disabled, which is to hold nothing; nullptr: none is.
  explicit Timeline(const std::vector<RunDevice>& devices, const DeviceService* service = nullptr,
                    Detail detail = Detail::blocks);
  bool has_blocks() const { return detail_ == Detail::blocks; }

  double now() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  // A span of host time, from `begin` (of now()) until now.
  void add_host(const std::string& process, std::string kind, std::string name, double begin);

  // A watch that files what it is told under this name. REQUIRES: the timeline lives when work is
  // enqueued under it.
  WorkWatch watch(std::string kind, std::string name);
  // The same for what is read from files. REQUIRES: the timeline lives as long as it is told.
  ReadWatch read_watch();
  void add(DeviceState& device, StreamRow row, std::string kind, std::string name, Event begin,
           Event end, std::uint64_t bytes);

  // All spans, by process, thread and begin. Waits for work under way; spans of work that failed,
  // and those on devices that cannot measure, are left out. Call it once, when the run is over.
  std::vector<TimelineSpan> finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    DeviceState* device;
    StreamRow row;
    std::string kind, name;
    Event begin, end;
    std::uint64_t bytes;
  };
  struct State {
    std::vector<TimelineSpan> host;
    std::vector<Pending> pending;
  };
  struct Base {
    DeviceState* device;
    Event reached;
  };
  std::optional<double> seconds(const DeviceState& device, const Event& event) const;

  const Detail detail_;
  std::vector<Base> bases_;
  Clock::time_point began_;
  Guarded<State> state_;
};

// Chrome's trace format (chrome://tracing, Perfetto): a process for each device, a thread for each
// stream, times in microseconds.
std::string timeline_json(const std::vector<TimelineSpan>& spans);

// Replaces the file in one step. Throws the system's error with the path.
void write_timeline(const std::vector<TimelineSpan>& spans, const std::filesystem::path& path);

}  // namespace heddle::engine
