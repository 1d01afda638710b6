// How far a run is, for whoever asks meanwhile. Fed by the run's observer; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/serve/preview_image.h"
#include "heddle/run_event.hpp"

namespace heddle::engine {

struct NodeProgress {
  std::string id, class_type, device;
  double fraction = 0;  // 0 to 1
};

// A run at one instant.
struct RunSnapshot {
  std::vector<NodeProgress> nodes;   // that have begun and not ended, by id
  std::size_t nodes_done = 0;        // cached ones among them
  std::vector<std::string> devices;  // that its plan keeps busy
  bool is_paused = false;
  bool gives_way = false;      // to interactive jobs, which have its place
  std::uint64_t previews = 0;  // so many have been made
  // What it waits for before it begins; empty: nothing. A device, or "host".
  std::string waits_for, waits_why;
  std::uint64_t waits_bytes = 0;
};

class RunProgress {
 public:
  void take(const heddle::Event& event);
  // Without devices, is_paused and gives_way, which are the runner's to tell.
  RunSnapshot snapshot() const;
  double node_seconds() const;                // that nodes have taken so far, all together
  std::optional<RgbPicture> preview() const;  // the last one

 private:
  void keep(const heddle::Preview& picture);

  mutable std::mutex mutex_;
  std::map<std::string, NodeProgress> nodes_;  // mutex_
  std::set<std::string, std::less<>> done_;    // mutex_
  std::string waits_for_, waits_why_;          // mutex_
  RgbPicture preview_;                         // mutex_
  std::uint64_t previews_ = 0;                 // mutex_
  std::uint64_t waits_bytes_ = 0;              // mutex_
  double node_seconds_ = 0;                    // mutex_
};

}  // namespace heddle::engine
