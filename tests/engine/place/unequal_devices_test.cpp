// Models over devices that differ in memory, speed and links: the plan is held against every set of
// the devices, in every order, with every cut between groups, by the same estimates.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "engine/place/device_choice.h"
#include "engine/place/estimate.h"
#include "engine/place/pipeline.h"
#include "engine/program/partition.h"
#include "tests/support/golden_files.h"
#include "tests/support/plan_case.h"
#include "tests/support/random_tasks.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::CallEstimate;
using engine::CallPlacement;
using engine::cat;

namespace {

constexpr double kNear = 1.1;  // of the best of all

// The only call of a scene, tried in every way that keeps blocks whole.
class EveryCut {
 public:
  explicit EveryCut(const test::PlanCase& question) : prices_(question.topology(), {}) {
    const auto node = std::ranges::find_if(question.inferred().nodes,
                                           [](const auto& n) { return !n.calls.empty(); });
    const engine::CallSpec& call = node->calls.front();
    model_ = engine::get_model(*call.model);
    const auto load = std::make_shared<const engine::CallLoad>(
        engine::call_load(*model_, call, question.topology().devices.front().compute));
    loads_.assign(question.topology().devices.size(), load);
    for (std::uint32_t d = 0; d < loads_.size(); ++d)
      load_seconds_ = std::max(load_seconds_,
                               prices_.transfer_seconds(engine::kHostSide, d, load->weight_bytes));
  }

  // Seconds of the call and of loading, as if one device loaded; infinity where nothing fits.
  double best() {
    extend({});
    return best_;
  }

 private:
  void extend(const std::vector<std::uint32_t>& order) {
    for (std::uint32_t d = 0; d < loads_.size(); ++d) {
      const auto is_used = [&](std::uint32_t k) {
        return std::ranges::find(order, k) != order.end();
      };
      // Of two that are alike the first stands for both.
      const auto as_good = [&](std::uint32_t k) {
        const std::vector<engine::DeviceFacts>& facts = prices_.topology().devices;
        return k < d && !is_used(k) && engine::alike(facts[k], facts[d]);
      };
      bool has_as_good = is_used(d);
      for (std::uint32_t k = 0; k < d; ++k) has_as_good = has_as_good || as_good(k);
      if (has_as_good) continue;
      std::vector<std::uint32_t> longer = order;
      longer.push_back(d);
      cut(longer, {});
      extend(longer);
    }
  }

  void cut(const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& ends) {
    const auto groups = std::uint32_t(loads_.front()->groups.size());
    if (ends.size() + 1 == order.size()) return rate(order, ends);
    for (std::uint32_t end = ends.empty() ? 1 : ends.back() + 1; end < groups; ++end) {
      std::vector<std::uint32_t> more = ends;
      more.push_back(end);
      cut(order, more);
    }
  }

  void rate(const std::vector<std::uint32_t>& order, std::vector<std::uint32_t> ends) {
    const engine::CallLoad& load = *loads_.front();
    CallPlacement placement;
    placement.devices = order;
    if (order.size() > 1) {
      placement.parallel = engine::ParallelMode::layers;
      ends.push_back(std::uint32_t(load.groups.size()));
      std::vector<std::uint32_t> of_group;
      for (std::uint32_t i = 0; i < ends.size(); ++i) of_group.resize(ends[i], i);
      placement.of_block = engine::blocks_of_groups(*model_->graph, load, of_group);
    }
    const engine::CallCase call{*model_->graph, loads_, order.front(), prices_};
    CallEstimate now = engine::estimate(call, placement);
    if (!now.fits()) now = engine::estimate_streamed(call, placement);
    if (!now.fits()) return;
    best_ = std::min(best_, now.seconds + std::max(load_seconds_, now.load_seconds));
  }

