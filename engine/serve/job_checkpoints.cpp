#include "engine/serve/job_checkpoints.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".checkpoint";
constexpr std::size_t kLongestId = 200;  // file systems know names of up to 255 bytes

// As UUIDs are; others may be chosen by whoever submits.
bool makes_a_name(const std::string& job) {
  return !job.empty() && job.size() <= kLongestId && std::ranges::all_of(job, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

}  // namespace

JobCheckpoints::JobCheckpoints(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (!failure) fs::permissions(folder_, fs::perms::owner_all, failure);
  if (failure) throw system_error(folder_.string(), failure.value());
}

fs::path JobCheckpoints::file_of(const std::string& job) const {
  if (folder_.empty() || !makes_a_name(job)) return {};
  return folder_ / cat(job, kEnding);
}

std::optional<heddle::RunCheckpoint> JobCheckpoints::load(const std::string& job) const {
  const fs::path file = file_of(job);
  std::error_code ignored;
  if (file.empty() || !fs::exists(file, ignored)) return {};
  std::string trouble;
  try {
    heddle::RunCheckpoint checkpoint = heddle::RunCheckpoint::load(file);
    if (checkpoint.note() == job) return checkpoint;
    trouble = cat(file.string(), " is of another job, ", quote(checkpoint.note()));
  } catch (const heddle::EngineError& error) {
    trouble = error.what();
  }
  log(Level::warning, cat("job ", job, " begins anew: ", trouble));
  forget(job);
  return {};
}

void JobCheckpoints::forget(const std::string& job) const {
  std::error_code ignored;
  if (const fs::path file = file_of(job); !file.empty()) fs::remove(file, ignored);
}

// What a killed process was writing goes, too.
void JobCheckpoints::forget_others(
    const std::function<bool(const std::string& job)>& is_wanted) const {
  if (folder_.empty()) return;
  std::vector<fs::path> gone;
  std::error_code ignored;
  for (const FolderEntry& entry : entries_of(folder_, ignored)) {
    const std::string name = entry.name();
    const bool is_torn = name.starts_with('.');
    if (is_torn ||
        (name.ends_with(kEnding) && !is_wanted(name.substr(0, name.size() - kEnding.size()))))
      gone.push_back(entry.path);
  }
  for (const fs::path& file : gone) fs::remove(file, ignored);
}

}  // namespace heddle::engine
