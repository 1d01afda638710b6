// Checkpoints of a run: written while it is under way, and read again.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "engine/facade/data.h"
#include "engine/run/checkpoint_file.h"

namespace heddle {

struct RunCheckpoint::Data {
  engine::CheckpointContent content;
  Workflow workflow;
};

// The program and its plugins: what may have a part in a picture.
std::map<std::string, std::string> builds_of(const Engine::Data& engine,
                                             engine::FileHashes& hashes);

// Writes the run's file every so many boundaries between steps, and when a node has ended that is
// not to be run again. A file that cannot be written is a warning, once: the run goes on. Called by
// several threads of the run.
class CheckpointWriter final : public engine::Checkpoints {
 public:
  CheckpointWriter(const Run::Data& run, Engine::Data& engine);
  bool is_due() override;
  void write(const engine::SavedRun& saved, engine::Observer& observer) override;

 private:
  const Run::Data& run_;
  engine::CheckpointContent content_;  // all that does not change
  std::atomic<std::uint64_t> boundaries_{0};
  bool has_warned_ = false;
};

}  // namespace heddle