  const engine::Prices prices_;
  std::shared_ptr<const engine::Model> model_;
  std::vector<std::shared_ptr<const engine::CallLoad>> loads_;
  double load_seconds_ = 0, best_ = INFINITY;
};

const engine::PlacedCall& call_of(const engine::Plan& plan) {
  const auto found = std::ranges::find_if(
      plan.assignments, [](const engine::Assignment& a) { return !a.calls.empty(); });
  BOOST_TEST_REQUIRE((found != plan.assignments.end()));
  return found->calls.front();
}
double seconds_of(const engine::PlacedCall& call) {
  return call.seconds + call.compared_load_seconds;
}

engine::LoadedPlugins plugins() {
  return engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so",
                               std::filesystem::path(HEDDLE_PLUGINS_DIR) / "encoders.so"});
}

// Two or three cards of which no two are alike, and a model for which memory is short, or just not.
std::string random_scene(std::mt19937& random, std::uint32_t devices) {
  const auto below = [&](std::uint32_t n) { return std::uint32_t(random() % n); };
  const bool is_u = below(3) == 0;
  const std::uint32_t layers = 8 + below(8), sets = is_u ? 1 : 1 + below(2);
  // Bytes of the model: chain layers of 32 MiB each; a U of 4 levels with one block at each.
  const double model = is_u ? 4e8 : layers * double(32 << 20);
  std::string text = R"({"devices": [)", links;
  for (std::uint32_t d = 0; d < devices; ++d)
    text += cat(
        d == 0 ? "" : ", ", R"({"name": "gpu:)", d, R"(", "model": "Card )", d, R"(", "memory": ")",
        std::uint64_t(model * test::draw(random, 0.15, 1.1)) + (100u << 20), R"(B", "flops": )",
        test::draw(random, 2e13, 4e14), R"(, "bandwidth": )", test::draw(random, 3e11, 3e12), "}");
  for (std::uint32_t from = 0; from < devices; ++from)
    for (std::uint32_t to = 0; to < from; ++to)
      if (below(3) != 0)
        links += cat(links.empty() ? "" : ", ", "\"gpu:", from, " -> gpu:", to,
                     R"(": {"kind": "direct", "both": true, "bytes_per_second": )",
                     test::draw(random, 5e9, 2e11), R"(, "latency_seconds": 1e-5})");
  text += cat("], \"links\": {", links, "}");
  if (below(2) == 0) text += R"(, "pinned": "64GiB")";
  text +=
      is_u ? R"(, "models": {"m": {"kind": "u", "levels": 4, "blocks": 1, "width": 512}})"
           : cat(R"(, "models": {"m": {"kind": "chain", "width": 4096, "layers": )", layers, "}}");
  return cat(text, R"(, "nodes": [{"id": "sampler", "outputs": ["512KiB"],)",
             R"( "calls": [{"model": "m", "width": )", is_u ? 512 : 4096, R"(, "tokens": )",
             is_u ? 16384 : 1024 + 1024 * below(4), R"(, "steps": )", 4 + below(20),
             R"(, "sets": )", sets, "}]}]}");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unequal_devices)

BOOST_AUTO_TEST_CASE(a_published_model_is_nearly_as_fast_as_by_the_best_of_all_cuts,
                     *boost::unit_test::label("long")) {
  const engine::LoadedPlugins loaded = plugins();
  for (const auto& [name, devices] :
       {std::pair("flux_on_16_8_and_8", 2u),
        {"flux_on_24_and_12", 2u},
        {"flux_on_80_and_24", 2u},
        {"flux_on_a_fast_card_and_one_of_half_its_speed", 2u},
        {"flux_streamed_over_a_fast_card_and_one_of_half_its_speed", 2u}})
    BOOST_TEST_CONTEXT(name) {
      const test::TemporaryFolder folder;
      const std::filesystem::path path = test::tests_folder() / "golden/plans" / cat(name, ".json");
      const test::PlanCase question(engine::parse_json(test::read_text(path), name),
                                    *loaded.catalog, folder.path());
      const engine::Plan plan = question.plan();
      const engine::PlacedCall& call = call_of(plan);
      BOOST_TEST(seconds_of(call) <= kNear * EveryCut(question).best());
      BOOST_TEST(call.placement.devices.size() == devices);
      BOOST_TEST(call.streamed == std::string_view(name).starts_with("flux_streamed"));
      BOOST_TEST(call.report.why != "");
    }
}

