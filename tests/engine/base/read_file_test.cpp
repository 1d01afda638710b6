// Small files that others write: whole, up to a limit, and nothing but files.
#include "engine/base/read_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace {

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

constexpr FileKind kNote{"a note", 1000}, kPipedNote{"a note", 1000, true};

std::string why_not(const fs::path& path, const FileKind& kind = kNote) {
  return refusal_of([&] { read_file(path, kind); }).what();
}

void make_pipe(const fs::path& path) { BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }

}  // namespace

BOOST_AUTO_TEST_SUITE(read_file_test)

BOOST_AUTO_TEST_CASE(a_file_is_read_whole) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0, 1, 999, 1000}) {
    const std::string content(size, 'x');
    BOOST_TEST(read_file(folder.write("f", content), kNote) == content);
  }
  const std::string zeros(5, '\0');
  BOOST_TEST(read_file(folder.write("f", zeros), kNote) == zeros);
}

BOOST_AUTO_TEST_CASE(more_than_a_block_is_read_in_one_piece) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i);
  BOOST_TEST((read_file(folder.write("f", content), {"a note", 1 << 20}) == content));
}

// Files of the system are longer than they say.
BOOST_AUTO_TEST_CASE(a_file_ends_where_reading_does) {
  BOOST_TEST(read_file("/proc/self/status", {"a note", 1 << 20}).starts_with("Name:"));
  BOOST_TEST(why_not("/proc/self/status", {"a note", 10}).find("has at most 10 ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_not_read) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("f", std::string(1001, 'x'));
  BOOST_TEST(why_not(path) == path.string() +
                                  ": it has 1001 bytes or more; a note has at most 1000 (1000 B). "
                                  "Check that it is the file you mean.");
  fs::resize_file(path, std::uint64_t{1} << 40);  // a hole
  BOOST_TEST(why_not(path).find("it has 1099511627776 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(devices_are_refused) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/zero", folder / "zero");
  for (const FileKind& kind : {kNote, kPipedNote})
    for (const fs::path& path : {fs::path("/dev/zero"), fs::path("/dev/null"), folder / "zero"})
      BOOST_TEST(why_not(path, kind).starts_with(path.string() + ": this is a device; a note has"));
}

BOOST_AUTO_TEST_CASE(a_pipe_is_not_waited_for) {
  const TemporaryFolder folder;
  make_pipe(folder / "pipe");
  BOOST_TEST(
      why_not(folder / "pipe").ends_with(": this is a pipe; a note has to be a regular file."));
}

BOOST_AUTO_TEST_CASE(a_socket_is_refused) {
  const TemporaryFolder folder;
  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{AF_UNIX, ""};
  (folder / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
  BOOST_REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  BOOST_TEST(why_not(folder / "s").find("this is a socket") != std::string::npos);
  ::close(listening);
}

BOOST_AUTO_TEST_CASE(where_a_pipe_may_be_it_is_read_up_to_the_limit) {
  const TemporaryFolder folder;
  make_pipe(folder / "pipe");
  const auto write = [&](std::size_t size) {
    return std::jthread([&, size] {
      const int end = ::open((folder / "pipe").c_str(), O_WRONLY | O_CLOEXEC);
      for (std::size_t i = 0; i < size; ++i)
        if (::write(end, "x", 1) != 1) break;
      ::close(end);
    });
  };
  {
    const auto writer = write(1000);
    BOOST_TEST(read_file(folder / "pipe", kPipedNote) == std::string(1000, 'x'));
  }
  // As a shell gives what another program writes.
  int ends[2];
  BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  BOOST_REQUIRE(::write(ends[1], std::string(1001, 'x').c_str(), 1001) == 1001);
  ::close(ends[1]);
  const std::string name = cat("/dev/fd/", ends[0]);
  BOOST_TEST(why_not(name, kPipedNote).find("a note has at most 1000") != std::string::npos);
  ::close(ends[0]);
}

BOOST_AUTO_TEST_CASE(a_folder_and_nothing_say_so) {
  const TemporaryFolder folder;
  BOOST_TEST(why_not(folder.path()).ends_with(": this is a folder. Name a file in it."));
  BOOST_TEST(why_not(folder / "none") ==
             (folder / "none").string() + ": No such file or directory");
}

BOOST_AUTO_TEST_CASE(a_name_is_printable_in_errors) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a\n\x1b[2Jb", std::string(1001, 'x'));
  BOOST_TEST(why_not(path).find("/a\\n\\x1b[2Jb: it has") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
