// Plans of a library on disk, so that a new process need not make them again: a file for each, in a
// folder of the user's cache. What they depend on besides their keys (card, driver, versions) is
// the store's domain, and stands in every file. Files are put in their place whole, so processes
// may share a folder; one that is damaged, cut off or about something else is as none. What fails
// costs time and nothing else, so nobody is told. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heddle::cuda {

class PlanStore {
 public:
  using Key = std::vector<std::int64_t>;
  struct Entry {
    std::uint64_t workspace_bytes = 0;
    std::string plan;  // as the library writes it
  };

  // heddle/plans in $XDG_CACHE_HOME, or in ~/.cache; empty where neither is set.
  static std::filesystem::path default_folder();

  // The folder is made when it is first written to; empty: nothing is kept. The domain is one line.
  PlanStore(std::filesystem::path folder, std::string domain);

  std::optional<Entry> find(const Key& key) const;
  void add(const Key& key, const Entry& entry) const;
  void remove(const Key& key) const;

  // The files of a folder that has more go, those written longest ago first.
  static constexpr std::size_t kMostFiles = 2048;

 private:
  std::string head_of(const Key& key) const;
  std::filesystem::path path_of(const std::string& head) const;
  void make_room() const;

  const std::filesystem::path folder_;
  const std::string domain_;
};

}  // namespace heddle::cuda
