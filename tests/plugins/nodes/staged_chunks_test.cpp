// One clip through a causal autoencoder with the stages of a chunk on several simulated devices:
// they work side by side, each at another chunk, to the same bytes as one device. The autoencoder
// is the tiny one of Wan 2.1 of video_vae_test.cpp, on devices so slow that computing is what takes
// time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "tests/plugins/nodes/staged_fixture.h"

namespace heddle::test {

BOOST_FIXTURE_TEST_SUITE(staged_chunks, StagedFixture)

BOOST_AUTO_TEST_CASE(devices_decode_a_clip_side_by_side_to_the_bytes_of_one) {
  hold([](int seed) { return decode(seed); });
}

BOOST_AUTO_TEST_CASE(devices_encode_a_clip_side_by_side_to_the_bytes_of_one) {
  hold([](int seed) { return encode(seed); });
}

BOOST_AUTO_TEST_CASE(a_plan_tells_of_the_pipeline_and_counts_what_is_under_way) {
  Engine engine(options(2));
  const std::string text = engine.plan(engine.parse(decode(1)));
  BOOST_TEST_MESSAGE(text.substr(text.find("chunks in a pipeline") - 8, 300));
  BOOST_TEST(text.find("8 chunks in a pipeline over fake:1, fake:0: stages 1 to ") !=
             std::string::npos);
  BOOST_TEST(text.find("(stage 1 of ") != std::string::npos);
  // What a device has under way is part of what the node needs there.
  const engine::Json step = step_of(engine, decode(1));
  const engine::Json told =
      engine::parse_json(engine.plan_min_memory(engine.parse(decode(1)), true), "min-memory");
  int found = 0;
  for (const engine::Json& one : step.at("pipeline").at("devices").as_array())
    for (const engine::Json& device : told.as_array()) {
      if (device.at("device").as_string() != one.at("device").as_string()) continue;
      for (const engine::Json& node : device.at("nodes").as_array()) {
        if (node.at("node").as_string() != "out") continue;
        ++found;
        BOOST_TEST(one.at("bytes_under_way").as_uint64() > 0u);
        BOOST_TEST(node.at("all_bytes").as_uint64() > one.at("bytes_under_way").as_uint64());
      }
    }
  BOOST_TEST(found == 2);
}

BOOST_AUTO_TEST_CASE(one_device_does_all_where_it_is_asked_to_or_links_are_slow) {
  Engine engine(options(2));
  BOOST_TEST(step_of(engine, decode(1)).find("pipeline") != nullptr);
  for (const char* hints : {R"(, "parallel": "none")", R"(, "device": "fake:1")"})
    BOOST_TEST(step_of(engine, decode(1, kChunks, hints)).find("pipeline") == nullptr, hints);
  Engine far(options(2, R"(, "links": {"peer": {"bandwidth": 1e4, "latency": 1}})"));
  BOOST_TEST(step_of(far, decode(1)).find("pipeline") == nullptr);
  Engine alone(options(1));
  BOOST_TEST(step_of(alone, decode(1)).find("pipeline") == nullptr);
}

BOOST_AUTO_TEST_CASE(work_that_runs_as_late_as_events_allow_makes_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1), 1).numbers;
  for (int seed = 1; seed <= 2; ++seed) {
    Engine engine(options(3, cat(R"(, "shuffle": )", seed)));
    BOOST_TEST(step_of(engine, decode(1)).find("pipeline") != nullptr);
    BOOST_TEST(are_equal(run(engine, decode(1), 3).numbers, wanted), "shuffled by " << seed);
  }
}

BOOST_AUTO_TEST_CASE(a_pause_between_chunks_keeps_the_bytes) {
  constexpr int kFew = 5;
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1, kFew), 1).numbers;
  Engine engine(options(2));
  Run* running = nullptr;
  std::atomic<bool> may_pause = false, is_paused = false;
  std::atomic<int> heard = 0;
  Run paused = engine.start(
      engine.parse(decode(1, kFew)),
      {.observer =
           [&](const Event& event) {
             if (event.kind != Event::Kind::node_progress || event.node != "out" || ++heard != 1)
               return;
             while (!may_pause) std::this_thread::yield();
             running->pause();
             is_paused = true;
           },
       .fetch = {"out.IMAGE"}});
  running = &paused;
  may_pause = true;
  while (!is_paused) std::this_thread::yield();
  BOOST_TEST(!paused.wait_for(std::chrono::milliseconds(200)));
  BOOST_TEST(heard < kFew);
  paused.resume();
  BOOST_TEST(are_equal(paused.wait().floats("out.IMAGE"), wanted));
}

// The run begins again, and makes the same.
BOOST_AUTO_TEST_CASE(a_failure_of_one_device_is_got_over) {
  constexpr int kFew = 4;
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(2, kFew), 1).numbers;
  for (const std::uint32_t device : {0u, 1u})
    for (const std::uint64_t nth : {1, 40, 90}) {
      Engine engine(options(2));
      control->reset();
      control->fail_launch(device, nth);
      const std::vector<float> made =
          engine.start(engine.parse(decode(2, kFew)), {{}, {"out.IMAGE"}})
              .wait()
              .floats("out.IMAGE");
      BOOST_TEST(control->faults(device) == 1u);
      BOOST_TEST(control->freed_in_use(device) == 0u);
      BOOST_TEST(are_equal(made, wanted), "launch " << nth << " of fake:" << device);
    }
}

BOOST_AUTO_TEST_CASE(a_run_is_cancelled_between_two_chunks) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(3), 1).numbers;
  Engine engine(options(2));
  (void)run(engine, decode(1), 2);
  Run* running = nullptr;
  std::atomic<bool> may_cancel = false;
  std::atomic<int> told = 0;
  Run run_one =
      engine.start(engine.parse(decode(2)),
                   {.observer =
                        [&](const Event& event) {
                          if (event.kind != Event::Kind::node_progress || event.node != "out")
                            return;
                          ++told;
                          while (!may_cancel) std::this_thread::yield();
                          running->cancel();
                        },
                    .fetch = {"out.IMAGE"}});
  running = &run_one;
  may_cancel = true;
  try {
    run_one.wait();
    BOOST_TEST(false, "it was not cancelled");
  } catch (const EngineError& error) {
    BOOST_TEST(error.code() == HEDDLE_CANCELLED, error.what());
  }
  BOOST_TEST(told < 3);
  for (const std::uint32_t d : {0u, 1u}) BOOST_TEST(control->freed_in_use(d) == 0u);
  BOOST_TEST(are_equal(run(engine, decode(3), 2).numbers, wanted));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
