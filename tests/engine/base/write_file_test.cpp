// Files appear whole or not at all; what is no file is written into, and stays what it is.
#include "engine/base/write_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "tests/support/file_permissions.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(write_file_test)

namespace {

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::set<std::string> names(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder))
    found.insert(entry.path().filename().string());
  return found;
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  BOOST_REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

void write(const fs::path& path, std::string_view text) { write_file(path, text, Lasting::yes); }

std::string why_not(const fs::path& path, std::string_view text = "x") {
  return refusal_of([&] { write(path, text); }).what();
}

// What comes through this end until all writers have gone.
std::string drain(int end) {
  std::string text;
  char block[4096];
  for (ssize_t got; (got = ::read(end, block, sizeof block)) > 0;)
    text.append(block, std::size_t(got));
  return text;
}

struct Pipe {
  Pipe() { BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  void close(int end) { ::close(std::exchange(ends[end], -1)); }
  std::string name() const { return cat("/dev/fd/", ends[1]); }
  int ends[2];
};

// No file of this process may grow beyond this while it lives: what a full disk looks like.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_appears_and_is_replaced_alone) {
  const TemporaryFolder folder;
  for (const char* text : {"first", "", "third"}) {
    write(folder / "f", text);
    BOOST_TEST(content(folder / "f") == text);
    BOOST_TEST((names(folder.path()) == std::set<std::string>{"f"}));
  }
}

BOOST_AUTO_TEST_CASE(whoever_has_the_old_file_open_keeps_it_whole) {
  const TemporaryFolder folder;
  std::ifstream old(folder.write("f", "the old one"));
  write(folder / "f", "new");
  BOOST_TEST((std::string{std::istreambuf_iterator<char>(old), {}}) == "the old one");
}

BOOST_AUTO_TEST_CASE(permissions_are_kept) {
  const TemporaryFolder folder;
  for (const mode_t mode : {0600, 0644, 0660, 0755}) {
    ::chmod(folder.write("f", "old").c_str(), mode);
    write(folder / "f", "new");
    BOOST_TEST((status_of(folder / "f").st_mode & 07777) == mode);
  }
}

BOOST_AUTO_TEST_CASE(what_may_not_be_written_stays) {
  const TemporaryFolder folder;
  ::chmod(folder.write("f", "old").c_str(), 0400);
  const heddle::test::FilePermissions hold_for_root_too;
  BOOST_TEST(why_not(folder / "f").find("Permission denied. Check the permissions") !=
             std::string::npos);
  BOOST_TEST(content(folder / "f") == "old");
}

BOOST_AUTO_TEST_CASE(a_link_stays_and_its_file_is_replaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "deep");
  folder.write("deep/f", "old");
  fs::create_symlink("deep/f", folder / "near");
  fs::create_symlink(folder / "near", folder / "far");
  write(folder / "far", "new");
  BOOST_TEST(fs::is_symlink(folder / "far"));
  BOOST_TEST(fs::is_symlink(folder / "near"));
  BOOST_TEST(content(folder / "deep/f") == "new");
  BOOST_TEST((names(folder / "deep") == std::set<std::string>{"f"}));
  fs::create_symlink("deep/g", folder / "to nothing");
  write(folder / "to nothing", "made");
  BOOST_TEST(content(folder / "deep/g") == "made");
  fs::create_symlink("round", folder / "round");
  BOOST_TEST(why_not(folder / "round").find("Too many levels of symbolic links") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_device_is_written_through) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/null", folder / "null");
  const struct stat before = status_of("/dev/null");
  BOOST_REQUIRE(S_ISCHR(before.st_mode));
  write(folder / "null", "x");
  write("/dev/null", "x");
  const struct stat after = status_of("/dev/null");
  BOOST_TEST(S_ISCHR(after.st_mode));
  BOOST_TEST(after.st_ino == before.st_ino);
  BOOST_TEST(fs::is_symlink(folder / "null"));
  BOOST_TEST(is_written_through(folder / "null"));
}

boost::test_tools::assertion_result has_full_device(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(fs::is_character_file("/dev/full"));
  result.message() << "there is no /dev/full";
  return result;
}

BOOST_AUTO_TEST_CASE(a_device_that_is_full_is_told,
                     *boost::unit_test::precondition(has_full_device)) {
  BOOST_TEST(why_not("/dev/full") ==
             "cannot write /dev/full: No space left on device. Free some space there, or name a "
             "place that has more.");
}

