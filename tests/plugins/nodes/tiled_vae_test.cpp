// VAEDecodeTiled, VAEEncodeTiled and VAEEncodeForInpaint over the tiny random autoencoder: what
// they tell before a run, what they refuse, and that memory goes by the tile. Their pictures are
// compared in tests/e2e/pipelines_test.cpp.
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
    options.compute = {{"cpu", "f32"}};
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

BOOST_AUTO_TEST_CASE(tiles_are_told_as_they_are_run) {
  check_inference(engine, flow(decoder(64, 16)));
  check_inference(engine, flow(encoder(64, 16)));
  check_inference(engine, flow(inpaint("shape", 7)));
}

BOOST_AUTO_TEST_CASE(one_tile_that_covers_everything_is_the_whole_picture) {
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
  const auto least = [&](int side, const std::string& type, const std::string& rest) {
    const std::string text =
        flow(cat(R"("latent": {"class_type": "EmptyLatentImage", "inputs": {"width": )", side,
                 R"(, "height": )", side, R"(, "batch_size": 1}}, "out": {"class_type": ")", type,
                 R"(", "inputs": {"samples": ["latent", 0], "vae": ["loader", 2])", rest, "}}"));
    const engine::Json told =
        engine::parse_json(fake.plan_min_memory(fake.parse(text), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        return std::int64_t(told.at(i).at("min_bytes").as_uint64());
    throw std::logic_error("no least is told of fake:0");
  };
  const std::string tiles =
      R"(, "tile_size": 64, "overlap": 16, "temporal_size": 64, "temporal_overlap": 8)";
  const auto growth = [&](const std::string& type, const std::string& rest) {
    return least(1024, type, rest) - least(512, type, rest);
  };
  const std::int64_t by_tiles = growth("VAEDecodeTiled", tiles), whole = growth("VAEDecode", "");
  BOOST_TEST(by_tiles < whole / 2, by_tiles << " of " << whole);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
