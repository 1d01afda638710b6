#include "engine/serve/retention.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAtWork = 60'000;  // ms
constexpr std::string_view kTemp = "temp", kOutput = "output";

std::int64_t changed_of(const fs::path& file, std::error_code& error) {
  const auto time = std::chrono::file_clock::to_sys(fs::last_write_time(file, error));
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Links are not followed, and stay: what they lead to is somebody else's.
std::vector<KeptFile> files_below(const fs::path& folder, const std::vector<fs::path>& but) {
  std::vector<KeptFile> files;
  std::error_code error;
  const auto add = [&](const FolderEntry& entry, int) {
    if (entry.is_link() || !entry.is_file()) return std::ranges::find(but, entry.path) == but.end();
    std::error_code gone;
    const std::uint64_t bytes = fs::file_size(entry.path, gone);
    const std::int64_t changed = gone ? 0 : changed_of(entry.path, gone);
    if (!gone) files.push_back({entry.path, changed, bytes});
    return false;
  };
  walk(folder, Links::stay, add, error);
  return files;
}

std::uint64_t system_free_at(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? ~std::uint64_t{0} : std::uint64_t{space.available};
}

}  // namespace

std::vector<KeptFile> surplus_files(std::vector<KeptFile> files, const KeepRule& rule,
                                    std::int64_t now_ms, std::uint64_t wanted) {
  std::uint64_t held = 0, freed = 0;
  for (const KeptFile& file : files) held += file.bytes;
  std::ranges::sort(files, {}, [](const KeptFile& file) {
    return std::pair(file.changed_ms, file.path.native());
  });
  std::vector<KeptFile> going;
  for (KeptFile& file : files) {
    const std::int64_t age = now_ms - file.changed_ms;
    if (age < kAtWork) break;  // and so are those behind it
    const bool is_old = rule.age && age / 1000 > rule.age->count();
    const bool is_too_much = rule.bytes && held > *rule.bytes;
    if (!is_old && !is_too_much && freed >= wanted) break;
    held -= file.bytes;
    freed += file.bytes;
    going.push_back(std::move(file));
  }
  return going;
}

Retention::Retention(const heddle::Engine& engine, JobQueue& queue, RetentionOptions options)
    : engine_(engine), queue_(queue), options_(std::move(options)) {}

std::int64_t Retention::now() const {
  if (options_.clock) return options_.clock();
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

void Retention::sweep_folder(std::string_view kind, const KeepRule& rule, bool frees) {
  if (!rule.is_any() && !frees) return;
  for (const fs::path& folder : engine_.folder_places(kind)) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    const std::uint64_t free = options_.free_at ? options_.free_at(folder) : system_free_at(folder);
    const std::uint64_t wanted =
        frees ? options_.free_bytes - std::min(free, options_.free_bytes) : std::uint64_t{0};
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    // Temporary files may lie in a folder of the output folder's: they have a rule of their own.
    std::vector<fs::path> others = engine_.folder_places(kind == kTemp ? kOutput : kTemp);
    std::erase(others, folder);
    for (const KeptFile& file : surplus_files(files_below(folder, others), rule, now(), wanted)) {
      if (fs::remove(file.path, error)) {
        ++count;
        bytes += file.bytes;
      } else if (error) {
        log(Level::warning, cat(file.path.string(), " cannot be removed: ", error.message()));
      }
    }
    if (count > 0)
      log(Level::info, cat(count, " files of ", folder.string(), " were removed: ",
                           format_bytes(bytes), ", as it is asked for by --keep options"));
  }
}

// Temporary files first: what they free is not taken from pictures.
void Retention::sweep() {
  const bool frees = options_.free_bytes > 0;
  sweep_folder(kTemp, options_.temp, frees);
  sweep_folder(kOutput, options_.output, frees && options_.output.is_any());
  if (options_.history) queue_.prune_before(now() - options_.history->count() * 1000);
}

void Retention::start() {
  if (!options_.is_any()) return;
  thread_ = start_thread("the thread that removes old files", [this](std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    while (!stop.stop_requested()) {
      try {
        sweep();
      } catch (const std::exception& error) {
        log(Level::warning, cat("old files are not removed: ", error.what()));
      }
      std::unique_lock lock(mutex);
      stopped.wait_for(lock, stop, options_.period, [] { return false; });
    }
  });
}

}  // namespace heddle::engine
