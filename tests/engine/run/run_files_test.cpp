// Files under a run: changed since its keys were made, or with pages that are gone.
#include "engine/run/run_files.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "engine/files/checkpoint.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(run_files)

namespace {

engine::Model model_of(const fs::path& path) {
  engine::Model model;
  model.checkpoint = std::make_shared<const engine::Checkpoint>(engine::open_checkpoint(path));
  return model;
}

fs::path write(const test::TemporaryFolder& folder, const std::string& name) {
  return folder.write(
      name, test::safetensors_bytes(
                {{"a", "F32", {4096}, test::bytes_of_floats(std::vector<float>(4096, 1))}}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_that_was_changed_or_has_gone_is_found) {
  const test::TemporaryFolder folder;
  const fs::path one = folder.write("one", "111"), two = folder.write("two", "222");
  const engine::UsedFiles files{{one, engine::identify_file_for_key(one)},
                                {two, engine::identify_file_for_key(two)}};
  BOOST_TEST(engine::find_changed(files) == nullptr);
  std::ofstream(two, std::ios::binary | std::ios::in) << "333";
  BOOST_TEST_REQUIRE(engine::find_changed(files) != nullptr);
  BOOST_TEST(engine::find_changed(files)->path == two);
  fs::remove(one);
  BOOST_TEST(engine::find_changed(files)->path == one);
}

BOOST_AUTO_TEST_CASE(a_model_whose_pages_are_lost_is_told_from_then_on_and_no_other) {
  const test::TemporaryFolder folder;
  const fs::path path = write(folder, "one.safetensors");
  const engine::Model one = model_of(path), other = model_of(write(folder, "other.safetensors"));
  engine::MappedModels uses_one, uses_other;
  uses_one.use(one);
  uses_other.use(other);
  fs::resize_file(path, 4096);
  uses_one.check();
  BOOST_TEST(std::to_integer<int>(one.checkpoint->at("a").data.back()) == 0);
  const engine::Error error = test::refusal_of([&] { uses_one.check(); });
  BOOST_TEST((error.code() == engine::Code::io));
  BOOST_TEST(std::string(error.what()).find(path.string()) != std::string::npos, error.what());
  BOOST_TEST(uses_one.is_damaged());
  uses_other.check();
  BOOST_TEST(!uses_other.is_damaged());
  engine::MappedModels later;
  BOOST_TEST((test::refusal_of([&] { later.use(one); }).code() == engine::Code::io));
}

BOOST_AUTO_TEST_SUITE_END()
