// Streamed weights with patches: merged once and kept in host memory where it has room, and merged
// anew where it has not; never more than the host's budget, and the same bytes in any case.
#include <boost/test/unit_test.hpp>

#include "engine/files/weight_patches.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using engine::Ledger;
using test::LayersModel;

namespace {

constexpr int kWide = 96, kDeep = 8;  // weights of 36 KiB: too large to stay in any case
constexpr std::uint64_t kWeight = std::uint64_t{kWide} * kWide * 4;
constexpr std::uint32_t kSteps = 4;

struct Patched {
  LayersModel layers{{"fake:0"}, "{}", kWide, kDeep};

  // Every weight is changed by a matrix of rank 2.
  Patched() {
    const std::vector<float> up(kWide * 2, 0.02f), down(kWide * 2, -0.01f);
    const engine::Checkpoint file = engine::open_checkpoint(layers.folder.write(
        "patches.safetensors",
        test::safetensors_bytes({{"up", "F32", {kWide, 2}, test::bytes_of_floats(up)},
                                 {"down", "F32", {2, kWide}, test::bytes_of_floats(down)}})));
    auto& build = layers.runs.environment().build_model;
    build = [old = build, file](std::string_view role, const engine::Checkpoint& of,
                                const heddle_value* config, const engine::Hints& hints) {
      auto changed =
          std::make_shared<engine::Model>(*engine::get_model(*old(role, of, config, hints)));
      std::vector<engine::WeightPatch> patches;
      for (int l = 0; l < kDeep; ++l)
        patches.push_back({"up", "down", 0.5, {{engine::cat("layers.", l, ".weight")}}});
      changed->patches =
          engine::WeightPatches::extend(nullptr, *changed->checkpoint, file, patches);
      return engine::make_value(std::shared_ptr<const engine::Model>(std::move(changed)));
    };
  }

  LayersModel::Opened open(std::shared_ptr<Ledger> host, std::uint64_t budget) {
    return layers.open(
        kSteps, 1,
        [](const engine::Model&) {
          return engine::CallPlacement{engine::ParallelMode::none, {0}, {}, {}, {}};
        },
        [] { return false; }, {.budgets = {budget}, .host = std::move(host)});
  }
  std::vector<float> result(const LayersModel::Opened& opened) {
    const engine::Tensor& x =
        engine::get_tensor(**std::get<engine::Record>(opened.x[0]->content).find("x"));
    std::vector<float> values(engine::dense_bytes(x->info) / sizeof(float));
    layers.state(0).read(x, values.data(), values.size() * sizeof(float));
    return values;
  }
  std::uint64_t least() {
    auto opened = open(nullptr, engine::kNoLimit - 1);
    opened.step(0);
    return opened.session->plan()->min_bytes(0);
  }
  std::vector<float> resident() {
    auto opened = open(nullptr, engine::kNoLimit);
    for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
    return result(opened);
  }
};

std::shared_ptr<Ledger> host_of(std::uint64_t budget) {
  return std::make_shared<Ledger>("host", Ledger::Limits{.budget = budget});
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(merged_pages, Patched)

BOOST_AUTO_TEST_CASE(each_is_merged_once_where_the_host_has_room) {
  const std::vector<float> good = resident();
  const std::uint64_t budget = least();
  for (const auto& host : {std::shared_ptr<Ledger>(), host_of(kDeep * kWeight)}) {
    {
      auto opened = open(host, budget);
      for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
      BOOST_TEST((result(opened) == good));
      BOOST_TEST(opened.session->plan()->pages.size() == std::size_t(kDeep));
      BOOST_TEST(opened.session->merged_pages() == std::uint64_t(kDeep));
      if (host != nullptr) BOOST_TEST(host->report().taken == kDeep * kWeight);
    }
    layers.state(0).settle();
    if (host != nullptr) BOOST_TEST(host->report().taken == 0u);
    if (host != nullptr) BOOST_TEST(host->report().held.empty());
  }
}

BOOST_AUTO_TEST_CASE(what_finds_no_room_is_merged_in_every_step) {
  const std::vector<float> good = resident();
  const std::uint64_t budget = least();
  for (const std::uint64_t kept : {0u, 1u, 5u}) {
    const auto host = host_of(kept * kWeight + kWeight / 2);
    auto opened = open(host, budget);
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      opened.step(i);
      BOOST_TEST(host->report().taken == kept * kWeight);
    }
    BOOST_TEST((result(opened) == good));
    BOOST_TEST(opened.session->merged_pages() == kept + kSteps * (kDeep - kept));
  }
}

BOOST_AUTO_TEST_CASE(who_is_short_of_host_memory_gets_theirs) {
  const std::vector<float> good = resident();
  const auto host = host_of(kDeep * kWeight);
  auto opened = open(host, least());
  opened.step(0);
  opened.step(1);
  BOOST_TEST(opened.session->merged_pages() == std::uint64_t(kDeep));
  layers.state(0).settle();  // no copy reads any of them
  engine::TakenBytes taken = host->take(3 * kWeight, "somebody else");
  BOOST_TEST(host->report().taken == kDeep * kWeight);
  opened.step(2);
  BOOST_TEST(opened.session->merged_pages() == std::uint64_t(kDeep) + 3);
  taken.give_back();
  opened.step(3);
  BOOST_TEST((result(opened) == good));
  BOOST_TEST(opened.session->merged_pages() <= std::uint64_t(kDeep) + 3 + 3);
}

BOOST_AUTO_TEST_SUITE_END()
