// Results kept on disk for later processes: another engine on the same folder stands for one.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <set>
#include <thread>

#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

struct DiskCachedFixture {
  TemporaryFolder folder;
  const fs::path kept = folder / "kept";
  const fs::path story = folder.write("story", "once upon a time");

  EngineOptions options() const {
    EngineOptions options = test::engine_options();
    options.cache_dir = kept;
    options.compute = {{"cpu", "f32"}};
    return options;
  }
  // The story and a word, spelt; then 1 + 1, which nobody keeps.
  static std::string flow(const std::string& word, const fs::path& file) {
    const std::string reader =
        R"({"class_type": "test.read", "inputs": {"path": ")" + file.string() + "\"}}";
    const std::string spell =
        R"({"class_type": "test.spell", "inputs": {"text": ["read", 0], "more": ")" + word + "\"}}";
    return test::workflow(
        {{"read", reader.c_str()},
         {"spell", spell.c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["spell", 0]}})"},
         {"add", R"({"class_type": "test.add", "inputs": {"a": 1}})"},
         {"keep_sum", R"({"class_type": "test.keep", "inputs": {"value": ["add", 0]}})"}});
  }

  struct Observed {
    std::set<std::string> computed;
    std::vector<float> letters;
  };
  static Observed run(Engine& engine, const std::string& flow, bool anew = false) {
    Observed observed;
    const Observer observer = [&](const Event& event) {
      if (event.kind == Event::Kind::node_done) observed.computed.emplace(event.node);
    };
    const Results results =
        engine
            .start(engine.parse(flow), {.observer = observer, .fetch = {"spell.out"}, .anew = anew})
            .wait();
    observed.letters = results.floats("spell.out", "letters");
    return observed;
  }
  Observed run(const std::string& flow) const {
    Engine engine(options());
    return run(engine, flow);
  }
  bool is_made(const std::string& word, const fs::path& file) const {
    return run(flow(word, file)).computed.contains("spell");
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(kept))
      if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
    return found;
  }
};

std::vector<float> letters_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(disk_cached, DiskCachedFixture)

