// A run between two of its steps, as a file: what it goes on from, the workflow, and all by which
// another process finds out whether it would go on with the same. The file is one of values
// (engine/files/value_file.h), with a checksum of all of it. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/bind.h"
#include "engine/run/saved_run.h"

namespace heddle::engine {

struct CheckpointContent {
  std::string workflow;  // as canonical JSON
  std::string note;      // of the program's own
  GivenValues given;     // for this run alone
  bool partly = false;   // only the outputs that can run
  // Of the program and its plugins, by name and version: the hash of the file, or what else there
  // is.
  std::map<std::string, std::string> builds;
  std::map<std::string, std::string> made_of;  // by node: made_of() in hexadecimal digits
  SavedContent saved;
  std::vector<std::string> files;         // written so far
  std::map<std::string, std::string> ui;  // by node: what it has shown, as JSON
};

// The bytes of the file. Throws unsupported for given values that no file can hold.
std::string checkpoint_text(const CheckpointContent& content);

// Throws Error with the path: not_found, io, and invalid_argument for what is no checkpoint, is
// damaged, or was written by a version with another form.
CheckpointContent read_checkpoint(const std::filesystem::path& path);

// The same of bytes that are there already.
CheckpointContent parse_checkpoint(std::span<const std::byte> file, const std::string& name);

// Throws invalid_argument where the run would go on with something else than it began with, naming
// what differs: a plugin, or a node.
void check_builds(const CheckpointContent& content, const std::map<std::string, std::string>& now);
void check_made_of(const CheckpointContent& content, const Graph& graph,
                   std::span<const Hash128> now);

}  // namespace heddle::engine