BOOST_AUTO_TEST_CASE(random_models_are_nearly_as_fast_as_by_the_best_of_all_cuts) {
  const engine::Catalog catalog;
  std::mt19937 random(4);
  int divided = 0, streamed = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string text = random_scene(random, 2 + std::uint32_t(i) % 2);
    BOOST_TEST_CONTEXT(text) {
      const test::TemporaryFolder folder;
      const test::PlanCase question(engine::parse_json(text, "scene"), catalog, folder.path());
      const double best = EveryCut(question).best();
      BOOST_TEST_REQUIRE(std::isfinite(best));
      const engine::Plan plan = question.plan();
      const engine::PlacedCall& call = call_of(plan);
      BOOST_TEST(seconds_of(call) <= kNear * best, question.text());
      divided += call.placement.devices.size() > 1 && !call.streamed;
      streamed += call.streamed;
    }
  }
  BOOST_TEST(divided > 8);
  BOOST_TEST(streamed > 4);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(pipelines)

namespace {

// Groups of 1 byte; a group takes stage i `seconds[i]`.
engine::PipelineCase pipeline_of(std::size_t groups, const std::vector<double>& bytes,
                                 const std::vector<double>& seconds, double link) {
  engine::PipelineCase pipeline;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    engine::PipelineCase::Stage stage{bytes[i], {}, engine::kNothingToCopy, engine::kNothingToCopy};
    for (std::size_t g = 0; g <= groups; ++g) stage.seconds.push_back(seconds[i] * double(g));
    pipeline.stages.push_back(std::move(stage));
  }
  pipeline.links.assign(bytes.size() * bytes.size(), {link, 0});
  for (std::size_t g = 0; g <= groups; ++g) pipeline.weights.push_back(double(g));
  pipeline.crossing.assign(groups + 1, 1);
  return pipeline;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_fast_take_what_they_have_room_for) {
  const auto found = engine::fastest_pipelines(pipeline_of(10, {4, 6, 8}, {1, 2, 3}, 1e9));
  BOOST_TEST(!found[0]);  // none has room for all
  BOOST_TEST_REQUIRE(found[1].has_value());
  BOOST_TEST(found[1]->seconds == 4 * 1 + 6 * 2, boost::test_tools::tolerance(1e-6));
  BOOST_TEST_REQUIRE(found[2].has_value());
  BOOST_TEST(found[2]->seconds == 4 * 1 + 5 * 2 + 1 * 3, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_cut_goes_where_least_crosses_and_links_are_fast) {
  engine::PipelineCase pipeline = pipeline_of(10, {8, 8, 8}, {1, 1, 1}, 1);
  pipeline.crossing[6] = 0.5;
  pipeline.links[2 * 3 + 0] = {100, 0};
  const auto found = engine::fastest_pipelines(pipeline);
  BOOST_TEST_REQUIRE(found[1].has_value());
  BOOST_TEST((found[1]->stages == std::vector<std::uint32_t>{2, 0}));
  BOOST_TEST((found[1]->ends == std::vector<std::uint32_t>{6, 10}));
  BOOST_TEST(found[1]->seconds == 10.005, boost::test_tools::tolerance(1e-6));
  pipeline.needed = 2;  // the stage that only slow links lead to
  const auto with = engine::fastest_pipelines(pipeline);
  BOOST_TEST(with[1]->seconds == 10.5, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(where_nothing_has_room_there_is_no_way) {
  for (const auto& found : engine::fastest_pipelines(pipeline_of(10, {4, 5}, {1, 1}, 1)))
    BOOST_TEST(!found);
}

BOOST_AUTO_TEST_SUITE_END()
