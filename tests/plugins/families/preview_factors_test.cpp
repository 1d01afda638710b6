// How latents of videos look without being decoded: models of published sizes say it by the
// constants of ComfyUI's latent formats, which are from -1 to 1, as numbers from 0 to 1.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "engine/base/json.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

namespace heddle::test {
namespace {

struct PreviewedFile {
  const char* name;
  std::size_t channels;
  double first[3], middle[3], last[3], added[3];  // of the middle channel, and what all are given
};
constexpr PreviewedFile kPreviewed[] = {{"wan2.1_t2v_1.3B_fp16",
                                         16,
                                         {-0.1299, -0.1692, 0.2932},
                                         {-0.0412, 0.0267, -0.1364},
                                         {0.1984, 0.0913, 0.1861},
                                         {-0.1835, -0.0868, -0.3360}},
                                        {"wan2.2_ti2v_5B_fp16",
                                         48,
                                         {0.0119, 0.0103, 0.0046},
                                         {0.0313, -0.0574, -0.0232},
                                         {-0.0837, 0.0168, 0.0055},
                                         {0.0317, -0.0878, -0.1388}},
                                        {"ltxv-13b-0.9.7-dev",
                                         128,
                                         {1.1202e-02, -6.3815e-04, -1.0021e-02},
                                         {4.4216e-03, -7.3338e-03, -1.0464e-02},
                                         {-1.4605e-02, -6.7032e-03, 3.9675e-03},
                                         {-0.0571, -0.1657, -0.2512}},
                                        {"ltx-2.5-22b-distilled-transformer-bf16",
                                         128,
                                         {0.001135, -0.010555, -0.004925},
                                         {-0.032623, -0.006105, 0.010436},
                                         {-0.019355, -0.021055, -0.021919},
                                         {-0.347892, -0.363814, -0.370287}},
                                        {"hunyuan_video_t2v_720p_bf16",
                                         16,
                                         {-0.0395, -0.0331, 0.0445},
                                         {-0.0696, -0.0595, -0.0894},
                                         {0.0249, -0.0469, -0.1703},
                                         {0.0259, -0.0192, -0.0761}},
                                        {"hunyuanvideo1.5_720p_t2v_fp16",
                                         32,
                                         {0.0568, -0.0521, -0.0131},
                                         {0.0261, -0.0300, 0.0030},
                                         {0.0005, -0.0106, 0.0242},
                                         {0.0456, -0.0202, -0.0644}},
                                        {"minimax_h3_fl2va_pruned_bf16",
                                         24,
                                         {-0.018555, 0.024344, -0.017536},
                                         {0.022609, 0.020286, 0.050661},
                                         {0.004224, 0.017284, 0.027196},
                                         {0.057426, -0.022078, -0.071449}}};

struct PreviewedFixture {
  TemporaryFolder folder;
  engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR});
  engine::Json told = engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");

  engine::Json settings(const std::string& name) const {
    const std::filesystem::path path = folder / "file.safetensors";
    write_header_only(path, true_tensors(told.at("diffusion_models/" + name)));
    const engine::Value model = engine::build_model(*plugins.catalog, "diffusion_model",
                                                    engine::open_checkpoint(path), nullptr, {});
    return engine::to_json(*engine::get_model(*model)->settings);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(preview_factors, PreviewedFixture)

BOOST_AUTO_TEST_CASE(latents_of_videos_are_previewed_by_their_factors) {
  for (const PreviewedFile& file : kPreviewed) BOOST_TEST_CONTEXT(file.name) {
      const engine::Json all = settings(file.name);
      const std::vector<engine::Json>& rows = all.at("preview_factors").as_array();
      BOOST_TEST_REQUIRE(rows.size() == file.channels + 1);
      const auto holds = [&](std::size_t row, const double(&wanted)[3], double offset) {
        for (std::size_t c = 0; c < 3; ++c)
          BOOST_TEST(
              std::abs(rows[row].as_array()[c].as_double() - (wanted[c] + offset) / 2) < 1e-12,
              "row " << row << ", colour " << c);
      };
      holds(0, file.first, 0);
      holds(file.channels / 2, file.middle, 0);
      holds(file.channels - 1, file.last, 0);
      holds(file.channels, file.added, 1);
    }
}

// ComfyUI has none for these latents.
BOOST_AUTO_TEST_CASE(seedvr2_is_not_previewed) {
  BOOST_TEST(settings("seedvr2_3b_fp16").find("preview_factors") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
