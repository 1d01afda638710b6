// Every golden plan and ten thousand random ones keep the rules; plans broken on purpose do not.
#include "engine/place/verify_plan.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <random>

#include "tests/support/golden_files.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;
using engine::Plan;
using engine::Step;

BOOST_AUTO_TEST_SUITE(plan_check)

namespace {

std::vector<std::string> faults_of(const test::PlanCase& question, const Plan& plan) {
  std::vector<std::string> faults =
      engine::plan_faults(question.graph(), plan, question.inferred(), question.topology());
  if (faults.empty())
    faults =
        engine::memory_faults(question.graph(), plan, question.inferred(), question.topology());
  return faults;
}
std::string first_of(const std::vector<std::string>& faults) {
  return faults.empty() ? "" : faults.front();
}

// Two to ten nodes on one to four devices, some of which see host memory; values of known size,
// unknown size and none; ports that pass on, ports that want host memory, nodes on the host, nodes
// that pass on what they read.
std::string random_question(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return std::uint32_t(random() % n); };
  std::string text = R"({"devices": [)";
  const std::uint32_t devices = 1 + below(4);
  for (std::uint32_t d = 0; d < devices; ++d)
    text += cat(d == 0 ? "" : ", ", R"({"name": "gpu:)", d,
                R"(", "model": "Card", "memory": "64GiB", "flops": 1e14, )",
                R"("bandwidth": 1e12, "host": )", below(4) == 0 ? "true" : "false", "}");
  text += R"(], "nodes": [)";
  const std::uint32_t nodes = 2 + below(9);
  std::vector<std::uint32_t> outputs;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    text += cat(n == 0 ? "" : ", ", R"({"id": "n)", n, R"(", "flops": )", 1 + below(1000), "e9");
    if (below(5) == 0)
      text += R"(, "host": true)";
    else if (below(4) == 0)
      text += cat(R"(, "device": "gpu:)", below(devices), "\"");
    if (below(5) == 0) text += R"(, "shares": true)";
    text += R"(, "reads": [)";
    for (std::uint32_t i = 0, count = n == 0 ? 0 : below(4); i < count; ++i) {
      const std::uint32_t from = below(n);
      const char* const how[] = {"", "", "", "pass:", "host:"};
      text +=
          cat(i == 0 ? "" : ", ", "\"", how[below(5)], "n", from, ".", below(outputs[from]), "\"");
    }
    text += R"(], "outputs": [)";
    outputs.push_back(1 + below(2));
    for (std::uint32_t o = 0; o < outputs.back(); ++o) {
      const char* const size[] = {"1MiB", "64MiB", "1GiB", "unknown"};
      text += cat(o == 0 ? "" : ", ", "\"", size[below(4)], "\"");
    }
    text += "]}";
  }
  return text + "]}";
}

test::PlanCase question_of(const std::string& text, const engine::Catalog& catalog) {
  return test::PlanCase(engine::parse_json(text, "question"), catalog, {});
}

// A picture's way: made on the host, worked on by two devices, joined, saved.
const char* const kDiamond = R"({
  "devices": [{"name": "gpu:0", "memory": "4GiB"}, {"name": "gpu:1", "memory": "4GiB"}],
  "nodes": [
    {"id": "size", "outputs": ["1MiB"], "host": true},
    {"id": "left", "reads": ["size.0"], "outputs": ["1GiB"], "device": "gpu:0"},
    {"id": "right", "reads": ["size.0"], "outputs": ["1GiB"], "device": "gpu:1"},
    {"id": "join", "reads": ["left.0", "right.0"], "outputs": ["1GiB"], "device": "gpu:0"},
    {"id": "label", "reads": ["pass:join.0"], "outputs": ["1GiB"], "device": "gpu:1"},
    {"id": "save", "reads": ["label.0"], "outputs": ["1GiB"], "shares": true, "host": true}
  ]
})";

std::size_t find(const Plan& plan, Step::Kind kind, std::size_t number = 0) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kind && number-- == 0) return i;
  throw std::out_of_range("the plan has no such step");
}
std::size_t run_of(const Plan& plan, engine::NodeIndex n) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == Step::Kind::run && plan.steps[i].node == n) return i;
  throw std::out_of_range("the node does not run");
}
// A step that does nothing in another's place, so that the numbers of the others stay.
void blank(Plan& plan, std::size_t step) { plan.steps[step] = plan.steps[run_of(plan, 0)]; }

struct Broken {
  const char* how;
  std::function<void(Plan&)> break_it;
};
constexpr auto kRun = Step::Kind::run;
constexpr auto kTransfer = Step::Kind::transfer;
constexpr auto kRelease = Step::Kind::release;

