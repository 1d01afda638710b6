#include "engine/files/file_hashes.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

// The files of a test are made just now: for these objects it is a minute later.
std::int64_t a_minute_later() {
  const auto now = std::chrono::system_clock::now().time_since_epoch() + std::chrono::minutes(1);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

struct FileHashesFixture {
  TemporaryFolder folder;
  const fs::path memory = folder / "files.json";
  const fs::path model = folder.write("model", "the weights");

  static Hash128 hash_of(std::string_view text) {
    return hash_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Overwritten in place, and dated as before.
  void replace(std::string_view content) const {
    const auto date = fs::last_write_time(model);
    std::ofstream(model, std::ios::binary | std::ios::trunc) << content;
    fs::last_write_time(model, date);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(file_hashes_test, FileHashesFixture)

BOOST_AUTO_TEST_CASE(a_file_is_read_once_by_all_processes_together) {
  FileHashes first(memory, a_minute_later);
  BOOST_TEST((first.of(model) == hash_of("the weights")));
  BOOST_TEST((first.of(model) == hash_of("the weights")));
  BOOST_TEST(first.bytes_read() == 11u);
  FileHashes second(memory, a_minute_later);
  BOOST_TEST((second.of(model) == hash_of("the weights")));
  BOOST_TEST(second.bytes_read() == 0u);
}

BOOST_AUTO_TEST_CASE(another_content_of_the_same_size_and_date_is_noticed) {
  FileHashes hashes(memory, a_minute_later);
  hashes.of(model);
  replace("THE WEIGHTS");
  BOOST_TEST((hashes.of(model) == hash_of("THE WEIGHTS")));
  const fs::path other = folder.write("other", "the WEIGHTS");
  fs::last_write_time(other, fs::last_write_time(model));
  fs::rename(other, model);
  BOOST_TEST((hashes.of(model) == hash_of("the WEIGHTS")));
}

BOOST_AUTO_TEST_CASE(a_hash_comes_with_the_identity_that_its_file_had) {
  FileHashes hashes(memory, a_minute_later);
  const FileHashes::Found found = hashes.find(model);
  BOOST_TEST((found.identity == identify_file(model)));
  BOOST_TEST((hashes.find(model).identity == found.identity));  // as it is remembered
  BOOST_TEST((FileHashes(memory, a_minute_later).find(model).identity == found.identity));
  replace("THE WEIGHTS");
  BOOST_TEST((identify_file(model) != found.identity));
}

BOOST_AUTO_TEST_CASE(a_copy_elsewhere_has_the_same_hash) {
  fs::copy_file(model, folder / "copy");
  FileHashes hashes(memory, a_minute_later);
  BOOST_TEST((hashes.of(folder / "copy") == hashes.of(model)));
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_neither_waited_for_nor_read) {
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  FileHashes hashes(memory, a_minute_later);
  for (const fs::path& path : {folder / "pipe", fs::path("/dev/zero"), folder.path()})
    BOOST_TEST((refusal_of([&] { hashes.of(path); }).code() == Code::invalid_argument));
}

BOOST_AUTO_TEST_CASE(a_file_that_was_changed_just_now_is_not_remembered) {
  FileHashes hashes(memory);  // a change within the same tick of the clock would not be seen
  hashes.of(model);
  hashes.of(model);
  BOOST_TEST(hashes.bytes_read() == 22u);
}

BOOST_AUTO_TEST_CASE(a_damaged_memory_counts_as_empty) {
  for (const char* content : {"", "[1, 2", "[]", R"({"x": 5})", R"({"x": {"hash": "zz"}})"}) {
    std::ofstream(memory, std::ios::binary | std::ios::trunc) << content;
    FileHashes hashes(memory, a_minute_later);
    BOOST_TEST((hashes.of(model) == hash_of("the weights")));
    BOOST_TEST(hashes.bytes_read() == 11u);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_named) {
  FileHashes hashes(memory);
  const std::string what = refusal_of([&] { hashes.of(folder / "gone"); }).what();
  BOOST_TEST(what.find((folder / "gone").string()) != std::string::npos, what);
}

BOOST_AUTO_TEST_SUITE_END()
