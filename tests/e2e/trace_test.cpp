// A plan is what a run does: every golden plan and every golden workflow is run on fake devices,
// and the steps that were taken are held against those that `heddle plan` prints for it, one by
// one.
#include <boost/test/unit_test.hpp>
#include <regex>

#include "engine/explain/plan_text.h"
#include "engine/facade/data.h"
#include "engine/plugin/host.h"
#include "engine/resources/available_memory.h"
#include "tests/e2e/flux_folder.h"
#include "tests/e2e/step_trace.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/plan_case.h"

using namespace heddle;
using engine::cat;
using engine::Json;

BOOST_AUTO_TEST_SUITE(trace)

namespace {

// The steps of a plan as `heddle plan --json` prints them.
std::vector<Json> printed_steps(const engine::Graph& graph, const engine::Plan& plan,
                                const engine::Topology& topology) {
  const std::string text = engine::write_json(engine::plan_json(graph, plan, topology), 2);
  return engine::parse_json(text, "plan").at("steps").as_array();
}

struct Ran {
  std::vector<Json> printed;
  test::TakenSteps taken;
  std::vector<std::string> faults() const { return test::trace_faults(printed, taken); }
};

bool has_tensors(const heddle_value& value) {
  bool has_any = false;
  engine::for_each_tensor(value, [&](const engine::Tensor&) { has_any = true; });
  return has_any;
}

// What the nodes of golden plans do: they make what the question says, of which a value that passes
// through them is handed on, but for one without tensors where tensors are to be made. One question
// at a time.
const test::PlanCase* asked = nullptr;

heddle_status* make_outputs(void*, heddle_ctx* ctx) {
  return engine::to_status([&] {
    const engine::Graph& graph = asked->graph();
    const auto node = std::ranges::find(graph.nodes, std::string(ctx->node()), &engine::Node::id);
    const auto& outputs = asked->inferred().nodes[std::size_t(node - graph.nodes.begin())].outputs;
    for (std::uint32_t o = 0; o < outputs.size(); ++o) {
      const std::string_view type = node->type->output(o).type;
      const bool is_scalar =
          type == "INT" || type == "FLOAT" || type == "STRING" || type == "BOOLEAN";
      engine::Value made = outputs[o].value;
      for (std::uint32_t i = 0; i < node->inputs.size() && !made; ++i)
        if ((node->type->input(i).flags & HEDDLE_PORT_PASS) != 0 && !is_scalar)
          if (outputs[o].tensors.empty() || has_tensors(*ctx->input(i)))
            made = engine::Value::share(ctx->input(i));
      if (!made && !is_scalar) {
        const auto known = outputs[o].tensors.find("");
        made = engine::make_value(ctx->make(known != outputs[o].tensors.end()
                                                ? known->second
                                                : test::info_of(HEDDLE_U8, {1 << 20})));
      }
      ctx->set_output(o, made ? made : engine::make_value(std::int64_t{1}));
    }
  });
}

// The question's devices: those that share the host's memory are processors, the others fakes.
class Machine {
 public:
  explicit Machine(const test::PlanCase& question) : question_(question) {
    const engine::Topology& topology = question.topology();
    bool peers = true;
    engine::DeviceSelection selection;
    for (std::uint32_t d = 0; d < topology.devices.size(); ++d) {
      selection.names.push_back(cat(topology.devices[d].host_visible ? "cpu:" : "fake:", d));
      names_[selection.names.back()] = topology.devices[d].name;
      for (std::uint32_t e = 0; e < d; ++e)
        peers = peers && topology.link(e, d).kind != engine::LinkFacts::Kind::through_host;
    }
    selection.options["fake"] =
        cat(R"({"memory": "64GiB", "peer": )", peers ? "true" : "false", "}");
    environment_.host = engine::plugin_host();
    environment_.catalog = plugins_.catalog;
    environment_.devices = engine::open_devices(plugins_, selection);
    engine::install_eviction(environment_);
    environment_.topology = topology;
  }

  Ran run() {
    engine::Graph graph = question_.graph();
    engine::Plan plan = question_.plan();
    Ran ran{printed_steps(graph, plan, question_.topology()), {}};
    plan.steps.clear();  // a run knows nothing of them
    std::vector<bool> is_read(graph.nodes.size(), false);
    for (const engine::Node& node : graph.nodes)
      engine::for_each_binding(node, [&](const engine::Binding& binding) {
        if (const auto* link = std::get_if<engine::Source>(&binding)) is_read[link->node] = true;
      });
    for (const engine::NodeIndex n : graph.order)
      if (!is_read[n]) graph.sinks.push_back(n);
    test::StepTrace trace(graph, question_.topology(), names_);
    engine::RunRequest request{&graph, &plan};
    request.steps = &trace;
    engine::Observer quiet;
    engine::RunControl control;
    asked = &question_;
    engine::execute(request, environment_, quiet, control);
    ran.taken = trace.take();
    return ran;
  }

