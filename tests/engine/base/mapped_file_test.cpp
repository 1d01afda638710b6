#include "engine/base/mapped_file.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::core;
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

BOOST_AUTO_TEST_SUITE_END()
