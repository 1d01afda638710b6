#include "engine/base/folder.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <thread>

#include "engine/base/error.h"
#include "tests/support/failing_new.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace fs = std::filesystem;
using namespace heddle::engine;
using heddle::test::FailingNew;

namespace {

using NameSet = std::set<std::string>;

// a file, a folder with a file and a folder in it, a link to either, one to nothing, one in a
// circle.
struct Tree : heddle::test::TemporaryFolder {
  Tree() {
    fs::create_directories(path() / "folder/below");
    write("file", "a");
    write("folder/inner", "b");
    write("folder/below/last", "c");
    fs::create_symlink("file", path() / "to_file");
    fs::create_directory_symlink("folder/below", path() / "to_below");
    fs::create_symlink("nowhere", path() / "to_nothing");
    fs::create_directory_symlink("..", path() / "folder/up");
  }

  NameSet below(Links links, int levels) const {
    NameSet found;
    std::error_code error;
    walk(
        path(), links,
        [&](const FolderEntry& entry, int depth) {
          found.insert(entry.path.lexically_relative(path()).generic_string());
          return depth + 1 < levels;
        },
        error);
    BOOST_TEST(!error);
    return found;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(folder)

BOOST_AUTO_TEST_CASE(entries_say_what_they_are_and_what_links_lead_to) {
  const Tree tree;
  NameSet all, files, folders, links;
  for (const FolderEntry& entry : entries_of(tree.path())) {
    BOOST_TEST(entry.path == tree.path() / entry.name());
    all.insert(entry.name());
    if (entry.is_file()) files.insert(entry.name());
    if (entry.is_folder()) folders.insert(entry.name());
    if (entry.is_link()) links.insert(entry.name());
    // As a file system tells it that does not keep the kind beside the name.
    const FolderEntry unknown{entry.path};
    BOOST_TEST(unknown.is_file() == entry.is_file());
    BOOST_TEST(unknown.is_folder() == entry.is_folder());
    BOOST_TEST(unknown.is_link() == entry.is_link());
  }
  BOOST_TEST((all == NameSet{"file", "folder", "to_file", "to_below", "to_nothing"}));
  BOOST_TEST((files == NameSet{"file", "to_file"}));
  BOOST_TEST((folders == NameSet{"folder", "to_below"}));
  BOOST_TEST((links == NameSet{"to_file", "to_below", "to_nothing"}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_said) {
  const Tree tree;
  std::error_code error;
  BOOST_TEST(entries_of(tree.path() / "nowhere", error).empty());
  BOOST_TEST(error.value() == ENOENT);
  BOOST_TEST(entries_of(tree.path() / "file", error).empty());
  BOOST_TEST(error.value() == ENOTDIR);
  (void)entries_of(tree.path(), error);
  BOOST_TEST(!error);
  const Error refusal = heddle::test::refusal_of([&] { (void)entries_of(tree / "nowhere"); });
  BOOST_TEST((refusal.code() == Code::not_found));
  BOOST_TEST(std::string(refusal.what()).find("nowhere") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(everything_below_is_visited_and_links_are_followed_where_that_is_asked_for) {
  const Tree tree;
  const NameSet first{"file", "folder", "to_file", "to_below", "to_nothing"};
  BOOST_TEST((tree.below(Links::stay, 1) == first));
  NameSet all = first;
  all.insert({"folder/inner", "folder/below", "folder/up", "folder/below/last"});
  BOOST_TEST((tree.below(Links::stay, 9) == all));
  NameSet followed = first;
  followed.insert({"folder/inner", "folder/below", "folder/up", "to_below/last"});
  BOOST_TEST((tree.below(Links::follow, 2) == followed));
  BOOST_TEST(tree.below(Links::follow, 9).contains("folder/up/folder/up/file"));
  std::error_code error;
  walk(
      tree / "nowhere", Links::stay, [](const FolderEntry&, int) { return true; }, error);
  BOOST_TEST(error.value() == ENOENT);
}

BOOST_AUTO_TEST_CASE(where_memory_is_out_while_a_folder_is_read_that_is_an_exception) {
  const Tree tree;
  int thrown = 0;
  std::size_t count = 0;
  for (int nth = 0; nth < 40; ++nth) {
    const FailingNew failing(nth);
    std::thread([&] {
      try {
        count = entries_of(tree.path()).size();
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
    }).join();
  }
  if (HEDDLE_FAILING_NEW != 0) BOOST_TEST(thrown > 5);
  BOOST_TEST(count == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
