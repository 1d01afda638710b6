// /view, /upload/image, the front end.
#include <sys/stat.h>

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

std::string form(std::initializer_list<std::pair<std::string, std::string>> parts) {
  std::string body;
  for (const auto& [head, content] : parts)
    body += "--XX\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
  return body + "--XX--\r\n";
}

Reply upload(const Serving& serving, const std::string& body,
             const std::string& target = "/upload/image") {
  return ask(serving.port(), "POST", target, body,
             "Host: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=XX\r\n");
}

std::string file_part(const std::string& name) {
  return "name=\"image\"; filename=\"" + name + "\"";
}

struct Pictures : Serving {
  Pictures() {
    std::filesystem::create_directories(folder / "output/sub");
    folder.write("output/a.png", "0123456789");
    folder.write("output/sub/b.webp", "sub");
    folder.write("output/page.html", "<script>");
    folder.write("output/drawing.svg", "<svg/>");
    folder.write("input/c.jpg", "input");
    folder.write("secret.png", "secret");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(file_routes)

BOOST_FIXTURE_TEST_CASE(files_are_shown_from_their_folders, Pictures) {
  for (const char* prefix : {"", "/api"}) {
    const auto body = [&](const char* query) { return get(cat(prefix, "/view?", query)).body; };
    BOOST_TEST(body("filename=a.png") == "0123456789");
    BOOST_TEST(body("filename=b.webp&subfolder=sub&type=output&rand=0.5") == "sub");
    BOOST_TEST(body("filename=c.jpg&type=input") == "input");
    BOOST_TEST(body("filename=c.jpg%20%5Binput%5D") == "input");   // says its folder itself
    BOOST_TEST(body("filename=elsewhere/a.png") == "0123456789");  // the last part alone counts
  }
  const Reply reply = get("/view?filename=a.png");
  BOOST_TEST(reply.header("content-type") == "image/png");
  BOOST_TEST(reply.header("content-disposition") == "filename=\"a.png\"");
  BOOST_TEST(reply.header("x-content-type-options") == "nosniff");
}

// Of an asset, and there are none.
BOOST_FIXTURE_TEST_CASE(a_name_that_is_a_hash_is_no_file, Pictures) {
  folder.write("output/blake3:00", "0123456789");
  for (const char* name : {"blake3:00", "blake3:00%20%5Boutput%5D", "blake3:../a.png"})
    BOOST_TEST(get(cat("/view?filename=", name)).status == 404, name);
}

BOOST_FIXTURE_TEST_CASE(parts_of_files_are_sent, Pictures) {
  const auto range = [&](const std::string& text) {
    return ask(port(), "GET", "/view?filename=a.png", "",
               "Host: 127.0.0.1\r\nRange: " + text + "\r\n");
  };
  const Reply middle = range("bytes=2-4");
  BOOST_TEST(middle.status == 206);
  BOOST_TEST(middle.body == "234");
  BOOST_TEST(middle.header("content-range") == "bytes 2-4/10");
  BOOST_TEST(range("bytes=7-").body == "789");
  BOOST_TEST(range("bytes=-2").body == "89");
  BOOST_TEST(range("bytes=8-99").body == "89");
  BOOST_TEST(range("bytes=0-1,3-4").body == "0123456789");  // several: the whole file is allowed
  for (const char* bad : {"bytes=10-", "bytes=5-2", "bytes=x-y", "bytes=-0", "bytes="})
    BOOST_TEST(range(bad).status == 416, bad);
  BOOST_TEST(range("bytes=10-").header("content-range") == "bytes */10");
}

BOOST_FIXTURE_TEST_CASE(pages_are_not_run_as_ours, Pictures) {
  for (const char* name : {"page.html", "drawing.svg"}) {
    const Reply reply = get(cat("/view?filename=", name));
    BOOST_TEST(reply.header("content-type") == "application/octet-stream");
    BOOST_TEST(reply.header("content-disposition") == cat("attachment; filename=\"", name, "\""));
  }
  const Reply picture = ask(port(), "GET", "/view?filename=drawing.svg", "",
                            "Host: 127.0.0.1\r\nSec-Fetch-Dest: image\r\n");
  BOOST_TEST(picture.header("content-type") == "image/svg+xml");
}

BOOST_FIXTURE_TEST_CASE(no_name_leads_out_of_a_folder, Pictures) {
  const auto status = [&](const std::string& query) { return get("/view?" + query).status; };
  BOOST_TEST(status("") == 400);
  BOOST_TEST(status("filename=") == 400);
  BOOST_TEST(status("filename=none.png") == 404);
  BOOST_TEST(status("filename=sub") == 404);
  BOOST_TEST(status("filename=a.png&type=models") == 400);
  for (const char* name : {"../secret.png", "/etc/passwd", "..", "%2e%2e/secret.png",
                           "..%5csecret.png", "a%0d%0ab", "sub/../../secret.png"})
    BOOST_TEST(status(cat("filename=", name)) == 400, name);
  BOOST_TEST(status("filename=secret.png&subfolder=..") == 403);
  BOOST_TEST(status("filename=secret.png&subfolder=sub/../..") == 403);
  BOOST_TEST(status("filename=passwd&subfolder=/etc") == 403);
  std::filesystem::create_symlink(folder / "secret.png", folder / "output/link.png");
  std::filesystem::create_directory_symlink(folder.path(), folder / "output/out");
  BOOST_TEST(status("filename=link.png") == 403);
  BOOST_TEST(status("filename=secret.png&subfolder=out") == 403);
  BOOST_TEST_REQUIRE(::mkfifo((folder / "output/pipe.png").c_str(), 0600) == 0);
  BOOST_TEST(status("filename=pipe.png") == 404);  // and nobody waits for it
}

// Pipes, and what leads to devices: nothing waits for them, or reads them without an end.
BOOST_FIXTURE_TEST_CASE(only_files_are_sent_and_written_over, Pictures) {
  BOOST_TEST_REQUIRE(::mkfifo((folder / "output/pipe.png").c_str(), 0600) == 0);
  BOOST_TEST_REQUIRE(::mkfifo((folder / "input/pipe.png").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "output/zero.png");
  for (const char* name : {"pipe.png", "zero.png"})
    for (const char* more : {"", "&channel=rgb", "&preview=webp"}) {
      const int status = get(cat("/view?filename=", name, more)).status;
      BOOST_TEST((status == 403 || status == 404), name << more << " " << status);
    }
  const Reply reply = upload(*this, form({{file_part("pipe.png"), "x"}, {"name=overwrite", "1"}}));
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(get("/view?filename=a.png").body == "0123456789");
}

BOOST_FIXTURE_TEST_CASE(pictures_are_taken, Serving) {
  for (const char* target : {"/upload/image", "/api/upload/image"}) {
    const Reply reply = upload(*this, form({{file_part("cat.png"), "meow"}}), target);
    BOOST_TEST(reply.body == "{\"name\":\"cat.png\",\"subfolder\":\"\",\"type\":\"input\"}");
  }
  BOOST_TEST(get("/view?filename=cat.png&type=input").body == "meow");
  // Another one of the name has a number; the same once more is the same.
  const auto name = [&](const std::string& content, const std::string& overwrite) {
    return upload(*this, form({{file_part("cat.png"), content}, {"name=overwrite", overwrite}}))
        .json()
        .at("name")
        .as_string();
  };
  BOOST_TEST(name("purr", "") == "cat (1).png");
  BOOST_TEST(name("purr", "") == "cat (1).png");
  BOOST_TEST(name("hiss", "") == "cat (2).png");
  BOOST_TEST(name("new", "true") == "cat.png");
  BOOST_TEST(name("newer", "1") == "cat.png");
  BOOST_TEST(get("/view?filename=cat.png&type=input").body == "newer");
  const Reply below = upload(*this, form({{file_part("dog.png"), "woof"},
                                          {"name=subfolder", "pets/dogs"},
                                          {"name=type", "output"}}));
  BOOST_TEST(below.body ==
             "{\"name\":\"dog.png\",\"subfolder\":\"pets/dogs\",\"type\":\"output\"}");
  BOOST_TEST(get("/view?filename=dog.png&subfolder=pets/dogs").body == "woof");
}

BOOST_FIXTURE_TEST_CASE(uploads_stay_in_their_folder, Serving) {
  const auto status = [&](const std::string& body) { return upload(*this, body).status; };
  BOOST_TEST(status(form({{"name=type", "input"}})) == 400);
  BOOST_TEST(status(form({{"name=image", "no name"}})) == 400);
  BOOST_TEST(status(form({{file_part("a.png"), "x"}, {"name=type", "models"}})) == 400);
  BOOST_TEST(status("no form") == 400);
  for (const char* name : {"../a.png", "/tmp/a.png", "..", ".", "a/../../b.png", "..\\\\a.png"})
    BOOST_TEST(status(form({{file_part(name), "x"}})) == 400, name);
  for (const char* below : {"..", "../..", "/tmp", "a/../.."})
    BOOST_TEST(status(form({{file_part("a.png"), "x"}, {"name=subfolder", below}})) == 400, below);
  std::filesystem::create_directory_symlink(folder.path(), folder / "input/out");
  BOOST_TEST(status(form({{file_part("a.png"), "x"}, {"name=subfolder", "out"}})) == 400);
  BOOST_TEST(!std::filesystem::exists(folder / "a.png"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "input"))
    files += entry.is_regular_file();
  BOOST_TEST(files == 0u);
}

BOOST_FIXTURE_TEST_CASE(large_uploads_are_refused, Serving) {
  service.reset();
  options.server.limits.body_bytes = 10'000;
  start();
  BOOST_TEST(upload(*this, form({{file_part("a.png"), std::string(9'000, 'x')}})).status == 200);
  BOOST_TEST(upload(*this, form({{file_part("b.png"), std::string(11'000, 'x')}})).status == 413);
  BOOST_TEST(get("/features").json().at("max_upload_size").as_int64() == 10'000);
}

BOOST_AUTO_TEST_CASE(the_front_end_is_served_beside_the_routes) {
  const TemporaryFolder pages;
  std::filesystem::create_directories(pages / "assets");
  pages.write("index.html", "<html>");
  pages.write("assets/app.js", "code");
  pages.write("assets/a.png", "png");
  pages.write("index.json", "[]");
  const Serving serving(
      [&](engine::ServiceOptions& options) { options.front_end.pages = pages.path(); });
  const Reply page = serving.get("/");
  BOOST_TEST(page.body == "<html>");
  BOOST_TEST(page.header("content-type") == "text/html");
  BOOST_TEST(page.header("cache-control") == "no-cache");
  BOOST_TEST(page.header("pragma") == "no-cache");
  BOOST_TEST(page.header("expires") == "0");
  const Reply code = serving.get("/assets/app.js");
  BOOST_TEST(code.header("content-type") == "text/javascript");
  BOOST_TEST(code.header("cache-control") == "no-cache");
  BOOST_TEST(serving.get("/index.json").header("cache-control") == "no-cache");
  BOOST_TEST(serving.get("/assets/a.png").header("cache-control") == "public, max-age=86400");
  const Reply none = serving.get("/assets/none.png");
  BOOST_TEST(none.status == 404);
  BOOST_TEST(none.header("cache-control") == "public, max-age=3600");
  BOOST_TEST(serving.get("/../secret").status == 404);
  BOOST_TEST(serving.get("/%2e%2e/%2e%2e/etc/passwd").status == 404);
  BOOST_TEST(serving.get("/queue").status == 200);
}

BOOST_AUTO_TEST_CASE(templates_and_help_come_from_the_packages_beside_the_front_end) {
  const TemporaryFolder pip;
  const auto write = [&](const std::string& name, const std::string& content) {
    std::filesystem::create_directories((pip / name).parent_path());
    pip.write(name, content);
  };
  write("comfyui_frontend_package/static/index.html", "<html>");
  write("comfyui_frontend_package-1.58.1.dist-info/METADATA", "");
  write("comfyui_workflow_templates/__init__.py", "");
  write("comfyui_workflow_templates-0.11.97.dist-info/METADATA", "");
  write("comfyui_workflow_templates_core-0.3.388.dist-info/METADATA", "");
  write("comfyui_workflow_templates_json/templates/index.json", "[1]");
  write("comfyui_workflow_templates_json/templates/sea.json", "{}");
  write("comfyui_workflow_templates_media_image/templates/sea-1.webp", "picture");
  write("comfyui_embedded_docs/docs/KSampler/en.md", "# KSampler");
  write("secret.txt", "secret");
  const std::string package = (pip / "comfyui_frontend_package").string();
  for (const std::string& named : {pip.path().string(), package, package + "/static/"}) {
    const Serving serving([&](engine::ServiceOptions& options) {
      options.front_end = engine::find_front_end(named);
    });
    for (const char* prefix : {"", "/api"}) {
      const Reply index = serving.get(cat(prefix, "/templates/index.json"));
      BOOST_TEST(index.body == "[1]");
      BOOST_TEST(index.header("cache-control") == "no-cache");
      BOOST_TEST(serving.get(cat(prefix, "/templates/sea.json")).body == "{}");
      const Reply picture = serving.get(cat(prefix, "/templates/sea-1.webp"));
      BOOST_TEST(picture.body == "picture");
      BOOST_TEST(picture.header("content-type") == "image/webp");
      const Reply help = serving.get(cat(prefix, "/docs/KSampler/en.md"));
      BOOST_TEST(help.body == "# KSampler");
      BOOST_TEST(help.header("content-type") == "text/markdown");
      BOOST_TEST(serving.get(cat(prefix, "/templates/none.json")).status == 404);
      BOOST_TEST(serving.get(cat(prefix, "/docs/KSampler/xx.md")).status == 404);
      BOOST_TEST(serving.get(cat(prefix, "/docs/../../secret.txt")).status == 404);
      BOOST_TEST(serving.get(cat(prefix, "/templates/%2e%2e/%2e%2e/secret.txt")).status == 404);
    }
    const Json system = serving.get("/system_stats").json().at("system");
    BOOST_TEST(system.at("required_frontend_version").as_string() == "1.58.1");
    BOOST_TEST(system.at("installed_templates_version").as_string() == "0.11.97");
    BOOST_TEST(system.at("required_templates_version").as_string() == "0.11.97");
  }
  // A front end of one's own has no packages.
  const TemporaryFolder own;
  own.write("index.html", "<html>");
  const engine::FrontEnd found = engine::find_front_end(own.path().string());
  BOOST_TEST(found.is_served());
  BOOST_TEST(found.templates.empty());
  BOOST_TEST(found.version.empty());
  BOOST_CHECK_THROW(engine::find_front_end((pip / "comfyui_embedded_docs").string()),
                    engine::Error);
}

BOOST_AUTO_TEST_SUITE_END()
