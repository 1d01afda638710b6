#include "engine/queue/store.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

namespace {

std::string refusal_of_store(const std::filesystem::path& file) {
  try {
    const Store store(file);
  } catch (const Error& error) {
    return error.full();
  }
  return "";
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::int64_t rows(Store& store) {
  return store.read([](Database& database) { return database.ask("SELECT count(*) FROM t"); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store)

BOOST_AUTO_TEST_CASE(it_is_as_durable_as_sqlite_can_be) {
  const TemporaryFolder folder;
  Store store(folder / "queue.db");
  store.read([](Database& database) {
    BOOST_TEST(database.ask("PRAGMA synchronous") == 2);
    Statement& mode = database.statement("PRAGMA journal_mode");
    BOOST_TEST_REQUIRE(mode.step());
    BOOST_TEST(mode.text(0) == "wal");
    mode.reset();
  });
}

// Whoever commits does not wait for that, unless it is very long.
BOOST_AUTO_TEST_CASE(the_journal_is_emptied_when_nobody_waits) {
  const TemporaryFolder folder;
  Store store(folder / "queue.db");
  store.write([](Database& database) { database.run("CREATE TABLE t(a)"); });
  const auto write = [&](int rows) {
    const std::string text(40'000, 'x');
    store.write([&](Database& database) {
      for (int i = 0; i < rows; ++i) database.statement("INSERT INTO t VALUES(?)").bind(text).run();
    });
  };
  write(1);
  store.tidy();
  BOOST_TEST(store.journal_pages() > 0);  // not for so little
  write(200);
  BOOST_TEST(store.journal_pages() > 2000);
  store.tidy();
  BOOST_TEST(store.journal_pages() == 0);
  write(1);
  BOOST_TEST(store.journal_pages() < 100);  // it is begun anew
  write(500);
  BOOST_TEST(store.journal_pages() == 0);
  BOOST_TEST(rows(store) == 702);
}

BOOST_AUTO_TEST_CASE(a_newer_file_is_refused_and_left_alone) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "queue.db";
  { const Store store(file); }
  {
    Database database(file);
    database.run("PRAGMA user_version = 7");
  }
  const std::string before = bytes_of(file);
  const std::string text = refusal_of_store(file);
  BOOST_TEST(has(text, "written by a newer heddle (schema 7, this one knows 4)"), text);
  BOOST_TEST(has(text, "Use that heddle, or name another file"), text);
  BOOST_TEST((bytes_of(file) == before));
}

BOOST_AUTO_TEST_CASE(what_is_no_queue_is_refused_and_left_alone) {
  const TemporaryFolder folder;
  const auto text = folder.write("text.db", std::string(5000, 'x'));
  BOOST_TEST(has(refusal_of_store(text), "Move it away, or restore a backup"));
  BOOST_TEST((bytes_of(text) == std::string(5000, 'x')));

  const std::filesystem::path other = folder / "other.db";
  {
    Database database(other);
    database.run("CREATE TABLE mine(a)");
  }
  const std::string before = bytes_of(other);
  BOOST_TEST(has(refusal_of_store(other), "a database of another program"));
  BOOST_TEST((bytes_of(other) == before));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_refused_and_left_alone) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "queue.db";
  {
    Store store(file);
    store.write([](Database& database) {
      database.run("CREATE TABLE t(a)");
      for (int i = 0; i < 200; ++i)
        database.statement("INSERT INTO t VALUES(?)").bind(std::string(500, 'x')).run();
    });
  }
  std::string content = bytes_of(file);
  BOOST_TEST_REQUIRE(content.size() > 40960u);
  // Everything behind the first page, which still says whose file it is.
  for (std::size_t i = 4096; i < content.size(); ++i) content[i] = char(i * 31);
  folder.write("queue.db", content);
  const std::string text = refusal_of_store(file);
  BOOST_TEST(has(text, "damaged"), text);
  BOOST_TEST((bytes_of(file) == content));
}

BOOST_AUTO_TEST_CASE(a_file_has_one_process_at_a_time) {
  const TemporaryFolder folder;
  {
    const Store store(folder / "queue.db");
    const std::string text = refusal_of_store(folder / "queue.db");
    BOOST_TEST(has(text, "Another process uses it: stop that one"), text);
  }
  BOOST_TEST(refusal_of_store(folder / "queue.db") == "");
}

BOOST_AUTO_TEST_CASE(a_write_that_throws_leaves_nothing) {
  const TemporaryFolder folder;
  Store store(folder / "queue.db");
  store.write([](Database& database) { database.run("CREATE TABLE t(a)"); });
  BOOST_CHECK_THROW(store.write([](Database& database) {
    database.run("INSERT INTO t VALUES(1)");
    throw std::runtime_error("no");
  }),
                    std::runtime_error);
  BOOST_TEST(rows(store) == 0);
  store.write([](Database& database) { database.run("INSERT INTO t VALUES(2)"); });
  BOOST_TEST(rows(store) == 1);
}

// One of them fails, and takes nothing of the others' along.
BOOST_AUTO_TEST_CASE(threads_share_transactions_and_not_failures) {
  const TemporaryFolder folder;
  Store store(folder / "queue.db");
  store.write([](Database& database) { database.run("CREATE TABLE t(a)"); });
  constexpr int kThreads = 8, kWrites = 50;
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kWrites; ++i) try {
            store.write([&](Database& database) {
              database.statement("INSERT INTO t VALUES(?)").bind(t * kWrites + i).run();
              if (t == 3) throw std::runtime_error("no");
            });
          } catch (const std::runtime_error&) {
            ++failed;
          }
      });
  }
  BOOST_TEST(failed == kWrites);
  BOOST_TEST(rows(store) == (kThreads - 1) * kWrites);
  BOOST_TEST(store.commits() < std::uint64_t(kThreads - 1) * kWrites);
}

BOOST_AUTO_TEST_CASE(a_full_disk_fails_the_write_and_not_the_store) {
  const TemporaryFolder folder;
  Store store(folder / "queue.db");
  store.write([](Database& database) { database.run("CREATE TABLE t(a)"); });
  const std::int64_t pages = store.read([](Database& database) {
    const std::int64_t now = database.ask("PRAGMA page_count");
    database.run("PRAGMA max_page_count = " + std::to_string(now + 2));
    return now;
  });
  BOOST_TEST(pages > 0);
  const auto insert = [&](std::size_t bytes) {
    store.write([&](Database& database) {
      database.statement("INSERT INTO t VALUES(?)").bind(std::string(bytes, 'x')).run();
    });
  };
  try {
    insert(100'000);
    BOOST_ERROR("it had room");
  } catch (const Error& error) {
    BOOST_TEST((error.code() == Code::io));
    BOOST_TEST(has(error.full(), "free some space"));
  }
  BOOST_TEST(rows(store) == 0);
  insert(10);
  BOOST_TEST(rows(store) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