 private:
  const test::PlanCase& question_;
  engine::LoadedPlugins plugins_ =
      engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", test::kFakePlugin});
  engine::Environment environment_{0};
  std::map<std::string, std::string> names_;  // by device
};

struct Questions {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so",
                            std::filesystem::path(HEDDLE_PLUGINS_DIR) / "encoders.so"});
  const test::TemporaryFolder folder;
  // nullopt: the plan is refused.
  std::optional<Ran> run(const std::filesystem::path& path) const {
    const test::PlanCase question(
        engine::parse_json(test::read_text(path), path.filename().string()), *plugins.catalog,
        folder.path(), &make_outputs);
    if (question.text().starts_with("error: ")) return {};
    return Machine(question).run();
  }
};

void check(const std::vector<std::string>& faults) {
  BOOST_TEST(faults.empty(), engine::join(faults, "\n"));
}

std::string changed(std::string text, const std::vector<std::pair<const char*, std::string>>& to) {
  for (const auto& [from, with] : to) {
    const std::string before = text;
    text = std::regex_replace(text, std::regex(from), with);
    BOOST_TEST_REQUIRE(text != before, "the pattern is not in the workflow: " << from);
  }
  return text;
}

// Prints the plan as `heddle plan` does, and runs the workflow as a run does.
Ran run_workflow(Engine::Data& engine, const std::string& text) {
  const Workflow::Data flow{engine::parse_workflow(text, "workflow.json"), engine.plugins.catalog};
  const engine::Topology& topology = engine.environment->topology;
  const auto shown = engine.prepare(flow, {Describe::strictly});
  Ran ran{printed_steps(shown.graph, shown.plan, topology), {}};
  const auto ready = engine.prepare(flow, {Describe::for_a_run});
  engine.environment->cache.clear();  // of what both have described
  std::map<std::string, std::string> names;
  for (const engine::DeviceFacts& device : topology.devices) names[device.name] = device.name;
  test::StepTrace trace(ready.graph, topology, names);
  engine::RunRequest request{&ready.graph, &ready.plan};
  request.steps = &trace;
  engine::Observer quiet;
  engine::RunControl control;
  engine::execute(request, *engine.environment, quiet, control);
  ran.taken = trace.take();
  return ran;
}

// Some nodes on another device than the first, so that values cross.
std::string spread(const std::string& text, const std::string& device) {
  return changed(text, {{R"re("class_type": "(CLIPTextEncode|VAEDecode|EmptySD3LatentImage)")re",
                         cat("$&, \"device\": \"", device, "\"")}});
}

struct Devices {
  std::vector<std::string> names;
  const char* fakes;  // their options
};
const std::vector<Devices> kDevices{{{"fake:0", "fake:1"}, R"({"shuffle": 5})"},
                                    {{"cpu:0", "fake:0"}, R"({"shuffle": 6})"}};

void check_workflow(EngineOptions options, const std::string& text) {
  options.plugin_dirs = {test::kFakePlugin};
  for (const Devices& devices : kDevices) BOOST_TEST_CONTEXT(devices.names[0]) {
      options.devices = devices.names;
      options.device_options["fake"] = devices.fakes;
      Engine::Data engine(options);
      const Ran ran = run_workflow(engine, spread(text, devices.names[1]));
      check(ran.faults());
      BOOST_TEST(std::ranges::any_of(
          ran.taken, [](const auto& step) { return step.first.starts_with("transfer"); }));
    }
}

// A plan whose `after` still names the same steps without step `i`.
std::vector<Json> without(const std::vector<Json>& steps, std::size_t i) {
  std::vector<Json> left;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (s == i) continue;
    Json after = Json::array();
    for (const Json& a : steps[s].at("after").as_array())
      if (a.as_uint64() != i) after.push(a.as_uint64() - (a.as_uint64() > i ? 1 : 0));
    left.push_back(steps[s]);
    left.back().set("after", std::move(after));
  }
  return left;
}

}  // namespace