BOOST_AUTO_TEST_CASE(a_pipe_is_written_through) {
  const TemporaryFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const ino_t inode = status_of(folder / "pipe").st_ino;
  const std::string long_text(200'000, 'x');  // more than a pipe holds
  std::string got;
  std::jthread reader([&] {
    const int end = ::open((folder / "pipe").c_str(), O_RDONLY | O_CLOEXEC);
    got = drain(end);
    ::close(end);
  });
  write(folder / "pipe", long_text);
  reader.join();
  BOOST_TEST((got == long_text));
  BOOST_TEST(status_of(folder / "pipe").st_ino == inode);
  BOOST_TEST((names(folder.path()) == std::set<std::string>{"pipe"}));
}

// As "--trace >(gzip)" or /dev/stdout in a pipeline.
BOOST_AUTO_TEST_CASE(a_descriptor_of_this_process_is_written_through) {
  Pipe pipe;
  BOOST_TEST(is_written_through(pipe.name()));
  write(pipe.name(), "through");
  write(cat("/proc/self/fd/", pipe.ends[1]), " twice");
  pipe.close(1);
  BOOST_TEST(drain(pipe.ends[0]) == "through twice");
  BOOST_TEST(why_not("/dev/fd/99999").find("Bad file descriptor") != std::string::npos);

  int sockets[2];  // what opening by name would refuse
  BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  write(cat("/dev/fd/", sockets[0]), "by socket");
  ::close(sockets[0]);
  BOOST_TEST(drain(sockets[1]) == "by socket");
  ::close(sockets[1]);
}

// "heddle ... --trace /dev/stdout >log": what stands in the log already stays.
BOOST_AUTO_TEST_CASE(a_descriptor_that_is_a_file_is_written_on) {
  const TemporaryFolder folder;
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  BOOST_REQUIRE(::write(log, "before ", 7) == 7);
  write(cat("/dev/fd/", log), "after");
  BOOST_REQUIRE(::write(log, " end", 4) == 4);
  ::close(log);
  BOOST_TEST(content(folder / "log") == "before after end");
}

BOOST_AUTO_TEST_CASE(a_reader_that_went_away_is_an_error_and_not_our_end) {
  Pipe pipe;
  pipe.close(0);
  void (*const before)(int) = std::signal(SIGPIPE, SIG_DFL);
  BOOST_TEST(why_not(pipe.name()).ends_with("Broken pipe. Whoever read from there has ended."));
  sigset_t pending;
  ::sigpending(&pending);
  BOOST_TEST(::sigismember(&pending, SIGPIPE) == 0);
  std::signal(SIGPIPE, before);
}

BOOST_AUTO_TEST_CASE(a_folder_and_what_has_none_are_refused) {
  const TemporaryFolder folder;
  BOOST_TEST(why_not(folder.path()).ends_with(": Is a directory. Name a file in that folder."));
  BOOST_TEST(why_not(folder / "none/f").find("No such file or directory") != std::string::npos);
  BOOST_TEST(why_not(folder / std::string(300, 'n')).ends_with("Use a shorter name."));
}

BOOST_AUTO_TEST_CASE(nothing_stays_when_writing_fails) {
  const TemporaryFolder folder;
  folder.write("f", "old");
  const std::string big(100'000, 'x');
  {
    const FileSizeLimit limit(4096);
    BOOST_TEST(why_not(folder / "f", big).starts_with("cannot write " + (folder / "f").string()));
    BOOST_CHECK_THROW(create_file(folder / "g", big), Error);
  }
  BOOST_TEST(content(folder / "f") == "old");
  BOOST_TEST((names(folder.path()) == std::set<std::string>{"f"}));
}

BOOST_AUTO_TEST_CASE(what_killed_processes_left_goes_after_an_hour) {
  const TemporaryFolder folder;
  for (const char* name : {".heddle-old.part", ".heddle-new.part", "mine.part", ".heddle-notes"})
    folder.write(name, "x");
  for (const char* name : {".heddle-old.part", "mine.part", ".heddle-notes"})
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  write(folder / "f", "x");
  BOOST_TEST((names(folder.path()) ==
              std::set<std::string>{".heddle-new.part", "mine.part", ".heddle-notes", "f"}));
}

BOOST_AUTO_TEST_CASE(a_new_file_takes_the_place_of_nothing) {
  const TemporaryFolder folder;
  BOOST_TEST(create_file(folder / "f", "first"));
  BOOST_TEST(!create_file(folder / "f", "second"));
  BOOST_TEST(content(folder / "f") == "first");
  fs::create_symlink("nowhere", folder / "link");
  BOOST_TEST(!create_file(folder / "link", "x"));
  BOOST_TEST((names(folder.path()) == std::set<std::string>{"f", "link"}));
  BOOST_CHECK_THROW(create_file(folder / std::string(300, 'n'), "x"), Error);
  BOOST_CHECK_THROW(create_file(folder / "none/f", "x"), Error);
}

BOOST_AUTO_TEST_CASE(many_writers_lose_no_file) {
  const TemporaryFolder folder;
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 25; ++i)
        for (int name = 0; !create_file(folder / cat(name), cat(w, " ", i)); ++name) {
        }
    });
  writers.clear();
  std::set<std::string> texts;
  for (const std::string& name : names(folder.path())) texts.insert(content(folder / name));
  BOOST_TEST(names(folder.path()).size() == 100u);
  BOOST_TEST(texts.size() == 100u);
}

BOOST_AUTO_TEST_SUITE_END()
