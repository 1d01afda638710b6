#include "engine/files/file_hashes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{4} << 20;  // bytes read at once
constexpr std::size_t kMostFiles = 10'000;            // remembered

// A file that is changed twice within one tick of the system's clock looks unchanged: one that was
// changed just now is not remembered.
constexpr std::int64_t kSettled_ns = 2'000'000'000;

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::optional<Hash128> parse_hex(std::string_view text) {
  Hash128 hash;
  if (text.size() != 32) return std::nullopt;
  const auto half = [&](std::string_view digits, std::uint64_t& out) {
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  if (!half(text.substr(0, 16), hash.hi) || !half(text.substr(16), hash.lo)) return std::nullopt;
  return hash;
}

class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) throw system_error(path.string(), errno);
    struct stat info {};
    if (::fstat(file_, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(file_);
      throw Error(Code::invalid_argument, cat(path.string(), ": this is not a regular file"));
    }
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~OpenFile() { ::close(file_); }
  OpenFile(const OpenFile&) = delete;

  // Fewer bytes than there is room for: the end.
  std::size_t read(std::vector<std::byte>& block) const {
    for (;;) {
      const ssize_t got = ::read(file_, block.data(), block.size());
      if (got >= 0) return std::size_t(got);
      if (errno != EINTR) throw system_error(path_.string(), errno);
    }
  }

 private:
  const fs::path& path_;
  int file_;
};

}  // namespace

FileHashes::FileHashes(fs::path memory, Clock clock)
    : memory_(std::move(memory)), clock_(clock ? std::move(clock) : now_ns), known_(load()) {}

FileHashes::Found FileHashes::find(const fs::path& path) {
  std::error_code unreadable;  // then it cannot be read either, which is reported below
  const std::string name = fs::canonical(path, unreadable).string();
  const FileIdentity before = identify_file_for_key(path);
  {
    const auto known = known_.lock();
    const auto found = known->find(name);
    if (found != known->end() && found->second.identity == before) return found->second;
  }
  const Found read_now{read(path), before};
  if (identify_file(path) != before)
    throw Error(Code::io, cat(path.string(),
                              ": the file was changed while it was read. Try again "
                              "when it is complete."));
  if (clock_() - std::max(before.changed_ns, before.modified_ns) < kSettled_ns) return read_now;
  known_.lock()->insert_or_assign(name, read_now);
  save({{name, read_now}});
  return read_now;
}

// Not by a mapping: a file that another program cuts short meanwhile must not end the process.
Hash128 FileHashes::read(const fs::path& path) {
  const OpenFile file(path);
  std::vector<std::byte> block(kBlock);
  Hasher hasher;
  while (const std::size_t bytes = file.read(block)) {
    hasher.add(std::span<const std::byte>(block).first(bytes));
    bytes_read_ += bytes;
  }
  return hasher.finish();
}

FileHashes::Table FileHashes::load() const {
  Table table;
  std::error_code ignored;
  if (!fs::exists(memory_, ignored)) return table;
  try {
    const Json json = parse_json(read_file(memory_, kHashesFile), memory_.string());
    for (const Json::Member& member : json.members()) {
      const Json& entry = member.value;
      const auto number = [&](std::string_view key) { return entry.at(key).as_int64(); };
      const std::optional<Hash128> hash = parse_hex(entry.at("hash").as_string());
      if (!hash) continue;
      table[member.key] = {
          *hash,
          {std::uint64_t(number("device")), std::uint64_t(number("inode")),
           std::uint64_t(number("size")), number("modified_ns"), number("changed_ns")}};
    }
  } catch (const Error& error) {
    log(Level::warning,
        cat(memory_.string(), " tells no hashes, so files are read again: ", error.full()));
    table.clear();
  }
  return table;
}

// With what other processes have found meanwhile. Of two that write at the same moment one is
// forgotten, and its file read once more.
void FileHashes::save(const Table& added) const {
  if (memory_.empty()) return;
  Table table = load();
  for (const auto& [path, known] : added) table.insert_or_assign(path, known);
  std::error_code ignored;
  if (table.size() > kMostFiles)
    std::erase_if(table, [&](const auto& entry) { return !fs::exists(entry.first, ignored); });
  Json json = Json::object();
  for (const auto& [path, known] : table)
    json.set(path, std::move(Json::object()
                                 .set("hash", hex(known.hash))
                                 .set("device", std::int64_t(known.identity.device))
                                 .set("inode", std::int64_t(known.identity.inode))
                                 .set("size", std::int64_t(known.identity.size))
                                 .set("modified_ns", known.identity.modified_ns)
                                 .set("changed_ns", known.identity.changed_ns)));
  try {
    write_file(memory_, write_json(json, 1), Lasting::no);
  } catch (const Error& error) {
    log(Level::warning, cat("hashes of files cannot be remembered: ", error.full()));
  }
}

}  // namespace heddle::engine
