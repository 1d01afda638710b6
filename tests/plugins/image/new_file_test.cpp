// Files appear whole or not at all, and never over another one.
#include "plugins/image/new_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "plugins/image/file_names.h"
#include "tests/plugins/image/refused.h"
#include "tests/support/temporary_folder.h"

namespace heddle::image {
BOOST_AUTO_TEST_SUITE(image_new_file)

namespace {

namespace fs = std::filesystem;
using heddle::test::TemporaryFolder;
using testing::refused;
using testing::says;
using Bytes = std::vector<std::uint8_t>;

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

BOOST_AUTO_TEST_CASE(a_file_appears_under_its_name_alone) {
  const TemporaryFolder root;
  BOOST_TEST(put_new_file(root.path(), Bytes{'a', 'b'}, [] { return "x.png"; }) == "x.png");
  BOOST_TEST(content(root / "x.png") == "ab");
  BOOST_TEST((names(root.path()) == std::set<std::string>{"x.png"}));
}

BOOST_AUTO_TEST_CASE(a_taken_name_is_left_alone_and_the_next_is_asked_for) {
  const TemporaryFolder root;
  root.write("a_00001_.png", "old");
  std::uint64_t counter = 1;
  const auto next = [&] { return file_name("a", 0, counter++); };
  BOOST_TEST(put_new_file(root.path(), Bytes{'n'}, next) == "a_00002_.png");
  BOOST_TEST(content(root / "a_00001_.png") == "old");
}

BOOST_AUTO_TEST_CASE(many_writers_lose_no_file) {
  const TemporaryFolder root;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 25; ++i) {
        std::uint64_t counter = 1;
        const std::string text = std::to_string(w) + " " + std::to_string(i);
        put_new_file(root.path(), Bytes(text.begin(), text.end()),
                     [&] { return file_name("a", 0, counter++); });
      }
    });
  for (std::thread& writer : writers) writer.join();
  std::set<std::string> texts;
  for (const std::string& name : names(root.path())) texts.insert(content(root / name));
  BOOST_TEST(texts.size() == 100u);
  BOOST_TEST(names(root.path()).size() == 100u);
}

BOOST_AUTO_TEST_CASE(nothing_stays_when_writing_fails) {
  const TemporaryFolder root;
  const Bytes big(100000, 'x');
  Error error(0, "");
  {
    const FileSizeLimit limit(4096);
    error = refused([&] { put_new_file(root.path(), big, [] { return "x.png"; }); });
  }
  BOOST_TEST(error.code == HEDDLE_IO);
  BOOST_TEST(says(error, "cannot write " + root.path().string()));
  BOOST_TEST(fs::is_empty(root.path()));
}

BOOST_AUTO_TEST_CASE(nothing_stays_when_the_name_cannot_be_had) {
  const TemporaryFolder root;
  const Error error =
      refused([&] { put_new_file(root.path(), Bytes{'x'}, [] { return std::string(300, 'n'); }); });
  BOOST_TEST(error.code == HEDDLE_IO);
  BOOST_TEST(says(error, "shorter filename_prefix"));
  BOOST_CHECK_THROW(put_new_file(root.path(), Bytes{'x'}, []() -> std::string { throw 1; }), int);
  BOOST_TEST(fs::is_empty(root.path()));
}

BOOST_AUTO_TEST_CASE(a_folder_without_the_right_to_write_says_so) {
  if (::geteuid() == 0) return;  // to whom nothing is forbidden
  const TemporaryFolder root;
  fs::permissions(root.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const Error error = refused([&] { put_new_file(root.path(), Bytes{'x'}, [] { return "x"; }); });
  fs::permissions(root.path(), fs::perms::owner_all);
  BOOST_TEST(says(error, "Permission denied. Give this user the right"));
}

BOOST_AUTO_TEST_CASE(a_missing_folder_is_an_io_error) {
  const TemporaryFolder root;
  const Error error =
      refused([&] { put_new_file(root / "missing", Bytes{'x'}, [] { return "x"; }); });
  BOOST_TEST(error.code == HEDDLE_IO);
  BOOST_TEST(says(error, "No such file or directory"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
