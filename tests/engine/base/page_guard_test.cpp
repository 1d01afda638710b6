// Files that are cut short while they are mapped: their pages read as zeros, and are marked.
#include "engine/base/page_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/mapped_file.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(page_guard)

namespace {

std::size_t count_of(const MappedFile& file, char letter) {
  std::size_t count = 0;
  for (const std::byte byte : file.bytes()) count += std::to_integer<char>(byte) == letter ? 1 : 0;
  return count;
}

struct Fixture {
  TemporaryFolder folder;
  const std::size_t page = page_bytes();
  const fs::path path = folder.write("a", std::string(8 * page, 'x'));
};

bool has(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_went_with_the_end_of_a_file_reads_as_zeros_and_is_told, Fixture) {
  const MappedFile file(path), other(folder.write("b", std::string(2 * page, 'y')));
  fs::resize_file(path, 2 * page);
  const std::uint64_t before = lost_page_count();
  BOOST_TEST(count_of(file, 'x') == 2 * page);
  BOOST_TEST(count_of(file, '\0') == 6 * page);
  BOOST_TEST(lost_page_count() == before + 1);  // all of it at once
  BOOST_TEST(file.is_damaged());
  const Error error = refusal_of([&] { file.check(); });
  BOOST_TEST((error.code() == Code::io));
  BOOST_TEST(has(error, path.native() + ": the bytes " + std::to_string(2 * page) + " to " +
                            std::to_string(8 * page) + " are gone: the file has " +
                            std::to_string(2 * page) + " bytes, it had " +
                            std::to_string(8 * page) + " when it was opened"),
             error.what());
  BOOST_TEST(count_of(other, 'y') == 2 * page);
  other.check();
}

BOOST_FIXTURE_TEST_CASE(the_mark_stays_when_the_file_is_whole_again, Fixture) {
  const MappedFile file(path);
  fs::resize_file(path, 0);
  BOOST_TEST(count_of(file, 'x') == 0u);
  fs::resize_file(path, 8 * page);
  BOOST_TEST(has(refusal_of([&] { file.check(); }), "the file has 0 bytes"));
  BOOST_TEST(has(refusal_of([&] { file.touch(0, page); }), "the file has 0 bytes"));
  const MappedFile again(path);
  again.check();
  BOOST_TEST(again.opening() != file.opening());
}

BOOST_FIXTURE_TEST_CASE(a_file_that_nobody_reads_is_not_marked_but_shorter, Fixture) {
  const MappedFile file(path);
  file.check_size();
  fs::resize_file(path, page);
  file.check();
  BOOST_TEST(has(refusal_of([&] { file.check_size(); }), "are gone: the file has"));
}

BOOST_FIXTURE_TEST_CASE(the_mark_goes_with_a_mapping_and_is_not_left_to_the_next, Fixture) {
  for (int i = 0; i < 100; ++i) {
    auto file = std::make_unique<MappedFile>(path);
    file->check();
    fs::resize_file(path, page);
    BOOST_TEST(count_of(*file, 'x') == page);
    const MappedFile moved(std::move(*file));
    BOOST_TEST(moved.is_damaged());
    BOOST_TEST(!file->is_damaged());
    fs::resize_file(path, 8 * page);
    fs::remove(path);
    folder.write("a", std::string(8 * page, 'x'));
  }
  const MappedFile last(path);
  BOOST_TEST(count_of(last, 'x') == 8 * page);
  last.check();
}

BOOST_FIXTURE_TEST_CASE(threads_that_read_lost_pages_at_once_all_go_on, Fixture) {
  std::vector<std::unique_ptr<MappedFile>> files;
  for (int i = 0; i < 8; ++i)
    files.push_back(
        std::make_unique<MappedFile>(folder.write(std::to_string(i), std::string(8 * page, 'z'))));
  for (const auto& file : files) fs::resize_file(file->path(), page);
  std::vector<std::size_t> found(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (const auto& file : files)
          found[t] += count_of(*file, 'z') + (file->is_damaged() ? 1 : 0);
        // Ranges come and go meanwhile.
        for (int i = 0; i < 20; ++i) found[t] += MappedFile(path).is_damaged() ? 1 : 0;
      });
  }
  for (const std::size_t each : found) BOOST_TEST(each == 8 * (page + 1));
}

BOOST_FIXTURE_TEST_CASE(a_page_that_nobody_guards_ends_the_process_as_before, Fixture) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGBUS, SIG_DFL);       // not the one of the tests
    const MappedFile guarded(path);  // so that the handler is there
    const auto* bytes = static_cast<const volatile char*>(
        ::mmap(nullptr, 8 * page, PROT_READ, MAP_SHARED, ::open(path.c_str(), O_RDONLY), 0));
    if (::truncate(path.c_str(), 0) != 0) ::_exit(0);
    static_cast<void>(bytes[page]);
    ::_exit(0);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  // A sanitizer's own handler reports it, and exits with a code.
  BOOST_TEST((WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0));
}

namespace {

struct sigaction before_mine;
volatile sig_atomic_t calls_of_mine = 0;

void mine(int number, siginfo_t* info, void* context) {
  calls_of_mine = calls_of_mine + 1;
  before_mine.sa_sigaction(number, info, context);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_handler_that_comes_later_may_pass_faults_on, Fixture) {
  const MappedFile file(path);
  struct sigaction action {};
  action.sa_sigaction = &mine;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  BOOST_REQUIRE(::sigaction(SIGBUS, &action, &before_mine) == 0);
  fs::resize_file(path, 0);
  BOOST_TEST(count_of(file, '\0') == 8 * page);
  ::sigaction(SIGBUS, &before_mine, nullptr);
  BOOST_TEST(calls_of_mine == 1);
  BOOST_TEST(file.is_damaged());
}

BOOST_AUTO_TEST_SUITE_END()