BOOST_AUTO_TEST_CASE(a_later_engine_gives_the_same_without_computing_it) {
  const Observed first = run(flow("!", story)), second = run(flow("!", story));
  BOOST_TEST(first.letters == letters_of("once upon a time!"));
  BOOST_TEST(second.letters == first.letters);
  BOOST_TEST(first.computed.contains("spell"));
  BOOST_TEST(!second.computed.contains("spell"));
  BOOST_TEST(second.computed.contains("add"));
  BOOST_TEST(files().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_run_that_begins_anew_takes_nothing_and_puts_its_own_there) {
  run(flow("!", story));
  const fs::path file = files().at(0);
  fs::resize_file(file, fs::file_size(file) - 1);  // as a result that is not to be believed
  Engine engine(options());
  BOOST_TEST(run(engine, flow("!", story), true).computed.contains("spell"));
  BOOST_TEST(run(engine, flow("!", story), true).computed.contains("add"));
  BOOST_TEST(!run(flow("!", story)).computed.contains("spell"));
}

BOOST_AUTO_TEST_CASE(nothing_above_a_kept_result_is_run_before_the_run_either) {
  run(flow("!", story));
  Engine engine(options());
  const std::string before = engine.plan(engine.parse(flow("?", story)));
  const std::string after = engine.plan(engine.parse(flow("!", story)));
  BOOST_TEST(before.find("read") != std::string::npos);
  BOOST_TEST(after.find(" read ") == std::string::npos, after);
}

BOOST_AUTO_TEST_CASE(another_text_another_content_and_another_type_are_made) {
  run(flow("!", story));
  BOOST_TEST(is_made("?", story));
  BOOST_TEST(!is_made("!", story));
  const auto date = fs::last_write_time(story);
  std::ofstream(story, std::ios::binary | std::ios::trunc) << "ONCE upon a time";
  fs::last_write_time(story, date);
  const Observed changed = run(flow("!", story));
  BOOST_TEST(changed.computed.contains("spell"));
  BOOST_TEST(changed.letters == letters_of("ONCE upon a time!"));
  EngineOptions other = options();
  other.compute = {{"cpu", "bf16"}};
  Engine engine(other);
  BOOST_TEST(run(engine, flow("!", story)).computed.contains("spell"));
}

BOOST_AUTO_TEST_CASE(the_next_run_of_an_engine_finds_what_depends_on_it_in_memory) {
  Engine engine(options());
  const std::string text = flow("!", story);
  run(engine, text);
  BOOST_TEST(run(engine, text).computed.empty());
  BOOST_TEST(run(engine, flow("?", story)).computed.contains("spell"));
  BOOST_TEST(run(engine, text).computed.empty());
}

BOOST_AUTO_TEST_CASE(what_stands_above_is_there_when_it_is_wanted) {
  run(flow("!", story));
  Engine engine(options());
  const Results results =
      engine.start(engine.parse(flow("!", story)), {.fetch = {"read.text", "spell.out"}}).wait();
  BOOST_TEST(results.text("read.text") == "once upon a time");
  BOOST_TEST(results.floats("spell.out", "letters") == letters_of("once upon a time!"));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_replaced) {
  run(flow("!", story));
  BOOST_REQUIRE(files().size() == 1u);
  std::fstream(files()[0], std::ios::binary | std::ios::in | std::ios::out).seekp(-3, std::ios::end)
      << '\7';
  BOOST_TEST(is_made("!", story));
  BOOST_TEST(!is_made("!", story));
}

BOOST_AUTO_TEST_CASE(a_limit_of_nothing_and_no_folder_keep_nothing) {
  EngineOptions none = options();
  none.cache_dir_bytes = 0;
  for (int i = 0; i < 2; ++i) {
    Engine engine(none);
    BOOST_TEST(run(engine, flow("!", story)).computed.contains("spell"));
  }
  BOOST_TEST(files().empty());
  none.cache_dir.clear();
  for (int i = 0; i < 2; ++i) {
    Engine engine(none);
    BOOST_TEST(run(engine, flow("!", story)).computed.contains("spell"));
  }
}

BOOST_AUTO_TEST_CASE(two_devices_of_one_form_share_what_is_kept) {
  EngineOptions two = options();
  two.devices = {"cpu:0", "cpu:1"};
  run(flow("!", story));
  Engine engine(two);
  BOOST_TEST(!run(engine, flow("!", story)).computed.contains("spell"));
}

namespace {

// Overwritten in place, and dated as before.
void overwrite(const fs::path& file, const std::string& text) {
  const auto date = fs::last_write_time(file);
  std::ofstream(file, std::ios::binary | std::ios::in) << text;
  fs::last_write_time(file, date);
}

// The file is another one from the moment on at which the run has its keys and is about to read it.
struct Overwritten {
  DiskCachedFixture& fixture;
  std::string warnings;

  std::vector<float> run(Engine& engine, bool is_overwritten) {
    std::string flow = DiskCachedFixture::flow("!", fixture.story);
    flow.replace(flow.find("test.read"), 9, "test.read_late");
    const Observer observer = [&](const Event& event) {
      if (event.kind == Event::Kind::node_started && event.node == "read" && is_overwritten)
        overwrite(fixture.story, "twice upon a tim");
      if (event.kind == Event::Kind::warning) warnings += event.text;
    };
    return engine.start(engine.parse(flow), {.observer = observer, .fetch = {"spell.out"}})
        .wait()
        .floats("spell.out", "letters");
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_came_of_a_file_that_was_overwritten_meanwhile_is_not_kept) {
  Overwritten overwritten{*this, {}};
  {
    Engine engine(options());
    BOOST_TEST(overwritten.run(engine, true) == letters_of("twice upon a tim!"));
  }
  BOOST_TEST(overwritten.warnings.find(story.string() + " was changed while the run used it") !=
             std::string::npos);
  overwrite(story, "once upon a time");
  Engine engine(options());
  BOOST_TEST(overwritten.run(engine, false) == letters_of("once upon a time!"));
  BOOST_TEST(files().size() == 1u);
}

BOOST_AUTO_TEST_CASE(nor_is_it_found_in_memory_when_the_file_is_as_it_was) {
  EngineOptions only_memory = options();
  only_memory.cache_dir.clear();
  Engine engine(only_memory);
  Overwritten overwritten{*this, {}};
  BOOST_TEST(overwritten.run(engine, true) == letters_of("twice upon a tim!"));
  overwrite(story, "once upon a time");
  BOOST_TEST(overwritten.run(engine, false) == letters_of("once upon a time!"));
  overwritten.warnings.clear();
  BOOST_TEST(overwritten.run(engine, false) == letters_of("once upon a time!"));
  BOOST_TEST(overwritten.warnings.empty());
}

BOOST_AUTO_TEST_CASE(two_engines_may_use_one_folder_at_once) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      Engine engine(options());
      for (const char* word : {"a", "b", "c", "d", "a", "b"})
        if (run(engine, flow(word, story)).letters !=
            letters_of(std::string("once upon a time") + word))
          ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(files().size() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
