// Nodes on the host keep within its budget: what can never fit is refused before anything runs, by
// plans and by runs, and what fits takes no more than it says.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <regex>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "heddle/abi/base.h"
#include "tests/support/engine_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;
constexpr std::uint64_t kSource = 64 << 10;  // for the small picture or latent that is read

heddle::EngineOptions options(std::uint64_t host_budget) {
  heddle::EngineOptions options = engine_options();
  options.host_budget = host_budget;
  options.cache_bytes = 1;  // nothing is kept
  return options;
}

std::uint64_t values_in(const heddle::MemoryReport& report) {
  std::uint64_t bytes = 0;
  for (const heddle::MemoryUsage& held : report.held)
    if (held.kind == "values") bytes += held.bytes;
  return bytes;
}

// A node "big", with what it reads.
struct Case {
  std::string node;
  std::vector<std::string> outputs;  // all that it makes
  std::uint64_t made;                // bytes

  std::string flow() const {
    return cat(
        R"({"image": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 255}},)",
        R"( "latent": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},)",
        R"( "big": )", node,
        R"(, "end": {"class_type": "Discard", "inputs": {"value": ["big", 0]}}})");
  }
  std::string refusal(const std::function<void()>& call) const {
    try {
      call();
    } catch (const heddle::EngineError& error) {
      BOOST_TEST(error.code() == HEDDLE_OUT_OF_MEMORY);
      return error.what();
    }
    return "";
  }
  // What the refusal says that the node needs.
  std::uint64_t need() const {
    heddle::Engine engine(options(kSource));
    const std::string text = refusal([&] { engine.plan(engine.parse(flow())); });
    std::smatch found;
    BOOST_TEST_REQUIRE(
        std::regex_search(text, found, std::regex(R"(needs at least .*\((\d+) bytes\))")), text);
    return std::stoull(found[1]);
  }
  void check() const {
    const std::uint64_t bytes = need();
    BOOST_TEST(bytes >= made);
    BOOST_TEST(bytes < made + made / 4 + kSource);  // a bounded rest beside the result
    {
      heddle::Engine engine(options(bytes - 1));
      std::atomic<int> started{0};
      const auto watch = [&](const heddle::Event& event) {
        if (event.kind == heddle::Event::Kind::node_started) ++started;
      };
      const heddle::Workflow workflow = engine.parse(flow());
      for (const std::string& text :
           {refusal([&] { engine.start(workflow, {.observer = watch}).wait(); }),
            refusal([&] { engine.plan_json(workflow); })})
        for (const std::string& part :
             {std::string("big"), std::string("out of memory on host: its budget is "),
              cat("(", bytes - 1, " bytes)"), cat("(", bytes, " bytes)"),
              std::string("--host-budget"), std::string("a smaller size")})
          BOOST_TEST(text.find(part) != std::string::npos, text << ": no " << part);
      BOOST_TEST(started == 0);
      BOOST_TEST(engine.plan_min_memory(workflow).find("big: ") != std::string::npos);
    }
    const std::uint64_t budget = bytes + kSource;
    heddle::Engine engine(options(budget));
    {
      std::vector<std::string> keep;
      for (const std::string& output : outputs) keep.push_back(cat("big.", output));
      const heddle::Results results = engine.start(engine.parse(flow()), {.fetch = keep}).wait();
      BOOST_TEST(values_in(engine.host_memory()) >= made);  // they are still ours
    }
    const heddle::MemoryReport report = engine.host_memory();
    BOOST_TEST(values_in(report) == 0u);
    BOOST_TEST(report.reserved == 0u);
    BOOST_TEST(report.peak >= made);
    BOOST_TEST(report.peak <= budget);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(host_budget)

BOOST_AUTO_TEST_CASE(holds_for_latents_that_are_made) {
  Case{
      R"({"class_type": "RandomLatent", "inputs": {"width": 1024, "height": 1024, "channels": 16, "seed": 1}})",
      {"LATENT"},
      16 * 128 * 128 * 4}
      .check();
  Case{
      R"({"class_type": "EmptyLatentImage", "inputs": {"width": 1024, "height": 1024, "batch_size": 5}})",
      {"LATENT"},
      5 * 4 * 128 * 128 * 4}
      .check();
  Case{
      R"({"class_type": "EmptySD3LatentImage", "inputs": {"width": 1024, "height": 1024, "batch_size": 2}})",
      {"LATENT"},
      2 * 16 * 128 * 128 * 4}
      .check();
}

BOOST_AUTO_TEST_CASE(holds_for_pictures_of_another_size) {
  for (const char* method : {"bilinear", "lanczos"})
    Case{
        cat(R"({"class_type": "ImageScale", "inputs": {"image": ["image", 0], "upscale_method": ")",
            method, R"(", "width": 512, "height": 640, "crop": "center"}})"),
        {"IMAGE"},
        512 * 640 * 3 * 4}
        .check();
  Case{
      R"({"class_type": "ImageScaleBy", "inputs": {"image": ["image", 0], "upscale_method": "area", "scale_by": 8}})",
      {"IMAGE"},
      128 * 128 * 3 * 4}
      .check();
  Case{
      R"({"class_type": "ImageScaleToTotalPixels", "inputs": {"image": ["image", 0], "upscale_method": "bicubic", "megapixels": 0.25}})",
      {"IMAGE"},
      512 * 512 * 3 * 4}
      .check();
  Case{
      R"({"class_type": "ImagePadForOutpaint", "inputs": {"image": ["image", 0], "left": 200, "top": 100, "right": 300, "bottom": 104, "feathering": 4}})",
      {"IMAGE", "MASK"},
      516 * 220 * 4 * 4}
      .check();
}

