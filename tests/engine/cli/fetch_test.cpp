// Downloads from a server on this machine: whole, in parts, broken off, changed meanwhile; and the
// command that puts a workflow's models into their folders.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>

#include "engine/cli/commands.h"
#include "engine/cli/download.h"
#include "engine/cli/http.h"
#include "tests/support/http_server.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace heddle::cli {
namespace {

bool can_be_tested(boost::unit_test::test_unit_id) { return can_fetch(); }

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of "0123456789".
constexpr const char* kDigits = "0123456789";
constexpr const char* kHash = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";

struct FetchFixture {
  test::TemporaryFolder folder;
  test::HttpServer server;
  std::filesystem::path path = folder / "models/loras/x.safetensors";

  std::uint64_t fetch(const std::string& hash = "", const std::string& name = "file") {
    return download({server.url(name), path, hash, ""}, [](std::uint64_t, std::uint64_t) {});
  }
  std::string refused(const std::string& hash = "") {
    const engine::Error error = test::refusal_of([&] { fetch(hash); });
    BOOST_TEST((error.code() == engine::Code::io), error.what());
    BOOST_TEST(!std::filesystem::exists(path));
    return error.what();
  }
  bool is_there(const char* ending) const {
    return std::filesystem::exists(path.string() + ending);
  }
  using Requests = std::vector<std::string>;
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(fetch, FetchFixture, *boost::unit_test::precondition(can_be_tested))

BOOST_AUTO_TEST_CASE(a_file_comes_whole_with_its_hash_checked) {
  server.give({kDigits});
  BOOST_TEST(fetch(kHash) == 10u);
  BOOST_TEST(text_of_file(path) == kDigits);
  BOOST_TEST((!is_there(".part") && !is_there(".part.from")));
}

BOOST_AUTO_TEST_CASE(an_empty_file_comes_and_a_redirection_is_followed) {
  server.give({""});
  BOOST_TEST(fetch() == 0u);
  BOOST_TEST(std::filesystem::exists(path));
  server.give({kDigits});
  BOOST_TEST(fetch(kHash, "elsewhere") == 10u);
  BOOST_TEST(server.requests() == (Requests{"GET /file", "GET /elsewhere", "GET /file"}));
}

BOOST_AUTO_TEST_CASE(a_transfer_that_breaks_off_goes_on_where_it_was) {
  server.give({.content = kDigits, .cut_after = 4});
  BOOST_TEST(fetch(kHash) == 10u);
  BOOST_TEST(text_of_file(path) == kDigits);
  BOOST_TEST(server.requests() ==
             (Requests{"GET /file", "GET /file from 4-", "GET /file from 8-"}));
}

BOOST_AUTO_TEST_CASE(a_later_attempt_goes_on_too) {
  server.give({.content = kDigits, .cut_after = 1});
  BOOST_TEST(says(refused(), "5 of 10 bytes"));
  BOOST_TEST(is_there(".part"));
  server.give({kDigits});
  BOOST_TEST(fetch(kHash) == 10u);
  BOOST_TEST(server.requests().back() == "GET /file from 5-");
}

BOOST_AUTO_TEST_CASE(what_has_changed_meanwhile_is_begun_again) {
  server.give({.content = "abcdefgh", .cut_after = 1});
  refused();
  server.give({.content = kDigits, .etag = "\"second\""});
  BOOST_TEST(fetch(kHash) == 10u);
  BOOST_TEST(text_of_file(path) == kDigits);
}

BOOST_AUTO_TEST_CASE(a_server_without_ranges_or_names_of_content_begins_again) {
  server.give({.content = kDigits, .cut_after = 1});
  refused();
  server.give({.content = kDigits, .takes_ranges = false});
  BOOST_TEST(fetch(kHash) == 10u);
  std::filesystem::remove(path);
  server.give({.content = kDigits, .etag = "", .cut_after = 3});
  refused();
  BOOST_TEST(server.requests().back() == "GET /file");
}

BOOST_AUTO_TEST_CASE(a_part_that_is_longer_than_the_file_is_thrown_away) {
  server.give({.content = "abcdefgh", .cut_after = 1});
  refused();
  server.give({.content = "abc"});
  BOOST_TEST(fetch() == 3u);
  BOOST_TEST(text_of_file(path) == "abc");
}

BOOST_AUTO_TEST_CASE(a_wrong_hash_leaves_nothing) {
  server.give({"0123456788"});
  const std::string text = refused(kHash);
  BOOST_TEST(says(text, kHash), text);
  BOOST_TEST((!is_there(".part") && !is_there(".part.from")));
  std::string upper = kHash;
  for (char& c : upper) c = c >= 'a' ? char(c - 'a' + 'A') : c;
  server.give({kDigits});
  BOOST_TEST(fetch(upper) == 10u);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_no_is_quoted) {
  server.give({.content = "", .status = 404});
  BOOST_TEST(says(refused(), "the server answers 404"));
  server.give({.content = "", .status = 401});
  BOOST_TEST(says(refused(), "HF_TOKEN"));
  BOOST_TEST(server.requests().size() == 2u);
}

BOOST_AUTO_TEST_CASE(other_addresses_are_refused) {
  const engine::Error error = test::refusal_of([&] {
    download({"file:///etc/hostname", path, "", ""}, [](std::uint64_t, std::uint64_t) {});
  });
  BOOST_TEST(says(error.what(), "file:///etc/hostname"), error.what());
  BOOST_TEST(!std::filesystem::exists(path));
}

namespace {

struct FetchCommand : FetchFixture {
  Request request;
  Output output;

