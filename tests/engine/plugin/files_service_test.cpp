// What plugins read and write through the engine.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/value.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(files_service_test)

namespace {

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  heddle_value* content = nullptr;
  throw_status(files_service()->read(plugin_host(), path.c_str(), 10, "a note", &content), "read");
  return get_str(*Value::adopt(content));
}

bool create(const fs::path& path, std::string_view content) {
  std::int32_t created = -1;
  throw_status(files_service()->create(plugin_host(), path.c_str(),
                                       {content.data(), content.size()}, &created),
               "create");
  return created != 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plugin_reads_small_files_only) {
  const TemporaryFolder folder;
  const std::string bytes("\xff\0a", 3);
  BOOST_TEST(read(folder.write("f", bytes)) == bytes);
  const auto why_not = [](const fs::path& path) {
    const Error error = refusal_of([&] { read(path); });
    BOOST_TEST((error.code() == Code::invalid_argument));
    return std::string(error.what());
  };
  BOOST_TEST(why_not("/dev/zero").find("a note has to be a regular file") != std::string::npos);
  BOOST_TEST(why_not(folder.write("f", std::string(11, 'x'))).find("a note has at most 10 ") !=
             std::string::npos);
  BOOST_TEST((refusal_of([&] { read(folder / "none"); }).code() == Code::not_found));
}

BOOST_AUTO_TEST_CASE(a_plugin_makes_new_files_only) {
  const TemporaryFolder folder;
  BOOST_TEST(create(folder / "f", "one"));
  BOOST_TEST(!create(folder / "f", "two"));
  BOOST_TEST(read(folder / "f") == "one");
}

BOOST_AUTO_TEST_SUITE_END()