const std::vector<Broken> kBroken{
    {"a run waits for nothing", [](Plan& p) { p.steps[run_of(p, 3)].after.clear(); }},
    {"a run waits for all but a transfer",
     [](Plan& p) {
       std::erase_if(p.steps[run_of(p, 3)].after,
                     [&](std::uint32_t a) { return p.steps[a].kind == kTransfer; });
     }},
    {"a run waits for later",
     [](Plan& p) { p.steps[run_of(p, 1)].after.push_back(std::uint32_t(run_of(p, 3))); }},
    {"a run waits for itself",
     [](Plan& p) { p.steps[run_of(p, 2)].after.push_back(std::uint32_t(run_of(p, 2))); }},
    {"a run waits for no step", [](Plan& p) { p.steps[run_of(p, 2)].after.push_back(999); }},
    {"a run is elsewhere",
     [](Plan& p) { p.steps[run_of(p, 1)].from = p.steps[run_of(p, 1)].to = 1; }},
    {"a node is placed elsewhere", [](Plan& p) { p.assignments[1].device = 1; }},
    {"a run is missing", [](Plan& p) { blank(p, run_of(p, 2)); }},
    {"a run comes twice", [](Plan& p) { p.steps.push_back(p.steps[run_of(p, 5)]); }},
    {"a transfer is missing", [](Plan& p) { blank(p, find(p, kTransfer)); }},
    {"a transfer comes twice", [](Plan& p) { p.steps.push_back(p.steps[find(p, kTransfer)]); }},
    {"a transfer waits for nothing", [](Plan& p) { p.steps[find(p, kTransfer)].after.clear(); }},
    {"a transfer leaves from elsewhere", [](Plan& p) { p.steps[find(p, kTransfer)].from = 1; }},
    {"a transfer goes elsewhere", [](Plan& p) { p.steps[find(p, kTransfer)].to ^= 1; }},
    {"a transfer is of another value", [](Plan& p) { p.steps[find(p, kTransfer)].node = 3; }},
    {"a transfer carries too little", [](Plan& p) { p.steps[find(p, kTransfer)].bytes /= 2; }},
    {"a transfer is of what nobody makes", [](Plan& p) { p.steps[find(p, kTransfer)].port = 7; }},
    {"a release is missing", [](Plan& p) { p.steps.pop_back(); }},
    {"a release comes twice", [](Plan& p) { p.steps.push_back(p.steps[find(p, kRelease)]); }},
    {"a release waits for nothing", [](Plan& p) { p.steps[find(p, kRelease)].after.clear(); }},
    {"a release forgets a reader", [](Plan& p) { p.steps[find(p, kRelease, 1)].after.resize(1); }},
    {"a release forgets the output that passes it on",
     [](Plan& p) {
       for (Step& step : p.steps)
         if (step.kind == kRelease && step.node == 4 && step.to == engine::kHostSide)
           std::erase_if(step.after, [&](std::uint32_t a) { return p.steps[a].kind == kRelease; });
     }},
    {"a release is elsewhere",
     [](Plan& p) { p.steps[find(p, kRelease)].to = 1 - p.steps[find(p, kRelease)].to % 2; }},
    {"two readers change places",
     [](Plan& p) { std::swap(p.steps[run_of(p, 1)].node, p.steps[run_of(p, 3)].node); }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_golden_plan_keeps_the_rules) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so",
                            std::filesystem::path(HEDDLE_PLUGINS_DIR) / "encoders.so"});
  std::size_t plans = 0;
  for (const std::filesystem::path& path : test::files_in("golden/plans", ".json"))
    BOOST_TEST_CONTEXT(path.stem().string()) {
      const test::TemporaryFolder folder;
      const test::PlanCase question(
          engine::parse_json(test::read_text(path), path.filename().string()), *plugins.catalog,
          folder.path());
      if (question.text().starts_with("error: ")) continue;
      ++plans;
      const auto faults = faults_of(question, question.plan());
      BOOST_TEST(faults.empty(), first_of(faults));
    }
  BOOST_TEST(plans >= 40u);
}

BOOST_AUTO_TEST_CASE(ten_thousand_random_plans_keep_the_rules) {
  const engine::Catalog catalog;
  std::mt19937 random(20);
  std::size_t transfers = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = random_question(random);
    const test::PlanCase question = question_of(text, catalog);
    const Plan plan = question.plan();
    const auto faults = faults_of(question, plan);
    BOOST_TEST_REQUIRE(faults.empty(), first_of(faults) << "\n" << text << "\n" << question.text());
    transfers += std::size_t(std::ranges::count(plan.steps, kTransfer, &Step::kind));
  }
  BOOST_TEST(transfers > 10'000u);
}

BOOST_AUTO_TEST_CASE(plans_broken_on_purpose_are_rejected) {
  const engine::Catalog catalog;
  const test::PlanCase question = question_of(kDiamond, catalog);
  const Plan right = question.plan();
  BOOST_TEST_REQUIRE(faults_of(question, right).empty(), first_of(faults_of(question, right)));
  BOOST_TEST(kBroken.size() >= 20u);
  for (const Broken& broken : kBroken) {
    Plan plan = right;
    broken.break_it(plan);
    BOOST_TEST(!faults_of(question, plan).empty(), broken.how << "\n" << question.text());
  }
}

BOOST_AUTO_TEST_CASE(the_verifier_throws_what_is_wrong) {
  const engine::Catalog catalog;
  const test::PlanCase question = question_of(kDiamond, catalog);
  Plan plan = question.plan();
  const auto verify = [&] {
    engine::verify_plan(question.graph(), plan, question.inferred(), question.topology());
  };
  verify();
  const std::size_t join = run_of(plan, 3);
  plan.steps[join].after.clear();
  BOOST_CHECK_EXCEPTION(verify(), engine::Error, [&](const engine::Error& error) {
    return error.code() == engine::Code::internal &&
           error.full().find(cat("step ", join, " does not wait for")) != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_device_without_room_is_told) {
  const engine::Catalog catalog;
  const test::PlanCase question = question_of(kDiamond, catalog);
  engine::Topology narrow = question.topology();
  narrow.devices[0].memory_free = narrow.devices[0].memory_total = 1 << 30;
  const auto faults =
      engine::memory_faults(question.graph(), question.plan(), question.inferred(), narrow);
  BOOST_TEST_REQUIRE(!faults.empty());
  BOOST_TEST(faults.front().find("has room for 1073741824") != std::string::npos, faults.front());
}

BOOST_AUTO_TEST_SUITE_END()
