// Plans that are kept on disk come back as they were, and nothing else comes back.
#include "plugins/cuda/plan_store.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

using namespace heddle;
using cuda::PlanStore;
namespace fs = std::filesystem;

namespace {

const PlanStore::Key kKey{'c', 3, -1, 1 << 30};

PlanStore::Entry entry(const std::string& plan, std::uint64_t workspace = 4096) {
  return {workspace, plan};
}

fs::path only_file(const fs::path& folder) {
  const fs::directory_iterator all(folder);
  BOOST_REQUIRE_EQUAL(std::distance(begin(all), end(all)), 1);
  return fs::directory_iterator(folder)->path();
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_plan_store)

BOOST_AUTO_TEST_CASE(a_plan_comes_back_as_it_was) {
  const test::TemporaryFolder folder;
  const std::string plan("{\"engine\": 7}\n\0\xff and more", 24);
  PlanStore(folder / "plans", "a card").add(kKey, entry(plan, std::uint64_t{1} << 40));
  const auto found = PlanStore(folder / "plans", "a card").find(kKey);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->workspace_bytes == std::uint64_t{1} << 40);
  BOOST_TEST(found->plan == plan);
}

BOOST_AUTO_TEST_CASE(a_plan_that_is_removed_is_gone) {
  const test::TemporaryFolder folder;
  const PlanStore store(folder.path(), "a card");
  BOOST_TEST(!store.find(kKey));
  store.add(kKey, entry("plan"));
  BOOST_TEST(store.find(kKey).has_value());
  store.remove(kKey);
  BOOST_TEST(!store.find(kKey));
}

BOOST_AUTO_TEST_CASE(another_key_or_domain_has_nothing) {
  const test::TemporaryFolder folder;
  const PlanStore store(folder.path(), "a card, cudnn 91900");
  store.add(kKey, entry("plan"));
  PlanStore::Key other = kKey;
  other.back() += 1;
  BOOST_TEST(!store.find(other));
  BOOST_TEST(!PlanStore(folder.path(), "a card, cudnn 91901").find(kKey));
  // Under the name of another, as if the names were alike by chance.
  const fs::path mine = only_file(folder.path());
  const PlanStore foreign(folder.path(), "another card");
  foreign.add(kKey, entry("foreign"));
  for (const auto& file : fs::directory_iterator(folder.path()))
    if (file.path() != mine) fs::rename(file.path(), mine);
  BOOST_TEST(!store.find(kKey));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_as_none_and_is_replaced) {
  const test::TemporaryFolder folder;
  const PlanStore store(folder.path(), "a card");
  store.add(kKey, entry("a plan of some length"));
  const fs::path path = only_file(folder.path());
  const std::string whole = read(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(path, whole.substr(0, size));
    BOOST_TEST(!store.find(kKey), "cut to " << size << " bytes");
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = char(changed[at] ^ 1);
    write(path, changed);
    BOOST_TEST(!store.find(kKey), "changed at byte " << at);
  }
  store.add(kKey, entry("a plan of some length"));
  BOOST_TEST(read(path) == whole);
  BOOST_TEST(store.find(kKey).has_value());
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_without_a_folder_or_where_none_can_be_made) {
  PlanStore("", "a card").add(kKey, entry("plan"));
  BOOST_TEST(!PlanStore("", "a card").find(kKey));
  const test::TemporaryFolder folder;
  folder.write("file", "");
  const PlanStore store(folder / "file" / "plans", "a card");
  store.add(kKey, entry("plan"));
  BOOST_TEST(!store.find(kKey));
}

BOOST_AUTO_TEST_CASE(the_oldest_go_when_there_are_too_many) {
  const test::TemporaryFolder folder;
  const PlanStore store(folder.path(), "a card");
  const auto now = fs::file_time_type::clock::now();
  for (std::size_t i = 0; i < PlanStore::kMostFiles; ++i) {
    const std::string name = std::to_string(i);
    folder.write(name, "");
    fs::last_write_time(folder / name, now - std::chrono::hours(PlanStore::kMostFiles - i));
  }
  store.add(kKey, entry("plan"));
  BOOST_TEST(store.find(kKey).has_value());
  BOOST_TEST(!fs::exists(folder / "0"));
  BOOST_TEST(fs::exists(folder / std::to_string(PlanStore::kMostFiles - 1)));
  const fs::directory_iterator all(folder.path());
  BOOST_TEST(std::size_t(std::distance(begin(all), end(all))) == PlanStore::kMostFiles * 3 / 4 + 1);
}

BOOST_AUTO_TEST_CASE(many_may_write_the_same_plan_at_once) {
  const test::TemporaryFolder folder;
  const std::string plan(100'000, 'p');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const PlanStore store(folder.path(), "a card");
      for (int i = 0; i < 20; ++i) {
        store.add(kKey, entry(plan));
        const auto found = store.find(kKey);
        if (!found || found->plan != plan) std::abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
  only_file(folder.path());
}

BOOST_AUTO_TEST_SUITE_END()
