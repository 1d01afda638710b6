// What a run tells while it runs. Called on the run's threads, one call at a time for each run; keep it short.
#pragma once

#include <string_view>

#include "engine/graph/graph.h"

namespace heddle::core {

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void node_started(const Node&, std::string_view device) { (void)device; }
  virtual void node_progress(const Node&, double fraction, std::string_view note) { (void)fraction, (void)note; }
  virtual void node_done(const Node&, double seconds) { (void)seconds; }
  virtual void node_cached(const Node&) {}
  virtual void file_written(const Node&, std::string_view path, std::string_view ui_json) { (void)path, (void)ui_json; }
  virtual void warning(const Node*, std::string_view message) { (void)message; }
};

}  // namespace heddle::core
