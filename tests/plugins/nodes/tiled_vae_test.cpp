// VAEDecodeTiled, VAEEncodeTiled and VAEEncodeForInpaint over the tiny random autoencoder: what
// they tell before a run, what they refuse, and that memory goes by the tile. Their pictures are
// compared in tests/e2e/pipelines_test.cpp.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct TiledFixture {
  NodeFixture nodes;  // its folder of models
  Engine::Data engine{options()};

  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(nodes.folder / "models");
    options.output_dir = nodes.folder / "told";
    return options;
  }

  static std::string flow(const std::string& more) {
    return R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 150, "height": 101, "batch_size": 2, "color": 255}},
      "shape": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 40, "height": 30}}, )" +
           more + ", " + NodeFixture::kLook + "}";
  }
  static std::string decoder(int tile, int overlap) {
    return cat(
        R"("latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2]}},
      "out": {"class_type": "VAEDecodeTiled", "inputs": {"samples": ["latent", 0], "vae": ["loader", 2], "tile_size": )",
        tile, R"(, "overlap": )", overlap, R"(, "temporal_size": 64, "temporal_overlap": 8}})");
  }
  static std::string encoder(int tile, int overlap) {
    return cat(
        R"("out": {"class_type": "VAEEncodeTiled", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2],
      "tile_size": )",
        tile, R"(, "overlap": )", overlap, R"(, "temporal_size": 64, "temporal_overlap": 8}})");
  }
  static std::string inpaint(const std::string& mask, int grow) {
    return cat(
        R"("out": {"class_type": "VAEEncodeForInpaint", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2],
      "mask": [")",
        mask, R"(", 0], "grow_mask_by": )", grow, "}}");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tiled_vae, TiledFixture)

BOOST_AUTO_TEST_CASE(tiles_are_told_as_they_are_run, *boost::unit_test::label("long")) {
  check_inference(engine, flow(decoder(64, 16)));
  check_inference(engine, flow(encoder(64, 16)));
  check_inference(engine, flow(inpaint("shape", 7)));
}

BOOST_AUTO_TEST_CASE(one_tile_that_covers_everything_is_the_whole_picture,
                     *boost::unit_test::label("long")) {
  const auto whole = nodes.run_whole(
      flow(
          R"("latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2]}},
        "out": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["loader", 2]}})"),
      {"out.IMAGE", "latent.LATENT"});
  const auto decoded = nodes.run_whole(flow(decoder(4096, 64)), {"out.IMAGE"});
  // The mean of three equal numbers, rounded.
  BOOST_TEST(relative_error(decoded.floats("out.IMAGE"), whole.floats("out.IMAGE")) < 1e-6);
  const auto encoded = nodes.run_whole(flow(encoder(4096, 64)), {"out.LATENT"});
  BOOST_TEST(relative_error(encoded.floats("out.LATENT", "samples"),
                            whole.floats("latent.LATENT", "samples")) < 1e-6);
}

BOOST_AUTO_TEST_CASE(an_overlap_that_leaves_no_step_is_refused) {
  const std::string text =
      engine_refusal([&] { nodes.run_whole(flow(encoder(64, 64)), {"out.LATENT"}); });
  BOOST_TEST(text.find("overlap: tiles with a side of") != std::string::npos, text);
  BOOST_TEST(text.find("'out'") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(masks_for_inpainting_grow_by_a_square_and_go_with_their_pictures) {
  const std::string mask =
      R"("nothing": {"class_type": "SolidMask", "inputs": {"value": 0.0, "width": 150, "height": 101}},
         "dot": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 1, "height": 1}},
         "dots": {"class_type": "MaskComposite", "inputs": {"destination": ["nothing", 0], "source": ["dot", 0], "x": 70,
           "y": 50, "operation": "add"}}, )";
  const auto results = nodes.run_whole(flow(mask + inpaint("dots", 4)), {"out.LATENT"});
  const auto shape = results.shape("out.LATENT", "noise_mask");
  BOOST_TEST_REQUIRE(shape.size() == 4u);
  const std::int64_t height = shape[2], width = shape[3];
  BOOST_TEST(shape[0] == 1);
  BOOST_TEST(shape[1] == 1);
  const std::vector<float> grown = results.floats("out.LATENT", "noise_mask");
  // What whole cells cover begins half of the rest further in.
  const std::int64_t top = (101 - height) / 2, left = (150 - width) / 2;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t dy = y - (50 - top), dx = x - (70 - left);
      const bool is_near = dy >= -1 && dy <= 2 && dx >= -1 && dx <= 2;
      BOOST_TEST_REQUIRE((grown[std::size_t(y * width + x)] == (is_near ? 1.0f : 0.0f)),
                         x << ", " << y);
    }
}

