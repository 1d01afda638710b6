// /users, /settings and /userdata.
#include <sys/stat.h>

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

struct OfUser : Serving {
  OfUser()
      : Serving([this](engine::ServiceOptions& options) { options.user_dir = folder / "user"; }) {}
  Reply remove(const std::string& target) const { return ask(port(), "DELETE", target); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(user_routes)

BOOST_FIXTURE_TEST_CASE(settings_are_kept, OfUser) {
  BOOST_TEST(get("/users").body == "{\"storage\":\"server\",\"migrated\":false}");
  for (const char* prefix : {"", "/api"}) {
    const std::string settings = cat(prefix, "/settings");
    if (*prefix == '\0') BOOST_TEST(get(settings).body == "{}");
    BOOST_TEST(get(settings + "/none").body == "null");
    BOOST_TEST(post(settings, "{\"a\": 5.0, \"b\": [1]}").status == 200);
    BOOST_TEST(post(settings + "/Comfy.Color%2FTheme", "\"dark\"").status == 200);
    BOOST_TEST(post(settings, "{\"b\": null}").body == "");
    BOOST_TEST(get(settings + "/a").body == "5.0");
    BOOST_TEST(get(settings).body == "{\"a\":5.0,\"b\":null,\"Comfy.Color/Theme\":\"dark\"}");
    BOOST_TEST(post(settings, "[]").status == 400);
    BOOST_TEST(post(settings + "/a", "no json").status == 400);
  }
  BOOST_TEST(get("/api/users").body == "{\"storage\":\"server\",\"migrated\":true}");
  BOOST_TEST(std::filesystem::exists(folder / "user/default/comfy.settings.json"));
  service.reset();
  start();
  BOOST_TEST(get("/settings/Comfy.Color%2FTheme").body == "\"dark\"");
}

BOOST_AUTO_TEST_CASE(several_users_have_folders_of_their_own) {
  const TemporaryFolder users;
  Serving serving([&](engine::ServiceOptions& options) {
    options.user_dir = users.path();
    options.multi_user = true;
  });
  const auto as = [&](const std::string& user, const char* method, const char* target,
                      const char* body = "") {
    return ask(serving.port(), method, target, body,
               cat("Host: 127.0.0.1\r\ncomfy-user: ", user, "\r\n"));
  };
  BOOST_TEST(serving.get("/users").body == "{\"storage\":\"server\",\"users\":{}}");
  BOOST_TEST(serving.get("/settings").status == 401);
  const std::string ann =
      serving.post("/users", "{\"username\": \" Ann / 1 \"}").json().as_string();
  const std::string bob = serving.post("/api/users", "{\"username\": \"bob\"}").json().as_string();
  BOOST_TEST(ann.starts_with("Ann-1_"), ann);
  BOOST_TEST(serving.get("/users").json().at("users").at(ann).as_string() == "Ann / 1");
  const Reply taken = serving.post("/users", "{\"username\": \"bob \"}");
  BOOST_TEST(taken.status == 400);
  BOOST_TEST(taken.body == "{\"error\":\"Duplicate username.\"}");
  for (const char* none : {"{}", "{\"username\": \"  \"}", "{\"username\": 5}", "no json"})
    BOOST_TEST(serving.post("/users", none).status == 400, none);
  BOOST_TEST(as(ann, "POST", "/settings", "{\"a\": 1}").status == 200);
  BOOST_TEST(as(ann, "POST", "/userdata/f.txt", "hers").status == 200);
  BOOST_TEST(as(ann, "GET", "/settings").body == "{\"a\":1}");
  BOOST_TEST(as(bob, "GET", "/settings").body == "{}");
  BOOST_TEST(as(bob, "GET", "/userdata/f.txt").status == 404);
  for (const char* nobody : {"default", "..", "../x", "", "users.json", "ann"})
    for (const char* target : {"/settings", "/userdata/f.txt", "/v2/userdata"})
      BOOST_TEST(as(nobody, "GET", target).status == 401, nobody);
  serving.service.reset();
  serving.start();
  BOOST_TEST(as(ann, "GET", "/userdata/f.txt").body == "hers");
  BOOST_TEST(std::filesystem::exists(users.path() / ann / "f.txt"));
}

BOOST_FIXTURE_TEST_CASE(files_come_and_go_under_one_encoded_name, OfUser) {
  for (const char* prefix : {"", "/api"}) {
    const std::string file = cat(prefix, "/userdata/workflows%2Fsub%2Fa.json");
    BOOST_TEST(get(file).status == 404);
    BOOST_TEST(post(file, "{\"x\": 1}").body == "\"workflows/sub/a.json\"");
    BOOST_TEST(get(file).body == "{\"x\": 1}");
    BOOST_TEST(post(file + "?overwrite=false", "other").status == 409);
    BOOST_TEST(get(file).body == "{\"x\": 1}");
    const Json info = post(file + "?overwrite=true&full_info=true", "other").json();
    BOOST_TEST(info.at("path").as_string() == "workflows/sub/a.json");
    BOOST_TEST(info.at("size").as_int64() == 5);
    BOOST_TEST(info.at("modified").as_double() > 1.6e9);
    BOOST_TEST(post(file + "/move/workflows%2Fb.json", "").body == "\"workflows/b.json\"");
    BOOST_TEST(get(file).status == 404);
    BOOST_TEST(post(file + "/move/workflows%2Fc.json", "").status == 404);
    const std::string moved = cat(prefix, "/userdata/workflows%2Fb.json");
    BOOST_TEST(post(file, "x").status == 200);
    BOOST_TEST(post(file + "/move/workflows%2Fb.json?overwrite=false", "").status == 409);
    BOOST_TEST(get(moved).body == "other");
    BOOST_TEST(remove(moved).status == 204);
    BOOST_TEST(remove(moved).status == 404);
    BOOST_TEST(remove(file).status == 204);
  }
}

BOOST_FIXTURE_TEST_CASE(files_are_listed, OfUser) {
  for (const char* name : {"b.json", "a.json", "sub%2Fc.json"})
    post(cat("/userdata/workflows%2F", name), "{}");
  for (const char* prefix : {"", "/api"}) {
    const auto body = [&](const char* query) { return get(cat(prefix, "/userdata", query)).body; };
    BOOST_TEST(body("?dir=workflows") == "[\"a.json\",\"b.json\"]");
    BOOST_TEST(body("?dir=workflows&recurse=true") == "[\"a.json\",\"b.json\",\"sub/c.json\"]");
    BOOST_TEST(
        body("?dir=workflows&recurse=true&split=true") ==
        "[[\"a.json\",\"a.json\"],[\"b.json\",\"b.json\"],[\"sub/c.json\",\"sub\",\"c.json\"]]");
    const Json full = get(cat(prefix, "/userdata?dir=workflows&full_info=true&split=false")).json();
    BOOST_TEST(full.at(std::size_t{0}).at("path").as_string() == "a.json");
    BOOST_TEST(full.at(std::size_t{0}).at("size").as_int64() == 2);
    const Json tree = get(cat(prefix, "/v2/userdata?path=workflows")).json();
    BOOST_TEST_REQUIRE(tree.size() == 4u);
    BOOST_TEST(tree.at(std::size_t{0}).at("type").as_string() == "directory");
    BOOST_TEST(tree.at(std::size_t{0}).at("path").as_string() == "workflows/sub");
    BOOST_TEST(tree.at(3).at("name").as_string() == "c.json");
    BOOST_TEST(tree.at(3).at("size").as_int64() == 2);
    BOOST_TEST(get(cat(prefix, "/userdata")).status == 400);
    BOOST_TEST(get(cat(prefix, "/userdata?dir=none")).status == 404);
    BOOST_TEST(get(cat(prefix, "/v2/userdata?path=none")).status == 404);
  }
}

BOOST_FIXTURE_TEST_CASE(no_name_leads_out_of_the_users_folder, OfUser) {
  post("/userdata/mine", "x");
  folder.write("secret", "secret");
  std::filesystem::create_symlink(folder / "secret", folder / "user/default/link");
  for (const char* name : {"..%2F..%2Fsecret", "%2Fetc%2Fpasswd", "a%2F..%2F..%2F..%2Fsecret",
                           "link", "..%5Csecret", "a%0Ab"}) {
    const std::string file = cat("/userdata/", name);
    BOOST_TEST(get(file).status == 403, name);
    BOOST_TEST(post(file, "x").status == 403, name);
    BOOST_TEST(remove(file).status == 403, name);
    BOOST_TEST(post(cat("/userdata/mine/move/", name), "").status == 403, name);
    BOOST_TEST(post(file + "/move/mine", "").status == 403, name);
  }
  for (const char* dir : {"..", "../..", "/etc", "a/../../.."}) {
    BOOST_TEST(get(cat("/userdata?dir=", dir)).status == 403, dir);
    BOOST_TEST(get(cat("/v2/userdata?path=", dir)).status == 403, dir);
  }
  BOOST_TEST(get("/userdata/mine").body == "x");
}

BOOST_FIXTURE_TEST_CASE(pipes_hold_nobody_up, OfUser) {
  post("/userdata/mine", "x");
  BOOST_TEST_REQUIRE(::mkfifo((folder / "user/default/pipe").c_str(), 0600) == 0);
  BOOST_TEST(get("/userdata/pipe").status == 404);
  BOOST_TEST(post("/userdata/pipe", "x").status == 400);
  BOOST_TEST(post("/userdata/mine/move/pipe", "").status == 400);
  BOOST_TEST(get("/userdata/mine").body == "x");
}

BOOST_AUTO_TEST_SUITE_END()
