// A log and an allocator of the program's own.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "engine/base/log.h"
#include "heddle/abi/base.h"
#include "tests/support/engine_fixture.h"

using namespace heddle;
using test::workflow;

namespace {

// Counts what goes out and what comes back.
struct Ledger {
  std::mutex mutex;
  std::map<void*, std::size_t> out;  // guarded by mutex
  std::size_t pieces = 0, faults = 0;
  bool is_empty = false;

  HostAllocator allocator() {
    return {[](void* user, std::size_t bytes, std::size_t alignment) -> void* {
              auto& self = *static_cast<Ledger*>(user);
              const std::lock_guard lock(self.mutex);
              void* const data = self.is_empty ? nullptr : std::aligned_alloc(alignment, bytes);
              if (data != nullptr) self.out[data] = bytes;
              ++self.pieces;
              return data;
            },
            [](void* user, void* data, std::size_t bytes) {
              auto& self = *static_cast<Ledger*>(user);
              const std::lock_guard lock(self.mutex);
              const auto found = self.out.find(data);
              if (found == self.out.end() || found->second != bytes) {
                ++self.faults;
                return;
              }
              self.out.erase(found);
              std::free(data);
            },
            this};
  }
};

const std::string kFlow =
    workflow({{"x", R"({"class_type": "test.ramp", "inputs": {"count": 1000}})"},
              {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});

}  // namespace

BOOST_AUTO_TEST_SUITE(host_hooks)

BOOST_AUTO_TEST_CASE(tensors_on_the_host_come_from_the_allocator_and_all_of_them_go_back) {
  Ledger ledger;
  DLManagedTensor* late = nullptr;
  {
    EngineOptions options = test::engine_options();
    options.allocator = ledger.allocator();
    Engine engine(options);
    const Results results = engine.start(engine.parse(kFlow), {{}, {"keep.out"}, {}}).wait();
    late = results.tensor("keep.out");
    const std::lock_guard lock(ledger.mutex);
    BOOST_TEST(ledger.out.count(late->dl_tensor.data) == 1u);
    BOOST_TEST(ledger.out[late->dl_tensor.data] >= 4000u);
    BOOST_TEST(ledger.pieces >= 2u);  // the ramp, and the copy of it
  }
  const std::size_t pieces = ledger.pieces;
  Engine other(test::engine_options());
  other.start(other.parse(kFlow)).wait();
  BOOST_TEST(ledger.pieces == pieces);  // the engine that gave it is gone
  BOOST_TEST(ledger.out.size() == 1u);
  late->deleter(late);
  BOOST_TEST(ledger.out.size() == 0u);
  BOOST_TEST(ledger.faults == 0u);
}

BOOST_AUTO_TEST_CASE(an_allocator_that_has_nothing_left_fails_the_run_and_not_the_program) {
  Ledger ledger;
  ledger.is_empty = true;
  EngineOptions options = test::engine_options();
  options.allocator = ledger.allocator();
  Engine engine(options);
  BOOST_CHECK_EXCEPTION(engine.start(engine.parse(kFlow)).wait(), EngineError,
                        [](const EngineError& e) {
                          return e.code() == HEDDLE_OUT_OF_MEMORY &&
                                 std::string(e.what()).find("allocator") != std::string::npos;
                        });
}

BOOST_AUTO_TEST_CASE(half_an_allocator_is_refused) {
  EngineOptions options = test::engine_options();
  options.allocator.allocate = [](void*, std::size_t, std::size_t) -> void* { return nullptr; };
  BOOST_CHECK_EXCEPTION(Engine{options}, EngineError,
                        [](const EngineError& e) { return e.code() == HEDDLE_INVALID_ARGUMENT; });
}

BOOST_AUTO_TEST_CASE(the_newest_log_gets_the_messages_until_its_engine_goes) {
  std::vector<std::string> first, second;
  const auto sink_into = [](std::vector<std::string>& lines) {
    return [&lines](int level, std::string_view message) {
      lines.push_back(std::to_string(level) + " " + std::string(message));
    };
  };
  EngineOptions options = test::engine_options();
  options.log = sink_into(first);
  Engine engine(options);
  engine::log(engine::Level::warning, "one");
  {
    options.log = sink_into(second);
    Engine newer(options);
    engine::log(engine::Level::error, "two");
  }
  BOOST_TEST((first == std::vector<std::string>{"2 one"}));
  BOOST_TEST((second == std::vector<std::string>{"3 two"}));
}

BOOST_AUTO_TEST_CASE(a_log_that_throws_harms_nobody) {
  EngineOptions options = test::engine_options();
  options.log = [](int, std::string_view) { throw 5; };
  const Engine engine(options);
  BOOST_CHECK_NO_THROW(engine::log(engine::Level::warning, "nobody wants it"));
}

BOOST_AUTO_TEST_SUITE_END()
