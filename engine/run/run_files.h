// The files that a run stands on: those that the keys of its nodes are made of, which may change
// while it runs, and those that its models map, which may lose pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/mapped_file.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"

namespace heddle::engine {

// A file as it was when a key was made of it.
struct UsedFile {
  std::filesystem::path path;
  FileIdentity identity;
};
using UsedFiles = std::vector<UsedFile>;

// The first that is another now, or not there any more; nullptr: none. Never throws for a file.
const UsedFile* find_changed(const UsedFiles& files);

// What is read of a model, from its first session to the end of the run. Any thread.
class MappedModels {
 public:
  // Throws io when a file of the model has lost pages before.
  void use(const Model& model);

  // Throws io with the file that has lost pages since; costs a load as long as no file has.
  void check() const {
    if (lost_page_count() != lost_before_) check_all();
  }
  bool is_damaged() const;
  // For a failure that may come of one: throws when a file is shorter than it was.
  void check_sizes() const;

 private:
  void check_all() const;

  const std::uint64_t lost_before_ = lost_page_count();
  Guarded<std::vector<Checkpoint>> checkpoints_;
};

}  // namespace heddle::engine