  FetchCommand() {
    std::filesystem::create_directories(folder / "models");
    request.settings.engine.model_dirs = {folder / "models"};
    request.settings.quiet = true;
  }
  std::string model(const std::string& name, const std::string& hash) const {
    return R"({"name": ")" + name + R"(", "url": ")" + server.url() + R"(", "directory": "loras")" +
           (hash.empty() ? "" : R"(, "hash": ")" + hash + R"(", "hash_type": "SHA256")") + "}";
  }
  int run(const std::string& workflow) {
    request.file = folder.write("workflow.json", workflow);
    return fetch_models(request, output);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_command_fetches_models_of_nodes_and_subgraphs_once, FetchCommand) {
  server.give({kDigits});
  const std::string flow =
      R"({"nodes": [{"properties": {"models": [)" + model("x.safetensors", kHash) + ", " +
      model("x.safetensors", "") + ", " + model("../out.safetensors", "") +
      R"(]}}], "definitions": {"subgraphs": [{"nodes": [{"properties": {"models": [)" +
      model("sub/y.safetensors", "") + "]}}]}]}}";
  BOOST_TEST(run(flow) == kExitDone);
  BOOST_TEST(text_of_file(path) == kDigits);
  BOOST_TEST(text_of_file(folder / "models/loras/sub/y.safetensors") == kDigits);
  BOOST_TEST(!std::filesystem::exists(folder / "models/out.safetensors"));
  BOOST_TEST(server.requests().size() == 2u);
  BOOST_TEST(run(flow) == kExitDone);  // all of them are there
  BOOST_TEST(server.requests().size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(the_command_goes_on_after_one_that_cannot_be_had, FetchCommand) {
  server.give({kDigits});
  const std::string wrong(64, '0');
  BOOST_TEST(run(R"({"models": [)" + model("x.safetensors", wrong) + ", " +
                 model("y.safetensors", kHash) + "]}") == kExitFailed);
  BOOST_TEST(!std::filesystem::exists(path));
  BOOST_TEST(std::filesystem::exists(folder / "models/loras/y.safetensors"));
}

BOOST_FIXTURE_TEST_CASE(the_command_wants_to_know_where_to, FetchCommand) {
  request.settings.engine.model_dirs.clear();
  const engine::Error error =
      test::refusal_of([&] { run(R"({"models": [)" + model("x.safetensors", "") + "]}"); });
  BOOST_TEST(says(error.what(), "--comfyui"), error.what());
  BOOST_TEST(run("{}") == kExitDone);
  BOOST_TEST(server.requests().empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::cli
