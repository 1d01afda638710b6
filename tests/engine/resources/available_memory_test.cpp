// Sessions that run out of memory between two steps: they go on with less, and give the same bytes.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/resources/available_memory.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using test::LayersModel;

namespace {

constexpr int kNarrow = 80;
constexpr std::uint64_t kMemory = 320 << 10;
constexpr std::uint32_t kStepCount = 4;

struct RoomFixture {
  test::FakeControl control;
  LayersModel layers{{"fake:0"}, R"({"memory": 327680})", kNarrow};

  static engine::CallPlacement alone(const engine::Model&) {
    return {engine::ParallelMode::none, {0}, {}, {}, {}};
  }
  LayersModel::Opened open() {
    return layers.open(kStepCount, 1, alone, [] { return false; }, {{kMemory}, {}, nullptr, 1});
  }
  std::vector<std::byte> bytes_of(const LayersModel::Opened& opened) {
    const engine::Tensor& x =
        engine::get_tensor(**std::get<engine::Record>(opened.x[0]->content).find("x"));
    std::vector<std::byte> bytes(engine::dense_bytes(x->info));
    layers.state(0).read(x, bytes.data(), bytes.size());
    return bytes;
  }
  std::vector<std::byte> good = [this] {
    LayersModel::Opened opened = open();
    for (std::uint32_t i = 0; i < kStepCount; ++i) opened.step(i);
    return bytes_of(opened);
  }();
  // All memory that is left there, in pieces.
  std::vector<std::shared_ptr<engine::DeviceMemory>> take_all(std::uint64_t piece = 64) {
    std::vector<std::shared_ptr<engine::DeviceMemory>> taken;
    try {
      for (;;) taken.push_back(layers.state(0).allocate(piece));
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::out_of_memory));
    }
    return taken;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(room, RoomFixture)

BOOST_AUTO_TEST_CASE(a_session_that_finds_no_room_in_a_step_goes_on_with_less_and_the_same_bytes) {
  for (std::uint32_t at = 1; at < kStepCount; ++at) {
    LayersModel::Opened opened = open();
    for (std::uint32_t i = 0; i < at; ++i) opened.step(i);
    BOOST_TEST(opened.session->plan()->pages.empty());
    const auto taken = take_all();
    opened.step(at);  // what is tried first may have been replayed
    const std::uint64_t replays = control->replays(0);
    for (std::uint32_t i = at + 1; i < kStepCount; ++i) opened.step(i);
    // Captured graphs go first, which may be room enough; else weights are streamed.
    BOOST_TEST((control->replays(0) == replays || !opened.session->plan()->pages.empty()));
    BOOST_TEST((bytes_of(opened) == good));
    BOOST_TEST(control->peak_bytes(0) <= kMemory);
  }
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_CASE(
    a_session_for_which_nothing_is_left_says_who_has_it_and_the_next_one_succeeds) {
  LayersModel::Opened none = open();
  auto all = take_all(1024);
  std::string reason;
  try {
    none.step(0);
  } catch (const engine::Error& error) {
    BOOST_TEST((error.code() == engine::Code::out_of_memory));
    reason = error.full();
  }
  BOOST_TEST(reason.find("out of memory on fake:0") != std::string::npos, reason);
  BOOST_TEST(reason.find("values") != std::string::npos, reason);
  all.clear();
  LayersModel::Opened next = open();
  for (std::uint32_t i = 0; i < kStepCount; ++i) next.step(i);
  BOOST_TEST((bytes_of(next) == good));
}

BOOST_AUTO_TEST_CASE(sessions_of_several_threads_share_what_there_is) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> results(3);
  std::vector<LayersModel::Opened> sessions;
  for (int t = 0; t < 3; ++t) sessions.push_back(open());
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kStepCount; ++i) sessions[t].step(i);
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 3; ++t) BOOST_TEST((bytes_of(sessions[t]) == good));
  BOOST_TEST(control->peak_bytes(0) <= kMemory);
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