// Of pictures four times as large a tile takes as much; what grows is the picture itself.
BOOST_AUTO_TEST_CASE(memory_goes_by_the_tile_and_not_by_the_picture) {
  EngineOptions on_fake = fake_engine_options({"fake:0"});
  on_fake.compute = {{"fake", "f32"}};
  on_fake.model_dirs = {nodes.folder / "models"};
  on_fake.output_dir = nodes.folder / "told";
  Engine fake(on_fake);
  // What the node needs: the least, or that with which it does all at once.
  const auto need = [&](int side, const std::string& type, const std::string& rest,
                        const char* which) {
    const std::string text =
        flow(cat(R"("latent": {"class_type": "EmptyLatentImage", "inputs": {"width": )", side,
                 R"(, "height": )", side, R"(, "batch_size": 1}}, "out": {"class_type": ")", type,
                 R"(", "inputs": {"samples": ["latent", 0], "vae": ["loader", 2])", rest, "}}"));
    const engine::Json told =
        engine::parse_json(fake.plan_min_memory(fake.parse(text), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        for (const engine::Json& node : told.at(i).at("nodes").as_array())
          if (node.at("node").as_string() == "out") return std::int64_t(node.at(which).as_uint64());
    throw std::logic_error("nothing is told of fake:0");
  };
  const std::string tiles =
      R"(, "tile_size": 64, "overlap": 16, "temporal_size": 64, "temporal_overlap": 8)";
  const auto growth = [&](const std::string& type, const std::string& rest, const char* which) {
    return need(1024, type, rest, which) - need(512, type, rest, which);
  };
  const std::int64_t by_tiles = growth("VAEDecodeTiled", tiles, "min_bytes"),
                     whole = growth("VAEDecode", "", "all_bytes");
  BOOST_TEST(by_tiles < whole / 2, by_tiles << " of " << whole);
  // So it is where the whole finds no room.
  BOOST_TEST(growth("VAEDecode", "", "tiled_min_bytes") < whole / 2);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

// A decode on a device of which another program may take most. What is decoded comes from the CPU.
struct CrowdedFixture : TiledFixture {
  // A 64th of it, which small pieces share, is little beside what a decode takes, as on real
  // devices.
  static constexpr std::uint64_t kMemory = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kLatentBytes = 192 << 10;
  FakeControl control;

  EngineOptions crowded_options() const {
    EngineOptions options = fake_engine_options({"fake:0", "cpu:0"}, R"({"memory": 8388608})");
    options.compute = {{"fake", "f32"}, {"cpu", "f32"}};
    options.model_dirs = {nodes.folder / "models"};
    options.output_dir = nodes.folder / "crowded";
    options.reserves["fake:0"] = std::uint64_t{0};
    options.memory_poll_seconds = 0;
    return options;
  }
  static std::string decode(const std::string& type, const std::string& rest) {
    return cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 160, "height": 128, "batch_size": 1, "color": 7812345}},
      "latent": {"class_type": "VAEEncode", "device": "cpu:0", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2]}},
      "out": {"class_type": ")",
        type, R"(", "device": "fake:0", "inputs": {"samples": ["latent", 0], "vae": ["loader", 2])",
        rest, R"(}},
      "inverted": {"class_type": "ImageInvert", "device": "cpu:0", "inputs": {"image": ["out", 0]}},
      "shown": {"class_type": "test.look", "inputs": {"value": ["inverted", 0]}}, )",
        NodeFixture::kLook, "}");
  }
  static std::string whole() { return decode("VAEDecode", ""); }
  static std::string tiled(std::int64_t size) {
    return decode("VAEDecodeTiled", cat(R"(, "tile_size": )", size, R"(, "overlap": )", size / 4,
                                        R"(, "temporal_size": 64, "temporal_overlap": 8)"));
  }
  // Bytes of the fake device with which the whole cannot be decoded, but tiles can.
  static std::uint64_t room_for_tiles(Engine& engine) {
    const engine::Json told =
        engine::parse_json(engine.plan_min_memory(engine.parse(whole()), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i) {
      const engine::Json& device = told.at(i);
      if (device.at("device").as_string() != "fake:0") continue;
      for (const engine::Json& node : device.at("nodes").as_array()) {
        if (node.at("node").as_string() != "out") continue;
        const std::uint64_t least = node.at("tiled_min_bytes").as_uint64(),
                            all = node.at("all_bytes").as_uint64();
        BOOST_TEST_REQUIRE(least < all / 2);
        return least + (all - least) / 4;
      }
    }
    throw std::logic_error("no least is told of fake:0");
  }

  struct Done {
    std::vector<float> picture, inverted;
    std::vector<std::string> warnings, computed;              // computed: nodes
    std::map<std::string, std::vector<std::string>> devices;  // of each start, by node
  };
  static Done run(Engine& engine, const std::string& flow,
                  const std::function<void(const Event&)>& more = {}) {
    Done done;
    std::mutex mutex;
    const auto observe = [&](const Event& event) {
      const std::lock_guard lock(mutex);
      if (more) more(event);
      if (event.kind == Event::Kind::warning && event.node == "out")
        done.warnings.emplace_back(event.text);
      if (event.kind != Event::Kind::node_started) return;
      done.computed.emplace_back(event.node);
      done.devices[std::string(event.node)].emplace_back(event.device);
    };
    Run run = engine.start(engine.parse(flow),
                           {.observer = observe, .fetch = {"out.IMAGE", "inverted.IMAGE"}});
    const Results results = run.wait();
    done.picture = results.floats("out.IMAGE");
    done.inverted = results.floats("inverted.IMAGE");
    return done;
  }
  static bool computed(const Done& done, const std::string& node) {
    return std::ranges::find(done.computed, node) != done.computed.end();
  }
  static std::int64_t tile_of(const std::string& warning) {
    const std::string before = "in tiles of ";
    const std::size_t at = warning.find(before);
    return at == std::string::npos ? 0 : std::stoll(warning.substr(at + before.size()));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(decode_without_room, CrowdedFixture)

BOOST_AUTO_TEST_CASE(a_decode_that_finds_no_room_is_done_in_tiles_and_is_not_cached,
                     *boost::unit_test::label("long")) {
  Engine crowded(crowded_options());
  const std::uint64_t room = room_for_tiles(crowded);
  BOOST_TEST_REQUIRE(room < kMemory);
  control->set_foreign_bytes(0, kMemory - room);
  const Done in_tiles = run(crowded, whole());
  BOOST_TEST_REQUIRE(!in_tiles.warnings.empty());
  BOOST_TEST(in_tiles.warnings.back().find("out of memory") != std::string::npos,
             in_tiles.warnings.back());
  const std::int64_t size = tile_of(in_tiles.warnings.back());
  BOOST_TEST_REQUIRE(size > 0);
  BOOST_TEST((run(crowded, tiled(size)).picture == in_tiles.picture));
  // Nothing of it is kept, nor of what was made of it: with room it is what it always is.
  control->set_foreign_bytes(0, 0);
  const Done with_room = run(crowded, whole());
  BOOST_TEST(with_room.warnings.empty());
  BOOST_TEST(!computed(with_room, "latent"));
  BOOST_TEST(computed(with_room, "out"));
  BOOST_TEST(computed(with_room, "inverted"));
  Engine roomy(crowded_options());
  const Done good = run(roomy, whole());
  BOOST_TEST((with_room.picture == good.picture));
  BOOST_TEST((with_room.inverted == good.inverted));
  BOOST_TEST((in_tiles.picture != good.picture));
  BOOST_TEST(relative_error(in_tiles.picture, good.picture) < 0.5);
  BOOST_TEST(!computed(run(crowded, whole()), "out"));  // and that is kept
}

BOOST_AUTO_TEST_CASE(a_budget_that_only_tiles_keep_is_not_refused_before_the_run,
                     *boost::unit_test::label("long")) {
  EngineOptions small = crowded_options();
  {
    Engine engine(crowded_options());
    small.budgets["fake:0"] = room_for_tiles(engine);
  }
  Engine engine(small);
  const std::string plan = engine.plan(engine.parse(whole()));
  BOOST_TEST(plan.find("it calls it in tiles") != std::string::npos, plan);
  const Done done = run(engine, whole());
  BOOST_TEST(!done.warnings.empty());
  BOOST_TEST(control->peak_bytes(0) <= small.budgets["fake:0"].bytes);
}

// The other program comes when the run has been placed.
BOOST_AUTO_TEST_CASE(where_not_even_tiles_have_room_another_device_decodes_the_whole,
                     *boost::unit_test::label("long")) {
  EngineOptions two = crowded_options();
  two.devices = {"fake:0", "fake:1", "cpu:0"};
  two.cache_bytes = 1;
  std::string flow = whole();
  const std::string hint = R"("device": "fake:0", )";
  flow.replace(flow.find(hint), hint.size(), R"("prefer": "fake:0", )");
  Engine engine(two);
  const Done good = run(engine, flow);
  BOOST_TEST(good.devices.at("out") == std::vector<std::string>{"fake:0"},
             boost::test_tools::per_element());
  engine.unload("fake");
  const Done moved = run(engine, flow, [&](const Event& event) {
    if (event.kind == Event::Kind::node_started && event.node == "latent")
      control->set_foreign_bytes(0, kMemory - kLatentBytes - (32 << 10));
  });
  BOOST_TEST((moved.picture == good.picture));
  BOOST_TEST(!moved.warnings.empty());
  BOOST_TEST(moved.devices.at("out") == (std::vector<std::string>{"fake:0", "fake:1"}),
             boost::test_tools::per_element());
  BOOST_TEST(moved.devices.at("latent").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_budget_that_not_even_tiles_keep_is_refused_before_the_run) {
  EngineOptions small = crowded_options();
  small.budgets["fake:0"] = std::uint64_t{64} << 10;
  Engine engine(small);
  const std::string text = engine_refusal([&] { run(engine, whole()); });
  BOOST_TEST(text.find("and the node needs at least") != std::string::npos, text);
  BOOST_TEST(text.find("in tiles") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(where_not_even_the_smallest_tile_has_room_the_error_is_typed) {
  EngineOptions none = crowded_options();
  none.devices = {"fake:0"};
  none.compute = {{"fake", "f32"}};
  Engine engine(none);
  control->set_foreign_bytes(0, kMemory - 4096);
  std::string flow = whole();
  for (std::size_t at; (at = flow.find("cpu:0")) != std::string::npos;)
    flow.replace(at, 5, "fake:0");
  try {
    run(engine, flow);
    BOOST_TEST(false, "it ran with 4 KiB");
  } catch (const EngineError& error) {
    BOOST_TEST(error.code() == HEDDLE_OUT_OF_MEMORY, error.what());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
