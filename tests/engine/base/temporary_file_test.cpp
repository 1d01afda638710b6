#include "engine/base/temporary_file.h"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace fs = std::filesystem;
using heddle::engine::TemporaryFile;
using heddle::engine::unlink_temporary_files;

BOOST_AUTO_TEST_SUITE(temporary_file)

BOOST_AUTO_TEST_CASE(a_temporary_file_goes_with_its_object_unless_it_has_another_name) {
  const heddle::test::TemporaryFolder folder;
  const fs::path gone = folder.write("gone", "a"), kept = folder.write("kept", "b");
  const fs::path named = kept.parent_path() / "named";
  {
    const TemporaryFile first(gone.string()), second(kept.string());
    fs::rename(kept, named);
  }
  BOOST_TEST(!fs::exists(gone));
  BOOST_TEST(fs::exists(named));
}

BOOST_AUTO_TEST_CASE(a_program_that_ends_leaves_none_behind_and_nothing_else_goes) {
  const heddle::test::TemporaryFolder folder;
  const fs::path other = folder.write("other", "a"), old = folder.write("old", "b");
  { const TemporaryFile over(old.string()); }
  folder.write("old", "of somebody else");
  std::deque<TemporaryFile> files;
  for (int i = 0; i < 20; ++i)
    files.emplace_back(folder.write("temporary " + std::to_string(i), "c").string());
  unlink_temporary_files();
  for (const TemporaryFile& file : files) BOOST_TEST(!fs::exists(file.path()), file.path());
  BOOST_TEST(fs::exists(other));
  BOOST_TEST(fs::exists(old));
}

BOOST_AUTO_TEST_SUITE_END()