BOOST_AUTO_TEST_CASE(holds_for_latents_of_another_size) {
  Case{
      R"({"class_type": "LatentUpscale", "inputs": {"samples": ["latent", 0], "upscale_method": "bilinear", "width": 2048, "height": 1024, "crop": "disabled"}})",
      {"LATENT"},
      4 * 256 * 128 * 4}
      .check();
  Case{
      R"({"class_type": "LatentUpscaleBy", "inputs": {"samples": ["latent", 0], "upscale_method": "bicubic", "scale_by": 8}})",
      {"LATENT"},
      4 * 64 * 64 * 4}
      .check();
}

BOOST_AUTO_TEST_CASE(is_not_held_against_what_is_handed_on) {
  constexpr std::uint64_t kLatent = 4 * 128 * 128 * 4;
  heddle::Engine engine(options(kLatent + kSource));
  const auto flow = workflow(
      {{"latent",
        R"({"class_type": "EmptyLatentImage", "inputs": {"width": 1024, "height": 1024, "batch_size": 1}})"},
       {"same",
        R"({"class_type": "LatentUpscale", "inputs": {"samples": ["latent", 0], "upscale_method": "area", "width": 0, "height": 0, "crop": "disabled"}})"},
       {"part",
        R"({"class_type": "LatentFromBatch", "inputs": {"samples": ["same", 0], "batch_index": 0, "length": 1}})"},
       {"end", R"({"class_type": "Discard", "inputs": {"value": ["part", 0]}})"}});
  engine.start(engine.parse(flow)).wait();
  BOOST_TEST(engine.host_memory().peak == kLatent);
}

BOOST_AUTO_TEST_CASE(makes_kept_values_go) {
  constexpr std::uint64_t kLatent = 16 * 128 * 128 * 4;
  heddle::EngineOptions with_cache = options(kLatent + kLatent / 2);
  with_cache.cache_bytes = kPlenty;
  heddle::Engine engine(with_cache);
  for (int seed = 1; seed <= 3; ++seed) {
    const std::string node = cat(
        R"({"class_type": "RandomLatent", "inputs": {"width": 1024, "height": 1024, "channels": 16, "seed": )",
        seed, "}}");
    engine
        .start(engine.parse(workflow(
            {{"latent", node.c_str()},
             {"end", R"({"class_type": "Discard", "inputs": {"value": ["latent", 0]}})"}})))
        .wait();
    BOOST_TEST(values_in(engine.host_memory()) == kLatent);  // the last one is kept
  }
  BOOST_TEST(engine.host_memory().peak <= kLatent + kLatent / 2);
}

BOOST_AUTO_TEST_SUITE_END()
