// Upscalers that attend to themselves with weights that follow from their names, through the
// engine, against what spandrel makes of the same ones
// (../goldens/make_window_upscaler_goldens.py).
#include <algorithm>
#include <cmath>

#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kWindowTolerance = 1e-5;

// The distances of tokens in a window of DAT, which tell its sides.
FileTensor distances(int height, int width) {
  std::vector<float> numbers;
  for (int y = 1 - height; y < height; ++y)
    for (int x = 1 - width; x < width; ++x) numbers.insert(numbers.end(), {float(y), float(x)});
  return {"layers.0.blocks.0.attn.attns.0.rpe_biases",
          "F32",
          {std::int64_t(numbers.size() / 2), 2},
          bytes_of_floats(numbers)};
}

struct WindowUpscalerFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path folder = tests_folder() / "plugins/goldens/window_upscalers";

  void compare(const std::string& family, const std::string& name,
               const std::vector<FileTensor>& added = {}) {
    const std::filesystem::path golden = folder / (family + ".safetensors"),
                                file = temporary / (name + ".pth");
    const TensorFile expected{golden};
    std::vector<FileTensor> tensors = seeded_model(name, false, "window_upscalers");
    tensors.insert(tensors.end(), added.begin(), added.end());
    write_pytorch(file, tensors, "params_ema");
    for (const std::string size : {".0", ".1"}) {
      const heddle::Results results = probe.call({file, "upscaler", "", golden, name + size + "."});
      const double error = relative_error(results.floats("model.outputs", "image.0"),
                                          expected.floats(name + size + ".out"));
      BOOST_TEST_MESSAGE(name << size << ": relative error " << error);
      BOOST_TEST(error < kWindowTolerance, name << size << ": relative error " << error);
    }
  }
  std::string refusal(const std::vector<FileTensor>& tensors) {
    const std::filesystem::path file = temporary / "model.safetensors";
    write_safetensors(file, tensors);
    return engine_refusal([&] {
      probe.call({file, "upscaler", "", folder / "swinir.safetensors", "swin_shuffle_x2.0."});
    });
  }
  // A model with this shape for a tensor; empty: without it.
  static std::vector<FileTensor> with(const char* model, const std::string& name,
                                      const std::vector<std::int64_t>& shape) {
    std::vector<FileTensor> tensors = seeded_model(model, false, "window_upscalers");
    std::erase_if(tensors, [&](const FileTensor& t) { return t.name == name; });
    const bool is_none = std::ranges::count(shape, 0) > 0;
    if (!shape.empty())
      tensors.push_back(is_none ? FileTensor{name, "F32", shape, ""} : seeded_tensor(name, shape));
    return tensors;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(window_upscalers, WindowUpscalerFixture)

BOOST_AUTO_TEST_CASE(span_makes_what_spandrel_makes) {
  for (const char* name : {"span_x2", "span_plain_x4"}) compare("span", name);
}

BOOST_AUTO_TEST_CASE(swinir_enlarges_in_all_ways_of_its_files) {
  for (const char* name : {"swin_shuffle_x2", "swin_direct_x3", "swin_real_x4",
                           "swin_unshuffled_x2", "swin_jpeg_x1", "swin_noise_x1"})
    compare("swinir", name);
}

BOOST_AUTO_TEST_CASE(hat_makes_what_spandrel_makes) {
  for (const char* name : {"hat_x2", "hat_wide_x3"}) compare("hat", name);
}

BOOST_AUTO_TEST_CASE(dat_makes_what_spandrel_makes) {
  compare("dat", "dat_x2", {distances(4, 8)});
  compare("dat", "dat_light_x3", {distances(8, 8)});
}

BOOST_AUTO_TEST_CASE(plksr_makes_what_spandrel_makes) {
  for (const char* name : {"plksr_x2", "plksr_real_x4", "plksr_normed_x2"}) compare("plksr", name);
  std::vector<FileTensor> sampled = seeded_model("plksr_real_x4", false, "window_upscalers");
  sampled.push_back(seeded_tensor("to_img.init_pos", {1, 32, 1, 1}));
  BOOST_TEST(refusal(sampled).find("this PLKSR has 'to_img.init_pos'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_are_refused) {
  const auto changed = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    return refusal(with("swin_shuffle_x2", name, shape));
  };
  const std::string block = "layers.1.residual_group.blocks.0.";
  BOOST_TEST(changed(block + "attn.proj.weight", {}).find("'" + block + "attn.proj.weight'") !=
             std::string::npos);
  BOOST_TEST(changed("layers.0.residual_group.blocks.0.attn.relative_position_bias_table", {224, 2})
                 .find("has 224 rows, which are those of no square window") != std::string::npos);
  BOOST_TEST(changed(block + "attn.relative_position_bias_table", {225, 5})
                 .find("has 5 heads for 12 channels") != std::string::npos);
  BOOST_TEST(
      changed("upsample.0.weight", {200, 64, 3, 3}).find("'upsample.0' makes 200 channels") !=
      std::string::npos);
  BOOST_TEST(changed("absolute_pos_embed", {1, 64, 12}).find("pictures of one size only") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(sizes_by_which_nothing_can_be_divided_are_refused_by_name) {
  const auto says = [](const std::string& text, const std::string& words) {
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(refusal(with("swin_shuffle_x2", "upsample.0.weight", {64, 0, 3, 3})),
       "'upsample.0' makes 64 channels of 0");
  says(refusal(with("swin_direct_x3", "conv_first.weight", {12, 0, 3, 3})),
       "'conv_first.weight' has shape (12, 0, 3, 3), which holds no numbers");
  // What a window of DAT is read from.
  const std::string table = distances(2, 2).name;
  says(refusal(with("dat_x2", table, {0, 2})), "'" + table + "' does not hold two numbers");
  says(refusal(with("dat_x2", table, {1, 1})), "'" + table + "' does not hold two numbers");
  std::vector<FileTensor> unknown = with("dat_x2", table, {});
  unknown.push_back({table, "F32", {3, 2}, bytes_of_floats({0, 0, 0, 0, NAN, 1e30f})});
  says(refusal(unknown), "has 3 rows, which are not the distances in windows of 0 x 0");
}

BOOST_AUTO_TEST_CASE(pictures_do_not_become_larger_without_end) {
  std::vector<FileTensor> tensors = seeded_model("swin_shuffle_x2", false, "window_upscalers");
  for (int i = 2; i < 70; i += 2) {
    const std::string module = "upsample." + std::to_string(i);
    tensors.push_back(seeded_tensor(module + ".weight", {16, 1, 1, 1}));
    tensors.push_back(seeded_tensor(module + ".bias", {16}));
  }
  BOOST_TEST(refusal(tensors).find("enlarge a picture by 32768 times 4 or more") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
