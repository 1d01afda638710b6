#include "engine/queue/database.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

BOOST_AUTO_TEST_SUITE(database)

BOOST_AUTO_TEST_CASE(values_come_back_as_they_were) {
  const TemporaryFolder folder;
  Database database(folder / "file.db");
  database.run("CREATE TABLE t(a, b, c, d)");
  const std::string text("with \0 in it, and \xc3\xa4", 20);
  database.statement("INSERT INTO t VALUES(?, ?, ?, ?)")
      .bind(std::int64_t{-5})
      .bind(0.25)
      .bind(text)
      .bind(nullptr)
      .run();
  BOOST_TEST(database.changes() == 1);
  Statement& row = database.statement("SELECT a, b, c, d FROM t");
  BOOST_TEST_REQUIRE(row.step());
  BOOST_TEST(row.integer(0) == -5);
  BOOST_TEST(row.real(1) == 0.25);
  BOOST_TEST(row.text(2) == text);
  BOOST_TEST(!row.is_null(2));
  BOOST_TEST(row.is_null(3));
  BOOST_TEST(!row.step());
  BOOST_TEST(row.machine_steps() > 0u);
}

BOOST_AUTO_TEST_CASE(only_its_user_may_read_the_file_and_its_journal) {
  const TemporaryFolder folder;
  Database database(folder / "file.db");
  database.run("PRAGMA journal_mode = WAL; CREATE TABLE t(a)");
  for (const char* name : {"file.db", "file.db-wal", "file.db-shm"}) {
    struct stat found {};
    BOOST_TEST_REQUIRE(::stat((folder / name).c_str(), &found) == 0);
    BOOST_TEST((found.st_mode & 0777) == 0600u, name);
  }
}

BOOST_AUTO_TEST_CASE(errors_name_the_file_and_say_what_to_do) {
  const TemporaryFolder folder;
  const auto refusal = [&](auto&& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.full();
    }
    return std::string();
  };
  const std::string missing = refusal([&] { Database(folder / "none/file.db"); });
  BOOST_TEST(missing.find("none/file.db") != std::string::npos);
  Database database(folder / "file.db");
  BOOST_TEST(refusal([&] { database.run("NO SQL"); }).find("file.db: near \"NO\"") !=
             std::string::npos);
  database.run("CREATE TABLE t(a); PRAGMA max_page_count = 3; PRAGMA cache_size = 1");
  const std::string full = refusal([&] {
    for (int i = 0; i < 100; ++i)
      database.statement("INSERT INTO t VALUES(?)").bind(std::string(4096, 'x')).run();
  });
  BOOST_TEST(full.find("The disk is full: free some space") != std::string::npos, full);
}

BOOST_AUTO_TEST_SUITE_END()
