#include "engine/cli/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <vector>

#ifdef HEDDLE_WITH_FETCH
#include <sha2.h>
#endif

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/cli/http.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;
using engine::cat;
using engine::Code;
using engine::Error;

constexpr int kMostAttempts = 5;

fs::path with_ending(const fs::path& path, const char* ending) {
  return fs::path(path.string() + ending);
}

[[noreturn]] void fail(const fs::path& path, int error) {
  throw engine::system_error(path.string(), error);
}

std::string sha256_of(const fs::path& path, int file) {
#ifdef HEDDLE_WITH_FETCH
  SHA2_CTX state;
  SHA256Init(&state);
  std::vector<std::uint8_t> bytes(1 << 20);
  for (off_t at = 0;;) {
    const ssize_t size = ::pread(file, bytes.data(), bytes.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail(path, errno);
    if (size == 0) break;
    SHA256Update(&state, bytes.data(), std::size_t(size));
    at += size;
  }
  char text[SHA256_DIGEST_STRING_LENGTH];
  return SHA256End(&state, text);
#else
  throw Error(Code::unsupported, cat(path.string(), ": heddle was built without libmd"));
  (void)file;
#endif
}

std::string what_status_means(long status) {
  if (status == 401 || status == 403)
    return " The server wants to know who asks: sign in and accept the licence in a browser, then "
           "download it by hand, or set HF_TOKEN to a token of huggingface.co.";
  if (status == 404 || status == 410) return " The file is not there any more.";
  return " Try again later.";
}

// The unfinished file. Its holder has a lock on it.
class Part {
 public:
  explicit Part(const fs::path& whole)
      : whole_(whole),
        path_(with_ending(whole, ".part")),
        source_(with_ending(whole, ".part.from")),
        file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail(path_, errno);
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(file_);
    throw Error(Code::io, cat(path_.string(), ": another program is downloading this file."));
  }
  ~Part() { ::close(file_); }
  Part(const Part&) = delete;

  std::uint64_t size() const {
    struct stat state {};
    if (::fstat(file_, &state) != 0) fail(path_, errno);
    return std::uint64_t(state.st_size);
  }

  // What the server called the content that begins with what is here; empty: nobody knows.
  std::string validator(const std::string& url) const {
    std::ifstream in(source_);
    std::string from, validator;
    std::getline(in, from);
    std::getline(in, validator);
    return from == url ? validator : std::string();
  }

  void restart(const std::string& url, const std::string& validator) {
    if (::ftruncate(file_, 0) != 0) fail(path_, errno);
    engine::write_file(source_, cat(url, "\n", validator, "\n"), engine::Lasting::no);
  }

  void append(std::string_view bytes) {
    off_t at = off_t(size());
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, errno);
      at += written;
      bytes.remove_prefix(std::size_t(written));
    }
  }

  void check_hash(const std::string& wanted, const std::string& url) {
    if (wanted.empty()) return;
    std::string lower = wanted;
    for (char& c : lower) c = c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c;
    const std::string found = sha256_of(path_, file_);
    if (found == lower) return;
    remove();
    throw Error(Code::io, cat(whole_.string(), ": what came from ", url, " has the SHA-256 ", found,
                              ", not ", lower,
                              " as the workflow says; it was thrown away. The file "
                              "has been changed since, or the transfer was damaged."));
  }

  void finish() {
    if (::fsync(file_) != 0) fail(path_, errno);
    if (::rename(path_.c_str(), whole_.c_str()) != 0) fail(whole_, errno);
    std::error_code ignored;
    fs::remove(source_, ignored);
  }

  void remove() {
    std::error_code ignored;
    fs::remove(path_, ignored);
    fs::remove(source_, ignored);
  }

 private:
  const fs::path whole_, path_, source_;
  const int file_;
};

class Attempts {
 public:
  Attempts(const DownloadRequest& request, const DownloadProgress& progress, Part& part)
      : request_(request), progress_(progress), part_(part) {}

  // An attempt that brought something may be followed by another.
  void run() {
    std::string broken;
    for (int attempt = 1; attempt <= kMostAttempts; ++attempt) {
      const std::uint64_t before = part_.size();
      try {
        if (once()) return;
        broken = cat(request_.url, ": the transfer ended too early");
      } catch (const Error& error) {
        if (error.code() != Code::io || is_final_ || part_.size() == 0) throw;
        broken = error.what();
      }
      if (part_.size() <= before) break;
    }
    throw Error(Code::io, cat(broken, ". ", part_.size(), total_ == 0 ? "" : cat(" of ", total_),
                              " bytes are there; try again, and it goes on from there."));
  }

 private:
  // True: the file is whole.
  bool once() {
    HttpRequest http{request_.url, part_.size(), part_.validator(request_.url), request_.token};
    if (http.validator.empty()) http.from = 0;
    const HttpAnswer answer = http_get(
        http, [&](const HttpAnswer& begun) { begin(http, begun); },
        [&](std::string_view bytes) {
          finally([&] { part_.append(bytes); });
          progress_(part_.size(), total_);
        });
    if (answer.status == 416 && http.from > 0) {  // less is there than here
      part_.restart(request_.url, "");
      return once();
    }
    if (answer.status != 200 && answer.status != 206) {
      is_final_ = true;
      throw Error(Code::io, cat(request_.url, ": the server answers ", answer.status, ".",
                                what_status_means(answer.status)));
    }
    return answer.total == 0 || part_.size() == answer.total;
  }

  void begin(const HttpRequest& http, const HttpAnswer& answer) {
    total_ = answer.total;
    finally([&] {
      const bool goes_on = answer.status == 206 && http.from > 0 && answer.from == http.from;
      if (!goes_on) part_.restart(request_.url, answer.validator);
      if (answer.status == 206 && !goes_on)
        throw Error(Code::io, cat(request_.url, ": the server sends another part than was asked."));
      std::error_code error;
      const fs::space_info space = fs::space(request_.path.parent_path(), error);
      const std::uint64_t wanted = total_ - std::min(total_, part_.size());
      if (!error && space.available < wanted)
        throw Error(Code::io,
                    cat(request_.path.string(), ": ", wanted, " bytes are to come, but only ",
                        space.available, " are free there. Make room, or name another folder."));
    });
  }

  // What fails here does not fail less the next time.
  template <class F>
  void finally(F&& body) {
    try {
      body();
    } catch (...) {
      is_final_ = true;
      throw;
    }
  }

  const DownloadRequest& request_;
  const DownloadProgress& progress_;
  Part& part_;
  std::uint64_t total_ = 0;
  bool is_final_ = false;
};

}  // namespace

std::uint64_t download(const DownloadRequest& request, const DownloadProgress& progress) {
  std::error_code error;
  fs::create_directories(request.path.parent_path(), error);
  if (error) fail(request.path.parent_path(), error.value());
  Part part(request.path);
  Attempts(request, progress, part).run();
  part.check_hash(request.sha256, request.url);
  part.finish();
  return part.size();
}

}  // namespace heddle::cli
