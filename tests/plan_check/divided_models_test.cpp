// Calls of published models whose tokens are divided: their sessions keep the rules, and what is
// estimated to cross between devices in a step is about what the session sends.
#include <boost/test/unit_test.hpp>

#include "engine/place/call_steps.h"
#include "engine/place/estimate_shared.h"
#include "engine/plugin/host.h"
#include "engine/program/verify_session.h"
#include "heddle/diffusion/bench_shapes.h"
#include "tests/plan_check/random_sessions.h"
#include "tests/support/header_models.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::ParallelMode;
using engine::SessionPlan;

BOOST_AUTO_TEST_SUITE(divided_models)

namespace {

using Shape = std::vector<std::int64_t>;

// A model by its bench shape, and what a call of it reads at the usual size or the small one. Where
// there is no sound, no pooled text, those are empty. most: of what is told to cross by what does.
struct Sizes {
  Shape x, context, y, audio;
};
struct Divided {
  const char* name;
  double most;
  std::uint32_t heads;  // of the small one
  Sizes usual, small;
};
// An attention to a text is priced as if its tokens changed places, too, which they do not.
constexpr double kAlone = 1.05, kBesideText = 1.7;
const Divided kDivided[] = {
    {"z-image",
     kAlone,
     4,
     {{1, 16, 128, 128}, {1, 128, 2560}, {}, {}},
     {{1, 16, 9, 7}, {1, 13, 96}, {}, {}}},
    {"lumina2",
     kAlone,
     4,
     {{1, 16, 128, 128}, {1, 128, 2304}, {}, {}},
     {{1, 16, 9, 7}, {1, 13, 96}, {}, {}}},
    {"sd3.5-large",
     kAlone,
     2,
     {{1, 16, 128, 128}, {1, 154, 4096}, {1, 2048}, {}},
     {{1, 16, 9, 7}, {1, 13, 96}, {1, 48}, {}}},
    {"sd3.5-medium",
     kAlone,
     2,
     {{1, 16, 128, 128}, {1, 154, 4096}, {1, 2048}, {}},
     {{1, 16, 9, 7}, {1, 13, 96}, {1, 48}, {}}},
    {"wan-1.3b",
     kBesideText,
     2,
     {{1, 16, 21, 60, 104}, {1, 512, 4096}, {}, {}},
     {{1, 16, 3, 6, 10}, {1, 13, 4096}, {}, {}}},
    {"ltxv-2b",
     kBesideText,
     32,
     {{1, 128, 13, 16, 24}, {1, 128, 4096}, {}, {}},
     {{1, 128, 3, 3, 5}, {1, 13, 4096}, {}, {}}},
    {"ltx2-19b",
     kBesideText,
     32,
     {{1, 128, 16, 23, 40}, {1, 1024, 7680}, {}, {1, 8, 126, 16}},
     {{1, 128, 3, 3, 5}, {1, 13, 7680}, {}, {1, 8, 7, 16}}},
};

std::vector<test::FileTensor> tensors_of(const engine::LoadedPlugins& plugins, const char* name,
                                         bool is_small) {
  test::Header header("BF16");
  const heddle_bench_request request{sizeof request, 0, 0, 0, 0, is_small, 0};
  const heddle_bench_sink sink{sizeof sink, &header,
                               [](void* to, const heddle_bench_tensor* tensor) {
                                 static_cast<test::Header*>(to)->add(
                                     tensor->name, {tensor->shape, tensor->shape + tensor->rank});
                               },
                               [](void*, const heddle_bench_workflow*) {}};
  for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_BENCH_SHAPES)) {
    const auto& desc = *static_cast<const heddle_bench_shape_desc*>(provided.desc);
    if (desc.name == std::string_view(name))
      engine::throw_status(desc.make(engine::plugin_host(), &desc, &request, &sink), name);
  }
  BOOST_TEST_REQUIRE(!plugins.plugins.empty());
  BOOST_TEST_REQUIRE(!header.tensors.empty(), name);
  return header.tensors;
}

// Cards that are linked to each other.
std::string machine(std::uint32_t count) {
  std::string devices;
  for (std::uint32_t d = 0; d < count; ++d)
    devices += engine::cat(d == 0 ? "" : ", ", R"({"name": "gpu:)", d, R"(", "memory": "140GiB"})");
  return engine::cat(R"({"devices": [)", devices, R"(], "nodes": []})");
}

struct Question {
  const test::TemporaryFolder folder = {};
  engine::CallSpec call = {};

