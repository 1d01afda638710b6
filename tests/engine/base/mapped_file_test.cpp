#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;

namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mapped_file_test)

BOOST_AUTO_TEST_CASE(mapping_shows_the_whole_file) {
  const TemporaryFolder folder;
  const std::string content = std::string(10'000, 'x') + "end";
  const MappedFile file(folder.write("a", content));
  BOOST_TEST(file.size() == content.size());
  BOOST_TEST(text_of(file) == content);
  BOOST_TEST(file.path() == folder / "a");
}

BOOST_AUTO_TEST_CASE(empty_file_is_an_empty_span) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("empty", ""));
  BOOST_TEST(file.bytes().empty());
  file.advise(0, 100, Advice::will_need);
}

BOOST_AUTO_TEST_CASE(missing_file_is_not_found_and_names_the_path) {
  const TemporaryFolder folder;
  const Error error = refusal_of([&] { MappedFile file(folder / "gone"); });
  BOOST_TEST((error.code() == Code::not_found));
  BOOST_TEST(std::string(error.what()) ==
             "cannot open '" + (folder / "gone").string() + "': No such file or directory");
  BOOST_TEST((refusal_of([&] { identify_file(folder / "gone"); }).code() == Code::not_found));
}

BOOST_AUTO_TEST_CASE(folders_and_pipes_are_refused_without_waiting) {
  const TemporaryFolder folder;
  const Error error = refusal_of([&] { MappedFile file(folder.path()); });
  BOOST_TEST((error.code() == Code::invalid_argument));
  BOOST_TEST(std::string(error.what()).find("it is a folder") != std::string::npos);
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  BOOST_TEST(
      (refusal_of([&] { MappedFile file(folder / "pipe"); }).code() == Code::invalid_argument));
}

BOOST_AUTO_TEST_CASE(moving_hands_the_mapping_over) {
  const TemporaryFolder folder;
  MappedFile first(folder.write("a", "aaa"));
  MappedFile second(std::move(first));
  BOOST_TEST(text_of(second) == "aaa");
  MappedFile other(folder.write("b", "bb"));
  other = std::move(second);
  BOOST_TEST(text_of(other) == "aaa");
}

BOOST_AUTO_TEST_CASE(identity_changes_with_the_file_and_only_then) {
  const TemporaryFolder folder;
  const auto path = folder.write("a", "aaa");
  const MappedFile old(path);
  BOOST_TEST((old.identity() == identify_file(path)));
  folder.write("a", "bbb");
  BOOST_TEST((old.identity() != identify_file(path)));
  BOOST_TEST(text_of(old) == "aaa");
  BOOST_TEST(text_of(MappedFile(path)) == "bbb");
}

BOOST_AUTO_TEST_CASE(identity_for_a_key_changes_with_whatever_is_written_later) {
  const TemporaryFolder folder;
  const auto path = folder.write("a", "aaa");
  // Within one tick of the clock, and dated as before.
  for (int i = 0; i < 30; ++i) {
    std::ofstream(path, std::ios::in | std::ios::binary) << "bbb";
    const FileIdentity before = identify_file_for_key(path);
    const auto date = std::filesystem::last_write_time(path);
    std::ofstream(path, std::ios::in | std::ios::binary) << "ccc";
    std::filesystem::last_write_time(path, date);
    BOOST_TEST((identify_file(path) != before));
  }
}

BOOST_AUTO_TEST_CASE(advice_of_any_range_leaves_the_bytes_alone) {
  const TemporaryFolder folder;
  const std::string content(20'000, 'y');
  const MappedFile file(folder.write("a", content));
  for (const Advice advice : {Advice::will_need, Advice::sequential, Advice::dont_need}) {
    file.advise(0, file.size(), advice);
    file.advise(5000, 3, advice);
    file.advise(19'999, ~std::uint64_t{0}, advice);
    file.advise(~std::uint64_t{0}, 1, advice);
  }
  BOOST_TEST(text_of(file) == content);
}

// Asked of the system, not of the code under test.
boost::test_tools::assertion_result reads_past_the_page_cache(boost::unit_test::test_unit_id) {
  const TemporaryFolder folder;
  const int file = ::open(folder.write("a", "x").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(page_bytes(), page_bytes()), &std::free);
  boost::test_tools::assertion_result result(file >= 0 &&
                                             ::pread(file, memory.get(), page_bytes(), 0) == 1);
  if (file >= 0) ::close(file);
  result.message() << "the file system of " << folder.path()
                   << " reads only by way of the page cache";
  return result;
}

BOOST_AUTO_TEST_CASE(reading_into_memory_gives_the_files_bytes_by_either_way,
                     *boost::unit_test::precondition(reads_past_the_page_cache)) {
  const TemporaryFolder folder;
  const std::size_t page = page_bytes();
  std::string content;
  for (std::size_t i = 0; i < 3 * page + 100; ++i) content += char(i * 7 % 251);
  MappedFile opened(folder.write("a", content));
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(page, 4 * page)), &std::free);
  const auto read = [&](std::size_t size) {
    return std::string_view(reinterpret_cast<const char*>(memory.get()), size);
  };
  opened.read(5, {memory.get(), 2 * page});
  BOOST_TEST(read(2 * page) == content.substr(5, 2 * page));
  BOOST_REQUIRE(opened.read_direct(page, {memory.get(), 2 * page}));
  BOOST_TEST(read(2 * page) == content.substr(page, 2 * page));
  const MappedFile file(std::move(opened));
  BOOST_TEST(file.read_direct(2 * page, {memory.get(), 2 * page}));  // the file ends within
  BOOST_TEST(read(page + 100) == content.substr(2 * page));
}

BOOST_AUTO_TEST_CASE(reading_beyond_what_is_left_of_a_file_is_an_error) {
  const TemporaryFolder folder;
  const std::size_t page = page_bytes();
  const MappedFile file(folder.write("a", std::string(3 * page, 'z')));
  std::filesystem::resize_file(file.path(), page);
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(page, 2 * page)), &std::free);
  const std::span<std::byte> into(memory.get(), 2 * page);
  for (const auto& action : std::initializer_list<std::function<void()>>{
           [&] { file.read(page, into); }, [&] { file.touch(page, 2 * page); },
           // Where it does not read, the other way tells it.
           [&] {
             if (!file.read_direct(page, into)) file.read(page, into);
           }}) {
    const Error error = refusal_of(action);
    BOOST_TEST((error.code() == Code::io));
    BOOST_TEST(std::string(error.what()).find("are gone: the file has") != std::string::npos,
               error.what());
  }
}

BOOST_AUTO_TEST_SUITE_END()
