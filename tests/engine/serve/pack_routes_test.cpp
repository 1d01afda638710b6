// What Python packs bring for the front end: /extensions and /workflow_templates.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Json;

namespace {

namespace fs = std::filesystem;

struct WithPacks {
  TemporaryFolder folder;
  Serving serving{[this](engine::ServiceOptions& options) {
    write("secret.txt", "secret");
    write("packs/theme/__init__.py", "import os\nWEB_DIRECTORY = \"./js\"\n");
    write("packs/theme/js/theme.js", "export const a = 1;");
    write("packs/theme/js/lib/more.js", "export const b = 2;");
    write("packs/theme/js/style.css", "a {}");
    write("packs/theme/secret.js", "none of the page's");
    write("packs/project/pyproject.toml",
          "[project]\nweb = \"no\"\n[tool.comfy]\nweb = 'dist'\n[tool.x]\nweb = \"no\"\n");
    write("packs/project/dist/a b.js", "");
    write("packs/out/__init__.py", "WEB_DIRECTORY = \"../..\"\n");
    write("packs/off.disabled/__init__.py", "WEB_DIRECTORY = \"js\"\n");
    write("packs/off.disabled/js/off.js", "");
    write("packs/examples/example_workflows/First one.json", "{\"nodes\": []}");
    write("packs/examples/example_workflows/First one.jpg", "jpeg");
    fs::create_symlink(folder / "secret.txt", folder / "packs/theme/js/link.js");
    options.packs = folder / "packs";
  }};
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  Reply get(const std::string& target) const { return serving.get(target); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pack_routes)

BOOST_FIXTURE_TEST_CASE(scripts_of_packs_are_listed_and_sent, WithPacks) {
  BOOST_TEST(get("/extensions").body ==
             "[\"/extensions/project/a%20b.js\",\"/extensions/theme/lib/more.js\","
             "\"/extensions/theme/theme.js\"]");
  const Reply script = get("/api/extensions/theme/theme.js");
  BOOST_TEST(script.status == 200);
  BOOST_TEST(script.body == "export const a = 1;");
  BOOST_TEST(script.header("content-type").starts_with("text/javascript"));
  BOOST_TEST(script.header("cache-control") == "no-cache");
  BOOST_TEST(get("/extensions/theme/lib/more.js").status == 200);
  BOOST_TEST(get("/extensions/theme/style.css").status == 200);
  BOOST_TEST(get("/extensions/project/a%20b.js").status == 200);
}

BOOST_FIXTURE_TEST_CASE(nothing_else_of_packs_is_sent, WithPacks) {
  for (const char* target :
       {"/extensions/theme/secret.js", "/extensions/theme/../secret.js",
        "/extensions/theme/%2e%2e/secret.js", "/extensions/theme/link.js",
        "/extensions/theme/none.js", "/extensions/none/theme.js", "/extensions/out/secret.txt",
        "/extensions/off.disabled/off.js", "/extensions/%2e%2e/secret.txt",
        "/extensions/examples/x.js", "/workflow_templates/theme/theme.js",
        "/workflow_templates/examples/..%2f__init__.py"})
    BOOST_TEST(get(target).status == 404, target);
}

BOOST_FIXTURE_TEST_CASE(workflows_of_packs_are_templates, WithPacks) {
  BOOST_TEST(get("/workflow_templates").body == "{\"examples\":[\"First one\"]}");
  BOOST_TEST(get("/api/workflow_templates/examples/First%20one.json").body == "{\"nodes\": []}");
  BOOST_TEST(get("/api/workflow_templates/examples/First%20one.jpg").header("content-type") ==
             "image/jpeg");
}

BOOST_AUTO_TEST_CASE(without_a_folder_there_are_none) {
  const Serving serving;
  BOOST_TEST(serving.get("/extensions").body == "[]");
  BOOST_TEST(serving.get("/workflow_templates").body == "{}");
  BOOST_TEST(serving.get("/extensions/a/b.js").status == 404);
}

BOOST_AUTO_TEST_SUITE_END()
