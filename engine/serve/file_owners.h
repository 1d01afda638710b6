// Whose the files are that were uploaded here, or made by jobs: a user of a key sees their own.
// What nobody is known to have made is the operator's: in the input folder it is for all, as models
// are; elsewhere for administrators. Kept in a file, a line for each, so that it outlives the
// history. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/serve/caller.h"

namespace heddle::engine {

// "input", "output" or "temp", and the name below that folder.
struct OwnedFile {
  std::string folder, name;
  friend auto operator<=>(const OwnedFile&, const OwnedFile&) = default;
};

// An input of a prompt, as "node.input", that chooses a file of the input folder by what another
// node gives it: nobody knows yet which; "": there is none. `folder_of`: as Engine::input_folder().
using FolderOf = std::function<std::string(std::string_view type, std::string_view input)>;
std::string linked_file(const Json& prompt, const FolderOf& folder_of);

class FileOwners {
 public:
  // What tells a file from a later one of its name; 0: it is not there, or no name of a file. Any
  // thread.
  using Version = std::function<std::int64_t(const OwnedFile&)>;
  // `kept` empty: nothing is kept, for where every caller is an administrator. Reads the file where
  // it is there; lines that say nothing, and those of files that are gone, are
  // left out. Throws Error where it cannot be read.
  FileOwners(std::filesystem::path kept, Version version);
  FileOwners(const FileOwners&) = delete;

  // A file may have several: what two have made alike is made once. Logs what cannot be written.
  void add(const OwnedFile& file, const std::string& user);
  // What a node shows: {"images": [{"filename": ..., "subfolder": ..., "type": ...}]}.
  void add_shown(std::string_view ui, const std::string& user);

  bool may_see(const Caller& caller, const OwnedFile& file) const;
  // Of a file that is there: one's own, or an administrator.
  bool may_change(const Caller& caller, const OwnedFile& file) const;
  // A text in a workflow that names a file of somebody else, as "cat.png" and "cat.png [output]"
  // do, or a folder below the input folder with such a file in it; "": there is none.
  std::string foreign_name(const Caller& caller, const Json& prompt) const;
  // Without names of others' uploads in lists to choose from.
  std::string without_foreign(const Caller& caller, std::string object_info) const;
  // The same of what is said of a workflow: in texts others' uploads stand in quotes.
  Json without_names(const Caller& caller, Json told) const;

 private:
  bool is_foreign(const Caller& caller, std::string_view text) const;
  bool is_foreign_folder(const Caller& caller, std::string_view text) const;
  bool remove_foreign(const Caller& caller, Json& value) const;

  struct Owners {
    std::int64_t version = 0;
    std::set<std::string> users;
  };
  // Of the file that has this name now; nullptr: none is known. With mutex_.
  const std::set<std::string>* owners_of(const OwnedFile& file) const;

  const std::filesystem::path kept_;
  const Version version_;
  mutable std::mutex mutex_;
  std::map<OwnedFile, Owners> owners_;  // mutex_
};

}  // namespace heddle::engine
