// What the server tells of itself, of node types and of models.
#include <fstream>
#include <regex>
#include <set>

#include "engine/serve/log_lines.h"
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Json;
using engine::write_json;

BOOST_AUTO_TEST_SUITE(info_routes)

BOOST_FIXTURE_TEST_CASE(node_types_are_described, Serving) {
  for (const char* prefix : {"", "/api"}) {
    const Json all = get(engine::cat(prefix, "/object_info")).json();
    BOOST_TEST((all.find("t.Number") != nullptr));
    BOOST_TEST((all.find("LoadImage") != nullptr));
    const Json one = get(engine::cat(prefix, "/object_info/t.Number")).json();
    BOOST_TEST(one.size() == 1u);
    BOOST_TEST((one.at("t.Number") == all.at("t.Number")));
    for (const char* key :
         {"input", "output", "output_is_list", "output_name", "name", "display_name", "description",
          "category", "output_node", "python_module"})
      BOOST_TEST((one.at("t.Number").find(key) != nullptr), key);
    BOOST_TEST(get(engine::cat(prefix, "/object_info/None")).body == "{}");
  }
}

BOOST_FIXTURE_TEST_CASE(models_are_listed_by_folder, Serving) {
  for (const char* file : {"upscale_models/sub/b.safetensors", "upscale_models/a.safetensors",
                           "embeddings/e.pt", "upscale_models/notes.txt"}) {
    std::filesystem::create_directories((folder / "models" / file).parent_path());
    folder.write(std::filesystem::path("models") / file, "12345");
  }
  for (const char* prefix : {"", "/api"}) {
    const auto text = [&](const char* target) { return get(engine::cat(prefix, target)).body; };
    const std::string folders = text("/models");
    BOOST_TEST(folders.find("\"upscale_models\"") != std::string::npos, folders);
    BOOST_TEST(folders.find("\"input\"") == std::string::npos, folders);
    BOOST_TEST(text("/models/upscale_models") == "[\"a.safetensors\",\"sub/b.safetensors\"]");
    BOOST_TEST(text("/embeddings") == "[\"e\"]");
    BOOST_TEST(get(engine::cat(prefix, "/models/none")).status == 404);
    BOOST_TEST(get(engine::cat(prefix, "/models/..")).status == 404);
    const Json files = get(engine::cat(prefix, "/experiment/models/upscale_models")).json();
    BOOST_TEST_REQUIRE(files.size() == 2u);
    BOOST_TEST(files.at(1).at("name").as_string() == "sub/b.safetensors");
    BOOST_TEST(files.at(1).at("pathIndex").as_int64() == 0);
    BOOST_TEST(files.at(1).at("size").as_int64() == 5);
    BOOST_TEST(files.at(1).at("modified").as_int64() > 1'600'000'000);
    bool is_listed = false;
    const Json all = get(engine::cat(prefix, "/experiment/models")).json();
    for (const Json& one : all.as_array())
      if (one.at("name").as_string() == "upscale_models")
        is_listed = one.at("folders").at(std::size_t{0}).as_string() ==
                    (folder / "models/upscale_models").string();
    BOOST_TEST(is_listed);
    BOOST_TEST(get(engine::cat(prefix, "/experiment/models/none")).status == 404);
  }
}

BOOST_FIXTURE_TEST_CASE(metadata_of_model_files_are_shown, Serving) {
  const auto file = [](const std::string& header, std::uint64_t bytes) {
    std::string content;
    for (int i = 0; i < 8; ++i) content += char(bytes >> (8 * i));
    return content + header;
  };
  const std::string header = R"({"__metadata__": {"steps": "20"}, "w": {}})", bare = "{}";
  std::filesystem::create_directories(folder / "models/loras/sub");
  folder.write("models/loras/sub/a.safetensors", file(header, header.size()));
  folder.write("models/loras/bare.safetensors", file(bare, bare.size()));
  folder.write("models/loras/cut.safetensors", file(header, 1000));
  folder.write("models/loras/huge.safetensors", file(header, ~std::uint64_t{0}));
  folder.write("models/loras/empty.safetensors", "");
  folder.write("models/loras/a.pt", file(header, header.size()));
  folder.write("secret.safetensors", file(header, header.size()));
  for (const char* prefix : {"", "/api"}) {
    const auto reply = [&](const char* name) {
      return get(engine::cat(prefix, "/view_metadata/loras?filename=", name));
    };
    BOOST_TEST(reply("sub/a.safetensors").body == "{\"steps\":\"20\"}");
    for (const char* none :
         {"bare.safetensors", "cut.safetensors", "huge.safetensors", "empty.safetensors",
          "none.safetensors", "a.pt", "", "../../secret.safetensors"})
      BOOST_TEST(reply(none).status == 404, none);
    BOOST_TEST(get(engine::cat(prefix, "/view_metadata/none?filename=a.safetensors")).status ==
               404);
  }
}

BOOST_FIXTURE_TEST_CASE(the_machine_is_described, Serving) {
  for (const char* target : {"/system_stats", "/api/system_stats"}) {
    const Json stats = get(target).json();
    const Json& system = stats.at("system");
    BOOST_TEST(system.at("os").as_string() == "linux");
    BOOST_TEST(system.at("ram_total").as_uint64() > system.at("ram_free").as_uint64());
    for (const char* key : {"comfyui_version", "required_frontend_version", "python_version",
                            "pytorch_version", "required_templates_version"})
      BOOST_TEST(!system.at(key).as_string().empty(), key);
    BOOST_TEST(!system.at("embedded_python").as_bool());
    BOOST_TEST(system.at("argv").is_array());
    const Json& device = stats.at("devices").at(std::size_t{0});
    BOOST_TEST(device.at("type").as_string() == "cpu");
    BOOST_TEST(device.at("index").as_int64() == 0);
    for (const char* key : {"vram_total", "vram_free", "torch_vram_total", "torch_vram_free"})
      BOOST_TEST(device.at(key).is_integer(), key);
  }
}

// The README lists what there is, with the tests of it: nothing more and nothing less.
BOOST_AUTO_TEST_CASE(the_list_of_routes_is_true) {
  const TemporaryFolder pages;
  const Serving serving([&](engine::ServiceOptions& options) {
    options.front_end.pages = options.user_dir = pages.path();
    options.log = std::make_shared<engine::LogLines>();
  });
  std::ifstream readme(HEDDLE_TESTS_DIR "/engine/serve/README.md");
  std::set<std::string> listed, there;
  static const std::regex route("`((?:GET|POST|PUT|DELETE|PATCH) /[^`]*)`");
  for (std::string line; std::getline(readme, line);)
    if (line.starts_with("| "))
      for (std::sregex_iterator at(line.begin(), line.end(), route), end; at != end; ++at)
        listed.insert((*at)[1]);
  for (const std::string& pattern : serving.service->router().patterns()) {
    const bool is_twin = pattern.find(" /api/") != std::string::npos &&
                         pattern.find(" /api/jobs") == std::string::npos &&
                         pattern.find(" /api/assets") == std::string::npos &&
                         pattern.find(" /api/tags") == std::string::npos;
    if (!is_twin && !pattern.ends_with("{path...}")) there.insert(pattern);
  }
  BOOST_TEST(listed == there, boost::test_tools::per_element());
  BOOST_TEST_MESSAGE(there.size() << " routes");
}

BOOST_FIXTURE_TEST_CASE(what_there_is_none_of_is_empty, Serving) {
  for (const char* prefix : {"", "/api"}) {
    for (const char* target :
         {"/i18n", "/workflow_templates", "/node_replacements", "/global_subgraphs"})
      BOOST_TEST(get(engine::cat(prefix, target)).body == "{}", target);
    BOOST_TEST(get(engine::cat(prefix, "/global_subgraphs/some")).body == "null");
    BOOST_TEST(get(engine::cat(prefix, "/extensions")).body == "[]");
  }
  const Json features = get("/api/features").json();
  BOOST_TEST(features.at("supports_preview_metadata").as_bool());
  BOOST_TEST(features.at("max_upload_size").as_int64() == 104857600);
  BOOST_TEST(!features.at("assets").as_bool());
}

BOOST_FIXTURE_TEST_CASE(assets_are_off_as_comfyuis_are_unless_it_is_asked_for_them, Serving) {
  const std::string id = "/api/assets/0e0ff7b4-8f4c-4c6a-9c5b-1f0f6a3d2b11";
  const std::vector<std::pair<std::string, std::string>> routes = {
      {"GET", "/api/assets?limit=5"},
      {"POST", "/api/assets"},
      {"GET", id},
      {"PUT", id},
      {"DELETE", id},
      {"GET", id + "/content"},
      {"POST", id + "/tags"},
      {"DELETE", id + "/tags"},
      {"POST", "/api/assets/from-hash"},
      {"GET", "/api/assets/tags/refine"},
      {"POST", "/api/assets/seed"},
      {"GET", "/api/assets/seed/status"},
      {"POST", "/api/assets/seed/cancel"},
      {"POST", "/api/assets/prune"},
      {"GET", "/api/tags"}};
  for (const auto& [method, path] : routes) {
    const Reply reply = ask(port(), method, path);
    BOOST_TEST(reply.status == 503, method << ' ' << path);
    const Json answer = reply.json();
    BOOST_TEST(answer.at("error").at("code").as_string() == "SERVICE_DISABLED");
    BOOST_TEST(
        answer.at("error").at("message").as_string().starts_with("Assets system is disabled."));
    BOOST_TEST(answer.at("error").at("details").size() == 0u);
  }
  BOOST_TEST(ask(port(), "HEAD", "/api/assets/hash/blake3:00").status == 503);
  BOOST_TEST(get("/assets").status == 404);
}

BOOST_FIXTURE_TEST_CASE(folders_are_told_to_the_front_end, Serving) {
  const Json paths = get("/internal/folder_paths").json();
  BOOST_TEST(paths.at("output").at(std::size_t{0}).as_string() == (folder / "output").string());
  BOOST_TEST((paths.find("input") != nullptr));
  BOOST_TEST(get("/api/internal/folder_paths").status == 404);
  folder.write("output/old.png", "x");
  folder.write("output/new.png", "x");
  folder.write("output/.hidden", "x");
  std::filesystem::last_write_time(
      folder / "output/old.png",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  BOOST_TEST(get("/internal/files/output").body == "[\"new.png [output]\",\"old.png [output]\"]");
  BOOST_TEST(get("/internal/files/models").status == 400);
}

BOOST_FIXTURE_TEST_CASE(other_sites_and_names_are_refused_everywhere, Serving) {
  const auto status = [&](const std::string& headers) {
    return ask(port(), "GET", "/queue", "", headers).status;
  };
  BOOST_TEST(status("Host: evil.example\r\n") == 403);
  BOOST_TEST(status("Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n") == 403);
  BOOST_TEST(status(engine::cat("Host: 127.0.0.1:", port(), "\r\nOrigin: http://127.0.0.1:", port(),
                                "\r\n")) == 200);
  SocketClient other(port(), "/ws", "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n");
  BOOST_TEST(other.reply.status == 403);
  BOOST_TEST(ask(port(), "OPTIONS", "/prompt").status == 200);
  BOOST_TEST(get("/none").status == 404);
  BOOST_TEST(ask(port(), "DELETE", "/prompt").status == 405);
}

BOOST_AUTO_TEST_CASE(pages_of_a_named_site_are_told_that_they_may_read) {
  const Serving serving(
      [](engine::ServiceOptions& options) { options.cors_origin = "https://app.example"; });
  const auto asked = [&](const char* method, const char* origin) {
    return ask(serving.port(), method, "/queue", "",
               engine::cat("Host: 127.0.0.1\r\nOrigin: ", origin,
                           "\r\nAccess-Control-Request-Method: POST\r\n"));
  };
  for (const char* method : {"GET", "OPTIONS"}) {
    const Reply reply = asked(method, "https://app.example");
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.header("access-control-allow-origin") == "https://app.example");
    BOOST_TEST(reply.header("access-control-allow-credentials") == "true");
    BOOST_TEST(reply.header("access-control-allow-headers").starts_with("Content-Type"));
    BOOST_TEST(asked(method, "https://evil.example").status == 403);
  }
  const Serving open([](engine::ServiceOptions& options) { options.cors_origin = "*"; });
  const Reply any =
      ask(open.port(), "GET", "/queue", "", "Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n");
  BOOST_TEST(any.header("access-control-allow-origin") == "*");
  BOOST_TEST(any.header("access-control-allow-credentials") == "");
  BOOST_TEST(Serving().get("/queue").header("access-control-allow-origin") == "");
}

BOOST_AUTO_TEST_CASE(a_key_is_asked_of_everybody) {
  const Serving serving([](engine::ServiceOptions& options) { options.api_key = "secret"; });
  BOOST_TEST(serving.get("/queue").status == 401);
  BOOST_TEST(SocketClient(serving.port(), "/ws").reply.status == 401);
  const std::string with = "Host: 127.0.0.1\r\nAuthorization: Bearer secret\r\n";
  BOOST_TEST(ask(serving.port(), "GET", "/queue", "", with).status == 200);
  BOOST_TEST(SocketClient(serving.port(), "/ws", with).reply.status == 101);
}

BOOST_AUTO_TEST_SUITE_END()
