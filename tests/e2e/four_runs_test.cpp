// Four runs of graphs/scene.json at once, on a device that has no room for all of them: they wait
// for each other, and each gives the picture that it gives alone.
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(four_runs)

BOOST_AUTO_TEST_CASE(four_pictures_are_drawn_with_room_for_one_or_two) {
  heddle::EngineOptions options = engine_options();
  const TemporaryFolder output;
  options.output_dir = output.path();
  const auto flow_of = [](heddle::Engine& engine, int seed) {
    heddle::Workflow flow =
        engine.load(std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs/scene.json");
    flow.set("sampler.seed", std::to_string(seed));
    flow.set("sampler.steps", "2");
    return flow;
  };
  std::vector<std::vector<float>> alone;
  {
    heddle::Engine engine(options);
    for (int seed = 1; seed <= 4; ++seed)
      alone.push_back(engine.start(flow_of(engine, seed), {.fetch = {"decode.IMAGE"}})
                          .wait()
                          .image("decode.IMAGE")
                          .pixels);
  }
  for (const std::uint64_t mebibytes : {100, 60}) {
    options.budgets["cpu:0"] = mebibytes << 20;
    for (const bool among_many : {false, true}) {
      heddle::Engine engine(options);
      std::vector<heddle::Run> runs;
      for (int seed = 1; seed <= 4; ++seed)
        runs.push_back(engine.start(flow_of(engine, seed),
                                    {.fetch = {"decode.IMAGE"}, .among_many = among_many}));
      for (std::size_t i = 0; i < runs.size(); ++i)
        BOOST_TEST((runs[i].wait().image("decode.IMAGE").pixels == alone[i]),
                   "run " << i << " with " << mebibytes << " MiB");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
