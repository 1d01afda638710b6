// A ComfyUI folder as it is found on people's disks, and files of paths that are right and wrong.
#include "engine/resources/comfyui_folder.h"

#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <mutex>

#include "engine/base/log.h"
#include "engine/resources/extra_model_paths.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::refusal_of;
using heddle::test::TemporaryFolder;

BOOST_AUTO_TEST_SUITE(comfyui_folder)

namespace {

using Names = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Fixture {
  TemporaryFolder top;
  std::vector<std::string> logged;

  Fixture() {
    std::filesystem::create_directories(top / "ui/models");
    set_log_sink([this](Level, std::string_view message) { logged.emplace_back(message); });
  }
  ~Fixture() { set_log_sink({}); }

  Names places(const std::string& folder, const std::string& paths = "") {
    if (!paths.empty()) top.write("ui/extra_model_paths.yaml", paths);
    Names names = Folders(read_comfyui_folder(top / "ui").layout).places(folder);
    const std::string prefix = top.path().string() + "/";
    for (std::string& name : names)
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
    return names;
  }
  std::string wrong(const std::string& paths) {
    top.write("ui/extra_model_paths.yaml", paths);
    const Error error = refusal_of([&] { read_comfyui_folder(top / "ui"); });
    BOOST_TEST((error.code() == Code::invalid_argument), paths << ": " << error.what());
    return error.what();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(its_own_folders_are_found_under_names_new_and_old, Fixture) {
  const ComfyUiFolder found = read_comfyui_folder(top / "ui");
  BOOST_TEST(found.layout.input == top / "ui/input");
  BOOST_TEST(found.layout.output == top / "ui/output");
  BOOST_TEST(found.layout.temp == top / "ui/temp");
  BOOST_TEST(found.user == top / "ui/user");
  BOOST_TEST(places("vae") == (Names{"ui/models/vae", "ui/output/vae"}));
  BOOST_TEST(places("embeddings") == (Names{"ui/models/embeddings", "ui/output/embeddings"}));
  BOOST_TEST(places("unet") == (Names{"ui/models/unet", "ui/models/diffusion_models",
                                      "ui/output/unet", "ui/output/diffusion_models"}));
  BOOST_TEST(places("clip") == (Names{"ui/models/text_encoders", "ui/models/clip",
                                      "ui/output/text_encoders", "ui/output/clip"}));
  BOOST_TEST(logged.empty());
}

BOOST_FIXTURE_TEST_CASE(paths_are_added_in_comfyuis_order, Fixture) {
  const char* const paths = R"(
# as the example says
comfyui:
    base_path: ../second
    loras: models/loras
    checkpoints: |
         models/checkpoints
           sub/folder  

         /absolute/place
    clip: models/clip/
first:
    base_path: /data
    is_default: true
    loras: loras
better:
    is_default: yes
    loras: here
empty:
)";
  BOOST_TEST(places("loras", paths) == (Names{"ui/here", "/data/loras", "ui/models/loras",
                                              "second/models/loras", "ui/output/loras"}));
  BOOST_TEST(places("checkpoints") ==
             (Names{"ui/models/checkpoints", "second/models/checkpoints", "second/sub/folder",
                    "/absolute/place", "ui/output/checkpoints"}));
  BOOST_TEST(places("text_encoders") ==
             (Names{"ui/models/text_encoders", "ui/models/clip", "second/models/clip/",
                    "ui/output/text_encoders", "ui/output/clip"}));
}

BOOST_FIXTURE_TEST_CASE(variables_and_the_home_folder_are_replaced_in_base_paths, Fixture) {
  ::setenv("HEDDLE_TEST_PLACE", "/mnt/models", 1);
  ::unsetenv("HEDDLE_TEST_NOWHERE");
  const std::string home = ::getenv("HOME") == nullptr ? "" : ::getenv("HOME");
  BOOST_TEST(places("vae", "a:\n  base_path: $HEDDLE_TEST_PLACE/x\n  vae: vae\n").at(1) ==
             "/mnt/models/x/vae");
  BOOST_TEST(places("vae", "a:\n  base_path: ${HEDDLE_TEST_PLACE}y\n  vae: vae\n").at(1) ==
             "/mnt/modelsy/vae");
  BOOST_TEST(places("vae", "a:\n  base_path: /$HEDDLE_TEST_NOWHERE\n  vae: vae\n").at(1) ==
             "/$HEDDLE_TEST_NOWHERE/vae");
  if (!home.empty())
    BOOST_TEST(places("vae", "a:\n  base_path: ~/m\n  vae: vae\n").at(1) == home + "/m/vae");
}

BOOST_FIXTURE_TEST_CASE(custom_nodes_are_left_out_with_a_line, Fixture) {
  BOOST_TEST(places("custom_nodes", "a:\n  base_path: /x\n  custom_nodes: nodes\n") ==
             (Names{"ui/models/custom_nodes", "ui/output/custom_nodes"}));
  BOOST_REQUIRE(logged.size() == 1u);
  BOOST_TEST(contains(logged[0], "extra_model_paths.yaml:3: custom_nodes are left out"), logged[0]);
}

BOOST_FIXTURE_TEST_CASE(a_wrong_file_of_paths_is_refused_with_its_line, Fixture) {
  const std::string file = (top / "ui/extra_model_paths.yaml").string();
  BOOST_TEST(contains(wrong("a:\n  vae: [x\nb: {"), file + ":"));
  BOOST_TEST(contains(wrong("a:\n\tvae: x\n"), file + ":2: "));
  BOOST_TEST(contains(wrong("- a\n- b\n"), file + ":1: expects sections"));
  BOOST_TEST(contains(wrong("a:\n  vae: x\nb: here\n"), file + ":3: the section 'b' expects"));
  BOOST_TEST(contains(wrong("a:\n  is_default: perhaps\n"), file + ":2: is_default expects"));
  BOOST_TEST(contains(wrong("a:\n  base_path: [x]\n"), file + ":2: base_path expects"));
  BOOST_TEST(contains(wrong("a:\n  vae:\n    x: y\n"), file + ":3: 'vae' expects paths"));
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_is_no_installation_is_refused, Fixture) {
  const auto what = [&](const char* folder) {
    return std::string(refusal_of([&] { read_comfyui_folder(top / folder); }).what());
  };
  std::filesystem::create_directories(top / "portable/ComfyUI/models");
  std::filesystem::create_directories(top / "other");
  BOOST_TEST(contains(what("nowhere"), "there is no folder"), what("nowhere"));
  BOOST_TEST(contains(what("other"), "is no ComfyUI folder"), what("other"));
  BOOST_TEST(contains(what("other"), "Name the folder that holds models/"), what("other"));
  BOOST_TEST(contains(what("portable"), "Did you mean '" + (top / "portable/ComfyUI").string()),
             what("portable"));
  BOOST_TEST(contains(what("ui/models"), "Did you mean '" + (top / "ui").string()),
             what("ui/models"));
}

BOOST_AUTO_TEST_SUITE_END()
