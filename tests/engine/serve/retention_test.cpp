// What goes of files and of the history.
#include "engine/serve/retention.h"

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using namespace std::chrono_literals;
using engine::KeepRule;
using engine::KeptFile;

namespace {

constexpr std::int64_t kNow = 1'000'000'000, kHour = 3'600'000;  // ms

// Of ten bytes each: h hours old.
std::vector<KeptFile> files(std::initializer_list<int> hours) {
  std::vector<KeptFile> made;
  for (const int h : hours) made.push_back({std::to_string(h), kNow - h * kHour, 10});
  return made;
}

std::string going(std::initializer_list<int> hours, const KeepRule& rule,
                  std::uint64_t wanted = 0) {
  std::string names;
  for (const KeptFile& file : engine::surplus_files(files(hours), rule, kNow, wanted))
    names += file.path.string() + " ";
  return names;
}

struct Sweeping : Serving {
  std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  std::uint64_t free = 0;

  // Changed so many hours before `ms`.
  void write(const std::string& name, int hours) {
    std::filesystem::create_directories((folder / name).parent_path());
    folder.write(name, "0123456789");
    const std::chrono::sys_time<std::chrono::milliseconds> time(
        std::chrono::milliseconds(ms - hours * kHour));
    std::filesystem::last_write_time(
        folder / name, std::chrono::file_clock::from_sys(
                           std::chrono::time_point_cast<std::chrono::nanoseconds>(time)));
  }
  bool has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(folder / name));
  }
  void sweep(engine::RetentionOptions rules) {
    rules.clock = [this] { return ms; };
    rules.free_at = [this](const std::filesystem::path&) { return free; };
    engine::Retention(engine, service->queue(), rules).sweep();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(retention)

BOOST_AUTO_TEST_CASE(old_files_go) {
  BOOST_TEST(going({1, 5, 3}, {}) == "");
  BOOST_TEST(going({1, 5, 3}, {.age = 2h, .bytes = {}}) == "5 3 ");
  BOOST_TEST(going({1, 5, 3}, {.age = 3h, .bytes = {}}) == "5 ");
  BOOST_TEST(going({}, {.age = 0s, .bytes = 0}) == "");
}

BOOST_AUTO_TEST_CASE(the_oldest_go_when_there_are_too_many_bytes) {
  BOOST_TEST(going({1, 5, 3}, {.age = {}, .bytes = 30}) == "");
  BOOST_TEST(going({1, 5, 3}, {.age = {}, .bytes = 29}) == "5 ");
  BOOST_TEST(going({1, 5, 3}, {.age = {}, .bytes = 10}) == "5 3 ");
  BOOST_TEST(going({1, 5, 3}, {.age = 4h, .bytes = 25}) == "5 ");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_wanted_come_free) {
  BOOST_TEST(going({1, 5, 3}, {}, 1) == "5 ");
  BOOST_TEST(going({1, 5, 3}, {}, 11) == "5 3 ");
  BOOST_TEST(going({1, 5, 3}, {}, 1000) == "5 3 1 ");
}

BOOST_AUTO_TEST_CASE(nothing_goes_that_somebody_may_be_at_work_with) {
  BOOST_TEST(going({0, 1}, {.age = 0s, .bytes = 0}, 1000) == "1 ");
}

BOOST_FIXTURE_TEST_CASE(folders_are_swept_by_their_rules, Sweeping) {
  const std::filesystem::path temp = engine.folder_places("temp").at(0);
  BOOST_TEST_REQUIRE(temp.string().starts_with(folder.path().string()), temp);
  const std::string of_temp = temp.lexically_relative(folder.path()).string();
  write("output/sub/old.png", 50);
  write("output/new.png", 1);
  write(of_temp + "/old.png", 50);
  write("elsewhere/old.png", 50);
  std::filesystem::create_symlink(folder / "elsewhere/old.png", folder / "output/link.png");
  std::filesystem::create_symlink(folder / "elsewhere", folder / "output/folder");
  sweep({});
  BOOST_TEST(has("output/sub/old.png"));
  sweep({.output = {.age = 24h, .bytes = {}}});
  BOOST_TEST(!has("output/sub/old.png"));
  BOOST_TEST(has("output/new.png"));
  BOOST_TEST(has(of_temp + "/old.png"));
  sweep({.temp = {.age = {}, .bytes = 5}});
  BOOST_TEST(!has(of_temp + "/old.png"));
  for (const char* kept :
       {"output/new.png", "elsewhere/old.png", "output/link.png", "output/folder"})
    BOOST_TEST(has(kept), kept);
}

BOOST_FIXTURE_TEST_CASE(a_disk_keeps_a_reserve, Sweeping) {
  const std::string of_temp =
      engine.folder_places("temp").at(0).lexically_relative(folder.path()).string();
  const auto write_all = [&] {
    write("output/a.png", 9);
    write(of_temp + "/b.png", 5);
    write(of_temp + "/c.png", 7);
  };
  write_all();
  free = 100;
  sweep({.free_bytes = 100});
  BOOST_TEST(has(of_temp + "/c.png"));
  sweep({.free_bytes = 105});
  BOOST_TEST(!has(of_temp + "/c.png"));
  BOOST_TEST(has(of_temp + "/b.png"));
  // Pictures go only where somebody says that they may.
  sweep({.free_bytes = 1000});
  BOOST_TEST(!has(of_temp + "/b.png"));
  BOOST_TEST(has("output/a.png"));
  sweep({.output = {.age = 24h, .bytes = {}}, .free_bytes = 1000});
  BOOST_TEST(!has("output/a.png"));
}

BOOST_FIXTURE_TEST_CASE(history_goes_by_age, Sweeping) {
  const std::string id = submit(showing(1));
  ended(id);
  ms += 1000;
  sweep({.history = 1h});
  BOOST_TEST(get("/history").json().size() == 1u);
  ms += kHour + 1000;
  sweep({.history = 1h});
  BOOST_TEST(get("/history").body == "{}");
}

BOOST_AUTO_TEST_CASE(a_service_sweeps_by_itself) {
  Serving serving;
  serving.service.reset();
  serving.folder.write("output/old.png", "x");
  std::filesystem::last_write_time(serving.folder / "output/old.png",
                                   std::filesystem::file_time_type::clock::now() - 48h);
  serving.folder.write("output/new.png", "x");
  serving.options.retention.output.age = 24h;
  serving.start();
  serving.wait_until([&] { return !std::filesystem::exists(serving.folder / "output/old.png"); });
  BOOST_TEST(std::filesystem::exists(serving.folder / "output/new.png"));
}

BOOST_AUTO_TEST_SUITE_END()
