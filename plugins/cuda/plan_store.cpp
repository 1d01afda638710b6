#include "plan_store.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

namespace heddle::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of a file; a plan has some kB
constexpr std::size_t kHashDigits = 16;

std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string hex(std::uint64_t number) {
  char digits[kHashDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

std::optional<std::string> read(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > kMostBytes || !fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) return std::nullopt;
  return text;
}

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The size of the workspace and a line end before the plan itself.
std::string write_entry(const PlanStore::Entry& entry) {
  return std::to_string(entry.workspace_bytes) + "\n" + entry.plan;
}

std::optional<PlanStore::Entry> read_entry(std::string_view text) {
  const std::size_t line = text.find('\n');
  if (line == text.npos) return std::nullopt;
  PlanStore::Entry entry;
  const char* const end = text.data() + line;
  const auto [stop, error] = std::from_chars(text.data(), end, entry.workspace_bytes);
  if (error != std::errc() || stop != end) return std::nullopt;
  entry.plan = text.substr(line + 1);
  return entry;
}

}  // namespace

fs::path PlanStore::default_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return fs::path(cache) / "heddle/plans";
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache/heddle/plans";
  return {};
}

PlanStore::PlanStore(fs::path folder, std::string domain)
    : folder_(std::move(folder)), domain_(std::move(domain)) {}

// Everything that the plan follows from: two lines, which begin the file. The number is raised when
// something else is asked of the library for the same key.
std::string PlanStore::head_of(const Key& key) const {
  std::string head = "heddle plan 1, " + domain_ + "\n";
  for (const std::int64_t number : key) head += std::to_string(number) + " ";
  return head + "\n";
}

fs::path PlanStore::path_of(const std::string& head) const {
  return folder_ / (hex(hash_of(head)) + hex(hash_of(head, 1)) + ".plan");
}

std::optional<PlanStore::Entry> PlanStore::find(const Key& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string head = head_of(key);
  const std::optional<std::string> file = read(path_of(head));
  if (!file || file->size() < head.size() + kHashDigits || !file->starts_with(head))
    return std::nullopt;
  const std::string_view text = std::string_view(*file).substr(0, file->size() - kHashDigits);
  if (!file->ends_with(hex(hash_of(text)))) return std::nullopt;
  return read_entry(text.substr(head.size()));
}

void PlanStore::add(const Key& key, const Entry& entry) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  make_room();
  const std::string head = head_of(key), text = head + write_entry(entry);
  std::string beside = folder_ / ".new-XXXXXX";
  const int file = ::mkstemp(beside.data());
  if (file < 0) return;
  const bool is_whole = write_whole(file, text) && write_whole(file, hex(hash_of(text)));
  const bool is_closed = ::close(file) == 0;
  if (is_whole && is_closed) fs::rename(beside, path_of(head), ignored);
  if (!is_whole || !is_closed || ignored) ::unlink(beside.c_str());
}

void PlanStore::remove(const Key& key) const {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove(path_of(head_of(key)), ignored);
}

void PlanStore::make_room() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const fs::file_time_type written = entry->last_write_time(gone);
    if (!gone) files.emplace_back(written, entry->path());
  }
  if (files.size() < kMostFiles) return;
  // A quarter at once, so that not every new plan looks for an old one.
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i < files.size() - kMostFiles * 3 / 4; ++i)
    fs::remove(files[i].second, error);
}

}  // namespace heddle::cuda
