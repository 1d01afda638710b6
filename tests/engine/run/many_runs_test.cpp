// Many runs at once over one environment: nothing is lost, nothing is kept.
#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

std::atomic<int> objects_alive{0};

// An object that is counted, beside a tensor in the device's memory.
void give_counted(heddle_ctx& ctx, std::int64_t number) {
  ++objects_alive;
  const auto drop = [](void*) { --objects_alive; };
  heddle_tensor_info info{sizeof(heddle_tensor_info), HEDDLE_F32, 1, 0, {256}};
  std::vector<std::pair<std::string, engine::Value>> fields;
  fields.emplace_back("number", engine::make_value(number));
  fields.emplace_back("object",
                      engine::make_value(std::shared_ptr<const engine::Object>(
                          std::make_shared<engine::Object>("test/0", nullptr, nullptr, drop))));
  fields.emplace_back("tensor", engine::make_value(ctx.make(info)));
  ctx.set_output(0, engine::make_record(std::move(fields)));
}

std::int64_t counted_number(const heddle_value& value) {
  return engine::get_int(**std::get<engine::Record>(value.content).find("number"));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(many_runs, TwoDevices)

BOOST_AUTO_TEST_CASE(sixteen_threads_start_two_hundred_runs_and_cancel_some_of_them) {
  // Four branches over three queues, joined at the end; some nodes are cached, some deferred.
  Flow flow;
  std::vector<TestInput> ends;
  for (int branch = 0; branch < 4; ++branch) {
    engine::NodeIndex last = engine::kGraphInputs;
    for (int i = 0; i < 6; ++i) {
      const Place place = std::array{Place::first, Place::second, Place::host}[(branch + i) % 3];
      const Action add = [i](heddle_ctx& ctx) {
        const std::int64_t before = i == 0 ? 0 : counted_number(*ctx.input(0));
        if (i == 3) {
          heddle_completion* const completion = ctx.defer();
          std::thread([&ctx, completion, before] {
            give_counted(ctx, before + 1);
            completion->finish(nullptr);
          }).detach();
        } else {
          give_counted(ctx, before + 1);
        }
      };
      std::vector<TestInput> inputs;
      if (i > 0) inputs.push_back({{last, 0}});
      last = flow.add(std::to_string(branch) + "." + std::to_string(i), place, inputs, add,
                      i == 1 ? 0 : HEDDLE_NODE_IMPURE);
    }
    ends.push_back({{last, 0}});
  }
  const auto sum = flow.add(
      "sum", Place::second, ends,
      [](heddle_ctx& ctx) {
        std::int64_t total = 0;
        for (std::uint32_t i = 0; i < 4; ++i) total += counted_number(*ctx.input(i));
        give_counted(ctx, total);
      },
      HEDDLE_NODE_IMPURE | HEDDLE_NODE_SINK);

  const std::uint64_t bytes_before = bytes_used();
  std::atomic<int> next{0}, finished{0}, cancelled{0}, wrong{0};
  {
    std::vector<std::jthread> starters;
    for (unsigned t = 0; t < 16; ++t)
      starters.emplace_back([&, t] {
        std::mt19937 random(t);
        while (next++ < 200) {
          engine::RunControl control;
          std::jthread canceller;
          if (random() % 3 == 0)
            canceller = std::jthread([&control, spins = random() % 2000] {
              for (unsigned i = 0; i < spins; ++i) std::this_thread::yield();
              control.cancel();
            });
          try {
            const engine::RunResult result =
                engine::execute(flow.request({{sum, 0}}), environment, quiet, control);
            ++finished;
            if (counted_number(*result.fetched.at({sum, 0})) != 24) ++wrong;
          } catch (const engine::Error& error) {
            ++cancelled;
            if (error.code() != engine::Code::cancelled) ++wrong;
          }
        }
      });
  }
  BOOST_TEST(finished + cancelled == 200);
  BOOST_TEST(finished >= 100);
  BOOST_TEST(wrong == 0);
  environment.cache.clear();
  BOOST_TEST(objects_alive == 0);
  BOOST_TEST(bytes_used() == bytes_before);
}

BOOST_AUTO_TEST_SUITE_END()
