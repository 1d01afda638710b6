// Where files of models are looked for, and which of them are offered.
#include "engine/resources/folders.h"

#include <boost/test/unit_test.hpp>

#include "heddle/abi/node.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

BOOST_AUTO_TEST_SUITE(folders)

namespace {

using Names = std::vector<std::string>;

struct Fixture {
  TemporaryFolder top;

  void add(const std::filesystem::path& file) {
    std::filesystem::create_directories((top / file).parent_path());
    top.write(file, "x");
  }
  Folders folders(std::vector<ModelPlace> models) const {
    for (ModelPlace& place : models) place.path = top / place.path;
    return Folders(FolderLayout{std::move(models), top / "input", top / "output"});
  }
  std::string at(const std::string& file) const { return (top / file).string(); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_place_is_of_all_folders_or_of_one, Fixture) {
  add("a/loras/one.safetensors");
  add("b/one.safetensors");
  add("b/two.safetensors");
  add("c/loras/two.safetensors");
  const Folders found = folders({{"a"}, {"b", "loras"}, {"c"}});
  BOOST_TEST(found.find("loras", "one.safetensors") == at("a/loras/one.safetensors"));
  BOOST_TEST(found.find("loras", "two.safetensors") == at("b/two.safetensors"));
  BOOST_TEST(found.list("loras", HEDDLE_WIDGET_FILE) ==
             (Names{"one.safetensors", "two.safetensors"}));
  BOOST_TEST(found.places("vae") == (Names{at("a/vae"), at("c/vae")}));
}

BOOST_FIXTURE_TEST_CASE(folders_of_two_names_are_one_under_both, Fixture) {
  const Folders found = folders({{"a"}, {"more", "unet"}, {"other", "clip"}});
  const Names models{at("a/unet"), at("a/diffusion_models"), at("more")};
  const Names encoders{at("a/text_encoders"), at("a/clip"), at("other")};
  for (const char* name : {"unet", "diffusion_models"}) BOOST_TEST(found.places(name) == models);
  for (const char* name : {"clip", "text_encoders"}) BOOST_TEST(found.places(name) == encoders);
  BOOST_TEST(found.places("controlnet") == (Names{at("a/controlnet"), at("a/t2i_adapter")}));
}

BOOST_FIXTURE_TEST_CASE(all_model_folders_are_listed_together, Fixture) {
  add("a/loras/deep/one.safetensors");
  add("b/two.safetensors");
  BOOST_TEST(folders({{"a"}, {"b", "vae"}}).list("", HEDDLE_WIDGET_FILE) ==
             (Names{"loras/deep/one.safetensors", "two.safetensors"}));
}

BOOST_FIXTURE_TEST_CASE(a_place_that_is_named_twice_counts_once, Fixture) {
  BOOST_TEST(folders({{"a"}, {"a"}, {"a/vae", "vae"}}).places("vae") == Names{at("a/vae")});
}

BOOST_FIXTURE_TEST_CASE(only_models_are_offered_of_models, Fixture) {
  for (const char* name : {"put_loras_here", "note.txt", "a.SafeTensors", "sub/b.gguf", "c.pt"})
    add(std::filesystem::path("a/loras") / name);
  add("input/anything");
  const Folders found = folders({{"a"}});
  BOOST_TEST(found.list("loras", HEDDLE_WIDGET_FILE) ==
             (Names{"a.SafeTensors", "c.pt", "sub/b.gguf"}));
  BOOST_TEST(found.list("input", HEDDLE_WIDGET_FILE) == Names{"anything"});
}

BOOST_FIXTURE_TEST_CASE(a_new_file_goes_to_the_first_folder_that_is_there, Fixture) {
  BOOST_TEST(folders({{"a"}, {"b"}}).place_for_new("vae") == top / "a/vae");
  add("b/diffusion_models/x.pt");
  BOOST_TEST(folders({{"a"}, {"b"}}).place_for_new("unet") == top / "b/diffusion_models");
  BOOST_TEST(folders({}).place_for_new("vae").empty());
}

BOOST_FIXTURE_TEST_CASE(temporary_files_have_a_folder_of_their_own_where_one_is_named, Fixture) {
  BOOST_TEST(folders({}).output("temp") == at("output/temp"));
  const Folders named(FolderLayout{{}, top / "input", top / "output", top / "temp"});
  BOOST_TEST(named.output("temp") == at("temp"));
  BOOST_TEST(named.places("temp") == Names{at("temp")});
  BOOST_TEST(std::filesystem::is_directory(top / "temp"));
}

BOOST_AUTO_TEST_SUITE_END()
