#include "engine/files/disk_cache.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

struct DiskCacheFixture {
  TemporaryFolder place;
  const fs::path folder = place / "kept/here";

  fs::path file(const Hash128& key) const { return folder / (hex(key) + ".safetensors"); }
  // A text of so many letters under a key of this number.
  static Hash128 key(std::uint64_t number) { return {number, 1}; }
  static std::vector<Value> text(std::size_t size) { return {make_value(std::string(size, 'x'))}; }
  static std::size_t size_of(const std::optional<std::vector<Value>>& found) {
    return found ? get_str(*found->at(0)).size() : 0;
  }
  // As if it had last been used so long ago.
  void age(const Hash128& key, int hours) const {
    fs::last_write_time(file(key), fs::last_write_time(file(key)) - std::chrono::hours(hours));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(disk_cache_test, DiskCacheFixture)

BOOST_AUTO_TEST_CASE(another_object_finds_what_one_has_added) {
  DiskCache(folder, 1 << 20).add(key(1), text(10));
  const DiskCache other(folder, 1 << 20);
  BOOST_TEST(size_of(other.find(key(1))) == 10u);
  BOOST_TEST(!other.find(key(2)));
}

BOOST_AUTO_TEST_CASE(what_was_used_longest_ago_goes_when_the_limit_is_passed) {
  const DiskCache kept(folder, 5000);
  for (std::uint64_t i = 1; i <= 3; ++i) kept.add(key(i), text(1000));
  age(key(1), 3);
  age(key(2), 2);
  age(key(3), 1);
  BOOST_TEST(size_of(kept.find(key(1))) == 1000u);  // and now it is the last that was used
  kept.add(key(4), text(2000));
  BOOST_TEST(size_of(kept.find(key(1))) == 1000u);
  BOOST_TEST(!kept.find(key(2)));
  BOOST_TEST(size_of(kept.find(key(4))) == 2000u);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) bytes += entry.file_size();
  BOOST_TEST(bytes <= 5000u);
}

BOOST_AUTO_TEST_CASE(what_is_larger_than_the_limit_leaves_the_others_alone) {
  const DiskCache kept(folder, 2000);
  kept.add(key(1), text(1000));
  kept.add(key(2), text(5000));
  BOOST_TEST(size_of(kept.find(key(1))) == 1000u);
  BOOST_TEST(!kept.find(key(2)));
}

BOOST_AUTO_TEST_CASE(damaged_and_foreign_files_are_as_none_and_are_replaced) {
  const DiskCache kept(folder, 1 << 20);
  kept.add(key(1), text(10));
  kept.add(key(2), text(20));
  for (const std::string& content :
       {std::string(), std::string("not a safetensors file"), std::string(1000, '\0')}) {
    std::ofstream(file(key(1)), std::ios::binary | std::ios::trunc) << content;
    BOOST_TEST(!kept.find(key(1)));
  }
  fs::copy_file(file(key(2)), file(key(1)), fs::copy_options::overwrite_existing);
  BOOST_TEST(!kept.find(key(1)));  // sound, but of another key
  kept.add(key(1), text(10));
  BOOST_TEST(size_of(kept.find(key(1))) == 10u);
}

BOOST_AUTO_TEST_CASE(other_files_of_the_folder_are_left_alone) {
  const DiskCache kept(folder, 1);
  fs::create_directories(folder);
  std::ofstream(folder / "files.json") << "{}";
  std::ofstream(folder / "notes.txt") << std::string(5000, 'n');
  kept.add(key(1), text(1000));
  BOOST_TEST(fs::exists(folder / "files.json"));
  BOOST_TEST(fs::exists(folder / "notes.txt"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_costs_nothing_but_time) {
  std::ofstream(place / "kept") << "a file";
  const DiskCache kept(folder, 1 << 20);
  kept.add(key(1), text(10));
  BOOST_TEST(!kept.find(key(1)));
}

BOOST_AUTO_TEST_CASE(several_threads_may_add_and_find_the_same_keys) {
  const DiskCache one(folder, 6000), other(folder, 6000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (const DiskCache* kept : {&one, &other, &one})
    threads.emplace_back([&, kept] {
      for (std::uint64_t i = 0; i < 60; ++i) {
        kept->add(key(i % 7), text(500 + i % 7));
        const std::size_t found = size_of(kept->find(key(i % 5)));
        if (found != 0 && found != 500 + i % 5) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