  Question(const engine::LoadedPlugins& plugins, const Divided& divided, bool is_small) {
    const std::filesystem::path file = folder.path() / "model.safetensors";
    test::write_header_only(file, tensors_of(plugins, divided.name, is_small));
    call.model = engine::build_model(*plugins.catalog, "diffusion_model",
                                     engine::open_checkpoint(file), nullptr, {});
    call.step_count = 3;
    call.schedule = {{"timestep", test::info_of(HEDDLE_F32, {3})}};
    const Sizes& sizes = is_small ? divided.small : divided.usual;
    engine::CallSpec::Set set;
    const auto add = [](engine::CallSpec::Infos& to, const char* name, const Shape& shape) {
      if (!shape.empty()) to[name] = test::info_of(HEDDLE_F32, shape);
    };
    add(set.steps, "x", sizes.x);
    add(set.steps, "audio", sizes.audio);
    add(set.constants, "context", sizes.context);
    add(set.constants, "y", sizes.y);
    for (const engine::GraphInput& input : model().graph->inputs)
      if (input.name == "guidance" || input.name == "frame_time")
        add(set.constants, input.name.c_str(), {1});
    call.sets = {set, set};
  }
  const engine::Model& model() const { return *engine::get_model(*call.model); }
};

engine::CallPlacement over(std::uint32_t count) {
  engine::CallPlacement placement;
  placement.parallel = count > 1 ? ParallelMode::sequence : ParallelMode::none;
  for (std::uint32_t d = 0; d < count; ++d) placement.devices.push_back(d);
  if (count > 1) placement.rank_fractions.assign(count, 1.0 / count);
  return placement;
}

engine::LoadedPlugins denoisers() {
  return engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
}

}  // namespace

BOOST_AUTO_TEST_CASE(sessions_of_small_models_keep_the_rules) {
  const engine::LoadedPlugins plugins = denoisers();
  for (const Divided& divided : kDivided)
    for (const std::uint32_t count : {2u, 3u})
      BOOST_TEST_CONTEXT(divided.name << " over " << count) {
        if (count > divided.heads) continue;
        const Question question(plugins, divided, true);
        const test::PlanCase machine_case(engine::parse_json(machine(count), "machine"),
                                          *plugins.catalog, question.folder.path());
        const engine::Prices prices(machine_case.topology(), {});
        const engine::SessionSpec spec =
            engine::session_spec(engine::session_setup(question.call, over(count), 0, prices));
        const engine::Graph& graph = *question.model().graph;
        const SessionPlan session = engine::plan_session(graph, spec, test::any_kernel);
        const auto faults = engine::check_session(graph, spec, session).faults;
        BOOST_TEST(faults.empty(), (faults.empty() ? "" : faults.front()));
      }
}

BOOST_AUTO_TEST_CASE(what_crosses_in_a_step_is_told_before) {
  const engine::LoadedPlugins plugins = denoisers();
  for (const Divided& divided : kDivided) {
    const Question question(plugins, divided, false);
    const auto load = std::make_shared<const engine::CallLoad>(
        engine::call_load(question.model(), question.call, HEDDLE_BF16));
    const engine::Graph& graph = *question.model().graph;
    for (const std::uint32_t count : {2u, 4u})
      BOOST_TEST_CONTEXT(divided.name << " over " << count) {
        const test::PlanCase machine_case(engine::parse_json(machine(count), "machine"),
                                          *plugins.catalog, question.folder.path());
        const engine::Prices prices(machine_case.topology(), {});
        const engine::CallCase call{graph, {count, load}, 0, prices};
        const engine::CallEstimate told = engine::estimate_shared(call, over(count));
        const engine::CallEstimate alone = engine::estimate_whole(call, over(1));
        const SessionPlan session = engine::plan_session(
            graph,
            engine::session_spec(engine::session_setup(question.call, over(count), 0, prices)),
            test::any_kernel);
        std::uint64_t sent = 0;
        for (const engine::SessionAction& action : session.phases[2])
          if (action.kind == engine::SessionAction::Kind::transfer)
            sent += session.transfers[action.index].bytes;
        const double ratio = double(told.transfer_bytes) / double(sent),
                     time = told.step_seconds / alone.step_seconds;
        BOOST_TEST_MESSAGE(divided.name << " over " << count << ": " << (told.transfer_bytes >> 20)
                                        << " MiB told, " << (sent >> 20) << " sent (" << ratio
                                        << "), time " << time);
        BOOST_TEST(ratio > 0.9);
        BOOST_TEST(ratio < divided.most);
        BOOST_TEST(time > 1.0 / count);
        BOOST_TEST(time < 1.5 / count);
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
