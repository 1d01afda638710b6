// A row of runs that write their files one run after another, in the order in which they joined the
// row, whichever is done first. A run that has nothing to write is passed over when it is over; the
// turn goes on when a run is over and its own turn has come. Any thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "engine/run/control.h"

namespace heddle::engine {

class OutputSequencer {
 public:
  // Of a run whose turn has come, unless it follows another. `control` has to live until end().
  explicit OutputSequencer(RunControl& control) : control_(&control) {}
  OutputSequencer(const OutputSequencer&) = delete;

  // `next` writes after `before`, which may be over. Once for each `next`, before its run starts.
  static void follow(OutputSequencer& before, const std::shared_ptr<OutputSequencer>& next);

  // The run is over, however it ended.
  void end();

 private:
  using Followers = std::list<std::shared_ptr<OutputSequencer>>;
  Followers come();  // and who comes now
  static void pass(Followers followers);

  std::mutex mutex_;
  RunControl* control_;
  bool has_come_ = true, is_over_ = false;
  Followers followers_;
};

}  // namespace heddle::engine
