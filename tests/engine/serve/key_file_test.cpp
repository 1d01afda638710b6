#include "engine/serve/key_file.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/serve/secret.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

namespace {

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Quiet {
  Quiet() {
    set_log_sink([this](Level, std::string_view message) { said += message; });
  }
  ~Quiet() { set_log_sink({}); }
  std::string said;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(key_files)

BOOST_AUTO_TEST_CASE(hashes_are_those_of_sha256) {
  BOOST_TEST(sha256_hex("abc") ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

BOOST_AUTO_TEST_CASE(no_key_stands_in_the_file) {
  const TemporaryFolder folder;
  const MadeKey ann = make_key("ann", false, 1'700'000'000'000), root = make_key("root", true, 2);
  BOOST_TEST(ann.text != make_key("ann", false, 1).text);
  write_keys(folder / "keys.json", {ann.kept, root.kept});
  const std::string text = text_in(folder / "keys.json");
  BOOST_TEST(text.find(ann.text) == std::string::npos);
  BOOST_TEST(text.find(ann.text.substr(20)) == std::string::npos);
  struct stat info {};
  BOOST_TEST(::stat((folder / "keys.json").c_str(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777) == 0600u);
  const std::vector<ApiKey> read = read_keys(folder / "keys.json");
  BOOST_TEST_REQUIRE(read.size() == 2u);
  BOOST_TEST(read[0].user == "ann");
  BOOST_TEST(!read[0].is_admin);
  BOOST_TEST(read[0].created_ms == 1'700'000'000'000);
  BOOST_TEST(read[1].is_admin);
}

BOOST_AUTO_TEST_CASE(a_key_is_its_holders) {
  const TemporaryFolder folder;
  const MadeKey ann = make_key("ann", false, 1), root = make_key("root", true, 1);
  write_keys(folder / "keys.json", {ann.kept, root.kept});
  KeyRing ring(folder / "keys.json");
  BOOST_TEST_REQUIRE(ring.find(ann.text).has_value());
  BOOST_TEST(ring.find(ann.text)->user == "ann");
  BOOST_TEST(!ring.find(ann.text)->is_admin);
  BOOST_TEST(ring.find(root.text)->is_admin);
  std::string other = ann.text;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& wrong :
       {other, ann.kept.id, ann.kept.sha256, std::string(), ann.text + "0"})
    BOOST_TEST(!ring.find(wrong).has_value(), wrong);
  // With the secret of another key.
  std::string mixed = ann.text;
  mixed.replace(4, 12, root.kept.id);
  BOOST_TEST(!ring.find(mixed).has_value());
}

BOOST_AUTO_TEST_CASE(what_changes_in_the_file_counts_at_once) {
  const TemporaryFolder folder;
  const MadeKey ann = make_key("ann", false, 1), bob = make_key("bob", false, 1);
  write_keys(folder / "keys.json", {ann.kept});
  KeyRing ring(folder / "keys.json");
  BOOST_TEST(!ring.find(bob.text).has_value());
  write_keys(folder / "keys.json", {bob.kept});
  BOOST_TEST(ring.find(bob.text).has_value());
  BOOST_TEST(!ring.find(ann.text).has_value());
  BOOST_TEST(!ring.holder(ann.kept.id).has_value());
  // What somebody has spoilt opens nothing, and closes nothing.
  const Quiet quiet;
  std::ofstream(folder / "keys.json") << "{";
  BOOST_TEST(ring.find(bob.text).has_value());
  BOOST_TEST(quiet.said.find("keys.json") != std::string::npos);
  std::filesystem::remove(folder / "keys.json");
  BOOST_TEST(ring.find(bob.text).has_value());
}

// Whoever listens to the log may be asked for their key again.
BOOST_AUTO_TEST_CASE(a_spoilt_file_is_logged_without_the_lock) {
  const TemporaryFolder folder;
  const MadeKey ann = make_key("ann", false, 1);
  write_keys(folder / "keys.json", {ann.kept});
  KeyRing ring(folder / "keys.json");
  int times = 0;
  set_log_sink([&](Level, std::string_view) {
    ++times;
    BOOST_TEST(ring.holder(ann.kept.id).has_value());
  });
  std::ofstream(folder / "keys.json") << "{";
  BOOST_TEST(ring.holder(ann.kept.id).has_value());
  std::ofstream(folder / "keys.json") << "{{";
  BOOST_TEST(ring.find(ann.text).has_value());
  BOOST_TEST(times == 2);
  set_log_sink({});
}

BOOST_AUTO_TEST_CASE(other_files_are_refused) {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "[]", "{}", "{\"keys\": 1}", "{\"keys\": [{}]}",
        R"({"keys": [{"id": "a", "user": "../b", "role": "user", "sha256": "", "created_ms": 1}]})",
        R"({"keys": [{"id": "a", "user": "b", "role": "king", "sha256": "", "created_ms": 1}]})"}) {
    std::ofstream(folder / "keys.json") << text;
    BOOST_CHECK_THROW(KeyRing(folder / "keys.json"), Error);
  }
  BOOST_CHECK_THROW(KeyRing(folder / "none.json"), Error);
}

BOOST_AUTO_TEST_CASE(a_file_that_everybody_may_write_is_refused) {
  const TemporaryFolder folder;
  write_keys(folder / "keys.json", {make_key("ann", false, 1).kept});
  ::chmod((folder / "keys.json").c_str(), 0666);
  BOOST_CHECK_THROW(KeyRing(folder / "keys.json"), Error);
  ::chmod((folder / "keys.json").c_str(), 0644);
  BOOST_CHECK_NO_THROW(KeyRing(folder / "keys.json"));
}

BOOST_AUTO_TEST_CASE(names_of_users_are_names_of_folders) {
  for (const char* name : {"a", "Ann.Lee_2-b"}) BOOST_TEST(is_user_name(name), name);
  for (const char* name : {"", ".", "..", ".a", "a/b", "a b", "ä", "a\n", "default", "users.json"})
    BOOST_TEST(!is_user_name(name), name);
  BOOST_TEST(!is_user_name(std::string(65, 'a')));
}

BOOST_AUTO_TEST_SUITE_END()
