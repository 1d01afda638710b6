// The page of our own, and what a browser may do with it.
#include <boost/test/unit_test.hpp>
#include <set>

#include "engine/serve/embedded_file.h"
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;

namespace {

std::string embedded(std::string_view name) {
  for (const engine::EmbeddedFile& file : engine::page_files())
    if (file.name == name) return std::string(file.content);
  BOOST_TEST_REQUIRE(false, "there is no " << name);
  return "";
}

std::string file_in_tree(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Reply get_if_changed(const Serving& serving, const std::string& target, const std::string& tag) {
  return ask(serving.port(), "GET", target, "",
             "Host: 127.0.0.1\r\nIf-None-Match: " + tag + "\r\n");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(page_routes)

BOOST_AUTO_TEST_CASE(the_files_are_those_of_the_tree) {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/engine/serve/page")) {
    const std::string name = entry.path().filename();
    names.insert(name);
    BOOST_TEST((embedded(name) == file_in_tree(entry.path())), name << " differs");
  }
  BOOST_TEST(names.size() == engine::page_files().size());
  BOOST_TEST(names.contains("index.html"));
}

BOOST_AUTO_TEST_CASE(each_file_of_the_page_is_served) {
  const Serving serving;
  std::set<std::string> tags;
  for (const engine::EmbeddedFile& file : engine::page_files()) {
    const Reply reply = serving.get(cat("/heddle/", file.name));
    BOOST_TEST(reply.status == 200);
    BOOST_TEST((reply.body == file.content), file.name << " differs");
    BOOST_TEST(reply.header("x-content-type-options") == "nosniff");
    tags.insert(reply.header("etag"));
  }
  BOOST_TEST(tags.size() == engine::page_files().size());
  BOOST_TEST(serving.get("/heddle/main.js").header("content-type") ==
             "text/javascript; charset=utf-8");
  BOOST_TEST(serving.get("/heddle/base.css").header("content-type") == "text/css; charset=utf-8");
  for (const char* path : {"/heddle/none.js", "/heddle/../queue", "/heddle/%2e%2e%2fqueue"})
    BOOST_TEST(serving.get(path).status == 404, path);
  BOOST_TEST(serving.post("/heddle/main.js", "").status == 405);
}

BOOST_AUTO_TEST_CASE(what_has_not_changed_is_not_sent_again) {
  const Serving serving;
  const Reply page = serving.get("/heddle");
  const std::string tag = page.header("etag");
  BOOST_TEST(tag.size() > 10u);
  BOOST_TEST(page.header("cache-control") == "no-cache");
  for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    const Reply same = get_if_changed(serving, "/heddle", known);
    BOOST_TEST(same.status == 304);
    BOOST_TEST(same.body == "");
    BOOST_TEST(same.header("etag") == tag);
  }
  BOOST_TEST(get_if_changed(serving, "/heddle", "\"other\"").status == 200);
  BOOST_TEST(get_if_changed(serving, "/heddle/main.js", tag).status == 200);
}

BOOST_AUTO_TEST_CASE(it_is_the_first_page_where_no_front_end_is) {
  const Serving serving;
  BOOST_TEST(serving.get("/").body == embedded("index.html"));
  const TemporaryFolder pages;
  pages.write("index.html", "<html>");
  const Serving other(
      [&](engine::ServiceOptions& options) { options.front_end.pages = pages.path(); });
  BOOST_TEST(other.get("/").body == "<html>");
  BOOST_TEST(other.get("/heddle").body == embedded("index.html"));
  BOOST_TEST(other.get("/heddle/main.js").body == embedded("main.js"));
}

// With a policy that forbids what would be in the page itself, such a thing would not work.
BOOST_AUTO_TEST_CASE(only_files_of_its_own_run_in_it) {
  const Serving serving;
  for (const char* path : {"/", "/heddle", "/heddle/main.js"}) {
    const std::string policy = serving.get(path).header("content-security-policy");
    BOOST_TEST(policy.starts_with("default-src 'self'; "), policy);
    BOOST_TEST(policy.find("unsafe") == std::string::npos, policy);
    BOOST_TEST(policy.find("frame-ancestors 'none'") != std::string::npos, policy);
  }
  const std::string page = embedded("index.html");
  for (const char* bad : {"<style", " style=", " onclick=", "://", "<script>"})
    BOOST_TEST(page.find(bad) == std::string::npos, bad);
  for (const engine::EmbeddedFile& file : engine::page_files()) {
    if (!file.name.ends_with(".js")) continue;
    for (const char* bad : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                            "eval(", "new Function", "://"})
      BOOST_TEST(file.content.find(bad) == file.content.npos, file.name << " has " << bad);
    BOOST_TEST(std::ranges::count(file.content, '\n') <= 400, file.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