// Their calls of models are not made: there are headers without weights, of models that no machine
// for tests could hold.
BOOST_FIXTURE_TEST_CASE(every_golden_plan_is_what_its_run_does, Questions) {
  std::size_t ran = 0, transfers = 0;
  for (const std::filesystem::path& path : test::files_in("golden/plans", ".json"))
    BOOST_TEST_CONTEXT(path.stem().string()) {
      const std::optional<Ran> one = run(path);
      if (!one) continue;
      check(one->faults());
      ++ran;
      for (const auto& [name, step] : one->taken) transfers += name.starts_with("transfer") ? 1 : 0;
    }
  BOOST_TEST(ran >= 60u);
  BOOST_TEST(transfers >= 40u);
}

BOOST_AUTO_TEST_CASE(every_golden_workflow_runs_as_its_plan_says) {
  const test::FluxFolder folder(test::FluxFolder::Content::random);
  for (const std::filesystem::path& path : test::files_in("golden/workflows", ".json"))
    BOOST_TEST_CONTEXT(path.stem().string())
  check_workflow(folder.options(),
                 changed(test::read_text(path), {{R"("width": \d+)", "\"width\": 64"},
                                                 {R"("height": \d+)", "\"height\": 48"},
                                                 {R"("steps": \d+)", "\"steps\": 2"}}));
}

// Of those that ship, low_memory.json is not among them: its model is larger than a repository
// holds.
BOOST_AUTO_TEST_CASE(shipped_workflows_run_as_their_plans_say) {
  const std::filesystem::path graphs = std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs";
  const test::TemporaryFolder folder;
  EngineOptions options = test::engine_options();
  options.model_dirs = {graphs / "models"};
  options.input_dir = graphs;
  options.output_dir = folder / "out";
  for (const char* name : {"scene.json", "image_to_image.json"}) BOOST_TEST_CONTEXT(name)
  check_workflow(options,
                 changed(test::read_text(graphs / name), {{R"("steps": \d+)", "\"steps\": 2"}}));
}

// Whatever is changed in what is printed, or in what was done, is found.
BOOST_FIXTURE_TEST_CASE(a_plan_or_a_run_changed_by_hand_is_found, Questions) {
  for (const char* name : {"one_transfer_for_all_readers", "passed_on_values_keep_their_place",
                           "branches_side_by_side"})
    BOOST_TEST_CONTEXT(name) {
      const Ran right = run(test::tests_folder() / "golden/plans" / cat(name, ".json")).value();
      check(right.faults());
      const auto is_found = [&](const std::vector<Json>& printed, const std::string& how) {
        BOOST_TEST(!test::trace_faults(printed, right.taken).empty(), how);
      };
      for (std::size_t i = 0; i < right.printed.size(); ++i) {
        const Json& step = right.printed[i];
        const std::string which = engine::write_json(step);
        is_found(without(right.printed, i), cat("without ", which));
        const auto with = [&](const char* key, Json value) {
          std::vector<Json> printed = right.printed;
          printed[i].set(key, std::move(value));
          is_found(printed, cat("another ", key, " of ", which));
        };
        const bool is_run = step.at("kind").as_string() == "run";
        for (const char* key : {"node", "output", "device", "from", "to"})
          if (step.find(key) != nullptr) with(key, "another");
        if (!is_run) with("bytes", step.at("bytes").as_uint64() + 1);
        for (std::size_t a = 0; a < i;
             ++a) {  // an edge that was there goes, one that was not comes
          Json after = Json::array();
          bool was_there = false;
          for (const Json& there : step.at("after").as_array()) {
            if (there.as_uint64() == a)
              was_there = true;
            else
              after.push(there);
          }
          if (!was_there) after.push(a);
          with("after", std::move(after));
        }
      }
      for (const auto& [step, taken] : right.taken) {
        Ran ran = right;
        ran.taken.erase(step);
        BOOST_TEST(!ran.faults().empty(), "a run without " << step);
        if (taken.after.empty()) continue;
        ran = right;
        ran.taken[step].begun = 0;
        BOOST_TEST(!ran.faults().empty(), "a run that begins with " << step);
        ran = right;
        ran.taken[step].after.erase(ran.taken[step].after.begin());
        BOOST_TEST(!ran.faults().empty(), "a run that forgets what it waits for in " << step);
        if (!step.starts_with("release")) continue;
        ran = right;
        ran.taken[step].thread_began = taken.begun;
        BOOST_TEST(!ran.faults().empty(), "a run that keeps for too long " << step);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
