// Names of files that come from a server.
#include "engine/cli/served_file.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_folder.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(served_file)

BOOST_AUTO_TEST_CASE(names_are_counted_on) {
  using cli::numbered_name;
  BOOST_TEST(numbered_name("scene_00003_.png", 0) == "scene_00003_.png");
  BOOST_TEST(numbered_name("scene_00003_.png", 2) == "scene_00005_.png");
  BOOST_TEST(numbered_name("a.b.png", 1) == "a.b_00001_.png");
  BOOST_TEST(numbered_name("plain", 12) == "plain_00012_");
}

BOOST_AUTO_TEST_CASE(nothing_is_written_outside) {
  const test::TemporaryFolder folder;
  const cli::ServerClient nobody({"http://127.0.0.1:1", true, ""});
  const auto refused = [&](const std::string& subfolder, const std::string& name) {
    try {
      cli::download_file(nobody, "/view", folder / "output", subfolder, name);
    } catch (const engine::Error& error) {
      return error.code() == engine::Code::invalid_argument;
    }
    return false;
  };
  for (const char* name : {"../a.png", "a/../../b.png", "/etc/a", "..", ".", "", "b/a.png"})
    BOOST_TEST(refused("", name), name);
  for (const char* subfolder : {"..", "a/../..", "/tmp"})
    BOOST_TEST(refused(subfolder, "a.png"), subfolder);
  BOOST_TEST(!std::filesystem::exists(folder / "output"));
}

BOOST_AUTO_TEST_SUITE_END()
