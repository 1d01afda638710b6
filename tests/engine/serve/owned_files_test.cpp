// Files of users: what was uploaded and made is shown to whom it belongs, and to administrators.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "engine/serve/file_owners.h"
#include "tests/engine/serve/roles_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::FileOwners;
using engine::Json;
using engine::OwnedFile;

namespace {

const engine::Caller kAnn{"ann", false, "1"}, kBob{"bob", false, "2"};

// Files that are there, by their names, and their versions.
struct Remembered {
  TemporaryFolder folder;
  std::map<std::string, std::int64_t> there{{"a.png", 1}, {"b.png", 1}, {"s/a.png", 1}};
  FileOwners owners{folder / "owners", version()};
  FileOwners::Version version() const {
    return [this](const OwnedFile& file) {
      const auto found = there.find(file.name);
      return found == there.end() ? 0 : found->second;
    };
  }
};

struct WithFiles : WithRoles {
  Reply upload(const engine::MadeKey& key, const std::string& name, const std::string& content,
               const std::string& more = "") const {
    const std::string body = "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"" +
                             name + "\"\r\n\r\n" + content + "\r\n" + more + "--b--\r\n";
    return ask(serving.port(), "POST", "/upload/image", body,
               headers_of(key, "Content-Type: multipart/form-data; boundary=b\r\n"));
  }
  int view(const engine::MadeKey& key, const std::string& name,
           const std::string& kind = "input") const {
    return as(key, "GET", "/view?filename=" + name + "&type=" + kind).status;
  }
  static std::string loading(const std::string& name) {
    return "{\"1\": {\"class_type\": \"LoadImage\", \"inputs\": {\"image\": \"" + name +
           "\"}}, \"2\": {\"class_type\": \"PreviewImage\", \"inputs\": {\"images\": [\"1\", 0]}}}";
  }
  // The name of what a job of theirs has saved.
  std::string save_as(const engine::MadeKey& key) const {
    const std::string id = submit_as(
        key,
        "{\"1\": {\"class_type\": \"EmptyImage\", \"inputs\": {\"width\": 8, \"height\": 8, "
        "\"batch_size\": 1, \"color\": 255}}, \"2\": {\"class_type\": \"SaveImage\", \"inputs\": "
        "{\"images\": [\"1\", 0], \"filename_prefix\": \"made\"}}}");
    wait_for_end(id);
    const Json entry = json_as(root, "/history/" + id);
    return entry.at(id)
        .at("outputs")
        .at("2")
        .at("images")
        .at(std::size_t{0})
        .at("filename")
        .as_string();
  }
  void restart() {
    serving.service.reset();
    serving.start();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(owned_files)

BOOST_FIXTURE_TEST_CASE(they_are_remembered, Remembered) {
  owners.add({"input", "a.png"}, "ann");
  owners.add({"output", "./s/../s/a.png"}, "ann");
  owners.add({"output", "gone.png"}, "ann");
  owners.add_shown(
      R"({"images": [{"filename": "a.png", "subfolder": "s", "type": "temp"}], "x": 1})", "bob");
  owners.add_shown("no json", "bob");
  std::ofstream(folder / "owners", std::ios::app) << "[\"ann\", \"inp";  // of one that was killed
  const FileOwners later(folder / "owners", version());
  for (const FileOwners* known : std::initializer_list<const FileOwners*>{&owners, &later}) {
    BOOST_TEST(known->may_see(kAnn, {"input", "a.png"}));
    BOOST_TEST(!known->may_see(kBob, {"input", "a.png"}));
    BOOST_TEST(known->may_see(engine::operator_caller(), {"input", "a.png"}));
    BOOST_TEST(known->may_see(kAnn, {"output", "s/a.png"}));
    BOOST_TEST(known->may_see(kBob, {"temp", "s//a.png"}));
    BOOST_TEST(!known->may_see(kAnn, {"temp", "s/a.png"}));
    // Of nobody: an input is the operator's for all.
    BOOST_TEST(known->may_see(kBob, {"input", "b.png"}));
    BOOST_TEST(!known->may_change(kBob, {"input", "b.png"}));
    BOOST_TEST(!known->may_see(kBob, {"output", "b.png"}));
  }
}

BOOST_FIXTURE_TEST_CASE(a_later_file_of_the_name_is_another_ones, Remembered) {
  owners.add({"output", "a.png"}, "ann");
  there["a.png"] = 2;
  BOOST_TEST(!owners.may_see(kAnn, {"output", "a.png"}));
  owners.add({"output", "a.png"}, "bob");
  BOOST_TEST(!owners.may_see(kAnn, {"output", "a.png"}));
  BOOST_TEST(owners.may_see(kBob, {"output", "a.png"}));
  // What two have made alike belongs to both.
  owners.add({"output", "a.png"}, "ann");
  BOOST_TEST(owners.may_see(kAnn, {"output", "a.png"}));
  BOOST_TEST(!owners.may_change(kAnn, {"output", "a.png"}));
  const FileOwners later(folder / "owners", version());
  BOOST_TEST(later.may_see(kBob, {"output", "a.png"}));
}

BOOST_FIXTURE_TEST_CASE(workflows_name_ones_own_files, Remembered) {
  owners.add({"input", "a.png"}, "ann");
  const auto named = [&](const engine::Caller& caller, const std::string& text) {
    return owners.foreign_name(
        caller, engine::parse_json("{\"1\": {\"inputs\": {\"x\": [\"" + text + "\"]}}}", "prompt"));
  };
  for (const char* text : {"a.png", "./a.png", "a.png [input]", "b.png [output]"})
    BOOST_TEST(named(kBob, text) == text);
  for (const char* text : {"b.png", "a cat", "c.png [output]", "a.png [of ann]", ""})
    BOOST_TEST(named(kBob, text) == "", text);
  owners.add({"input", "s/a.png"}, "ann");
  for (const char* text : {"s", "./s/", "s/."}) {
    BOOST_TEST(named(kBob, text) == text);
    BOOST_TEST(named(kAnn, text) == "", text);
  }
  BOOST_TEST(named(kAnn, "a.png") == "");
  BOOST_TEST(named(engine::operator_caller(), "a.png") == "");
}

BOOST_FIXTURE_TEST_CASE(uploads_are_ones_own, WithFiles) {
  BOOST_TEST(upload(ann, "a.png", "of ann").status == 200);
  BOOST_TEST(view(ann, "a.png") == 200);
  BOOST_TEST(view(root, "a.png") == 200);
  BOOST_TEST(view(bob, "a.png") == 404);
  BOOST_TEST(view(bob, "a.png%20[input]", "output") == 404);
  BOOST_TEST(view(bob, "./a.png") == 404);
  // Neither replaced, nor taken for one's own because it is the same.
  const std::string overwrite =
      "--b\r\nContent-Disposition: form-data; name=\"overwrite\"\r\n\r\ntrue\r\n";
  BOOST_TEST(upload(bob, "a.png", "of bob", overwrite).status == 403);
  const Reply same = upload(bob, "a.png", "of ann");
  BOOST_TEST(same.json().at("name").as_string() == "a (1).png");
  BOOST_TEST(view(bob, "a%20(1).png") == 200);
  BOOST_TEST(view(ann, "a%20(1).png") == 404);
  BOOST_TEST(upload(ann, "a.png", "of ann, too", overwrite).status == 200);
  BOOST_TEST(view(ann, "a.png") == 200);
  BOOST_TEST(view(bob, "a.png") == 404);
  restart();
  BOOST_TEST(view(ann, "a.png") == 200);
  BOOST_TEST(view(bob, "a.png") == 404);
}

BOOST_FIXTURE_TEST_CASE(uploads_of_others_are_not_named, WithFiles) {
  upload(ann, "secret.png", "x");
  std::ofstream(serving.folder / "input/shared.png") << "y";
  const auto is_told = [&](const engine::MadeKey& key, const char* target, const char* name) {
    return as(key, "GET", target).body.find(name) != std::string::npos;
  };
  for (const char* target : {"/object_info", "/object_info/LoadImage", "/internal/files/input"}) {
    BOOST_TEST(is_told(ann, target, "secret.png"), target);
    BOOST_TEST(is_told(root, target, "secret.png"), target);
    BOOST_TEST(!is_told(bob, target, "secret.png"), target);
    BOOST_TEST(is_told(bob, target, "shared.png"), target);
  }
  const auto status = [&](const engine::MadeKey& key, const char* path, const char* member) {
    return as(key, "POST", path, "{\"" + std::string(member) + "\": " + loading("secret.png") + "}")
        .status;
  };
  BOOST_TEST(status(bob, "/prompt", "prompt") == 400);
  for (const char* path : {"/v1/jobs", "/v1/validate", "/v1/plan"})
    BOOST_TEST(status(bob, path, "workflow") == 422, path);
  BOOST_TEST(status(ann, "/prompt", "prompt") == 200);
  BOOST_TEST(status(ann, "/v1/jobs", "workflow") == 201);
}

BOOST_FIXTURE_TEST_CASE(errors_name_no_uploads_of_others, WithFiles) {
  upload(ann, "secret.png", "x");
  for (const char* wrong : {"secrets.png", "zzz"})
    for (const auto& [path, member] : {std::pair{"/prompt", "prompt"},
                                       {"/v1/jobs", "workflow"},
                                       {"/v1/validate", "workflow"},
                                       {"/v1/plan", "workflow"}}) {
      const std::string body = "{\"" + std::string(member) + "\": " + loading(wrong) + "}";
      const std::string of_bob = as(bob, "POST", path, body).body;
      BOOST_TEST(of_bob.find(wrong) != of_bob.npos, path);
      BOOST_TEST(of_bob.find("secret.png") == of_bob.npos, path << ": " << of_bob);
      if (path != std::string("/prompt"))  // which names none
        BOOST_TEST(as(ann, "POST", path, body).body.find("secret.png") != of_bob.npos, path);
    }
}

// Whatever a node says when it fails, and whoever is told of it.
BOOST_FIXTURE_TEST_CASE(jobs_that_failed_name_no_uploads_of_others, WithFiles) {
  upload(ann, "secret.png", "x");
  upload(bob, "own.png", "y");
  const std::string id =
      submit_as(bob, failing("there are 'secret.png' and 'own.png'"), ", \"client_id\": \"c\"");
  wait_for_end(id);
  for (const std::string& target : {"/history/" + id, "/v1/jobs/" + id, "/api/jobs/" + id}) {
    const std::string told = as(bob, "GET", target).body;
    BOOST_TEST(told.find("own.png") != told.npos, target << ": " << told);
  }
  // Its workflow says the name, which bob has written himself: the error does not.
  const Json error = json_as(bob, "/v1/jobs/" + id).at("error");
  BOOST_TEST(error.at("message").as_string().find("secret.png") == std::string::npos);
  const Json entry = json_as(bob, "/history/" + id).at(id);
  for (const Json& message : entry.at("status").at("messages").as_array())
    if (message.at(std::size_t{0}).as_string() == "execution_error") {
      const std::string text = message.at(1).at("exception_message").as_string();
      BOOST_TEST(text.find("there are '...'") != text.npos, text);
    }
}

// Which file it is would be known too late.
BOOST_FIXTURE_TEST_CASE(files_are_named_and_not_linked, WithFiles) {
  upload(ann, "a.png", "x");
  const std::string prompt =
      "{\"0\": {\"class_type\": \"PrimitiveString\", \"inputs\": {\"value\": \"b\"}}, \"1\": "
      "{\"class_type\": \"LoadImage\", \"inputs\": {\"image\": [\"0\", 0]}}, \"2\": "
      "{\"class_type\": "
      "\"PreviewImage\", \"inputs\": {\"images\": [\"1\", 0]}}}";
  const auto answer = [&](const engine::MadeKey& key, const char* path, const char* member) {
    return as(key, "POST", path, "{\"" + std::string(member) + "\": " + prompt + "}").body;
  };
  BOOST_TEST(answer(bob, "/prompt", "prompt").find("is linked") != std::string::npos);
  BOOST_TEST(answer(root, "/prompt", "prompt").find("is linked") == std::string::npos);
  for (const char* path : {"/v1/jobs", "/v1/validate", "/v1/plan"}) {
    BOOST_TEST(answer(bob, path, "workflow").find("is linked") != std::string::npos, path);
    BOOST_TEST(answer(root, path, "workflow").find("is linked") == std::string::npos, path);
  }
}

BOOST_FIXTURE_TEST_CASE(what_a_job_makes_is_its_owners, WithFiles) {
  const std::string of_ann = save_as(ann);
  BOOST_TEST(view(ann, of_ann, "output") == 200);
  BOOST_TEST(view(root, of_ann, "output") == 200);
  BOOST_TEST(view(bob, of_ann, "output") == 404);
  // An output that comes from the cache has been made for both.
  const std::string of_bob = save_as(bob);
  BOOST_TEST(view(bob, of_bob, "output") == 200);
  as(ann, "POST", "/history", "{\"clear\": true}");
  restart();
  BOOST_TEST(view(ann, of_ann, "output") == 200);  // it outlives the history
  BOOST_TEST(as(ann, "GET", "/internal/files/output").body.find(of_ann) != std::string::npos);
  if (of_ann != of_bob) BOOST_TEST(view(bob, of_ann, "output") == 404);
}

BOOST_AUTO_TEST_SUITE_END()
