// Stable Zero123: a thing of a picture, seen from elsewhere, against PyTorch
// (../goldens/make_zero123_goldens.py).
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct ViewWorkflow : UnetWorkflow {
  heddle::Engine views{view_options()};  // finds the picture, and what was saved

  ViewWorkflow() {
    expected = TensorFile(tests_folder() / "plugins/goldens/zero123/expected.safetensors");
    std::filesystem::create_directories(folder / "out/checkpoints");
    std::filesystem::create_symlink(folder / "out/checkpoints", folder / "models/checkpoints");
    add_unet("pix2pix");
    add("", {seeded_tensor("cc_projection.weight", {64, 68}),
             seeded_tensor("cc_projection.bias", {64})});
    add("", as_open_clip(seeded_model("tower", false, "unclip"), "cond_stage_model.model.visual."));
    write_file("checkpoints/drawn", checkpoint);
  }
  heddle::EngineOptions view_options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.input_dir = tests_folder() / "plugins/goldens/edit";
    options.output_dir = folder / "out";
    return options;
  }
  static std::string view_loader(const std::string& file = "drawn.safetensors") {
    return node("model", "ImageOnlyCheckpointLoader", cat(R"("ckpt_name": ")", file, "\""));
  }
  static std::string view(const char* type, const char* more) {
    return node("load", "LoadImage", R"("image": "one.png")") +
           node("told", type,
                cat(R"("clip_vision": ["model", 1], "init_image": ["load", 0], "vae": ["model", 2],
                       "width": 80, "height": 48, "elevation": 10.0, "azimuth": 40.0, )",
                    more)) +
           "\"drawn\": " +
           ksampler(
               sampler("3.0", "euler", "normal") +
               R"(, "positive": ["told", 0], "negative": ["told", 1], "latent_image": ["told", 2])") +
           ", " + node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
           node("look", "test.look", R"("value": ["drawn", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})";
  }
  static std::string one_view() { return view("StableZero123_Conditioning", R"("batch_size": 1)"); }
  heddle::Results draw(const std::string& nodes) {
    return views.start(views.parse("{" + nodes + "}"), {{}, {"drawn.LATENT", "picture.IMAGE"}})
        .wait();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(zero123, ViewWorkflow)

BOOST_AUTO_TEST_CASE(a_view_equals_pytorch) {
  const std::string flow = view_loader() + one_view();
  const heddle::Results results = draw(flow);
  same(results.floats("drawn.LATENT", "samples"), "view.latent");
  same(few(results.floats("picture.IMAGE", "")), "view.picture");
  heddle::Engine::Data other(view_options());
  check_inference(other, "{" + flow + "}");
}

// The UNet's weights are 3 MB.
BOOST_AUTO_TEST_CASE(a_view_has_the_same_bytes_wherever_it_is_drawn) {
  same_where_placed(view_options(), "{" + view_loader() + one_view() + "}", "KSampler", 2 << 20,
                    {{"drawn.LATENT", "samples"}, {"picture.IMAGE", ""}});
}

BOOST_AUTO_TEST_CASE(views_of_a_batch_equal_pytorch, *boost::unit_test::label("long")) {
  const std::string flow =
      view_loader() + view("StableZero123_Conditioning_Batched",
                           R"("batch_size": 2, "elevation_batch_increment": 5.0,
                              "azimuth_batch_increment": 30.0)");
  same(draw(flow).floats("drawn.LATENT", "samples"), "views.latent");
  heddle::Engine::Data other(view_options());
  check_inference(other, "{" + flow + "}");
}

// The matrix stands beside the UNet again.
BOOST_AUTO_TEST_CASE(what_is_saved_draws_the_same_view, *boost::unit_test::label("long")) {
  const std::vector<float> given =
      draw(view_loader() +
           node("save", "ImageOnlyCheckpointSave",
                R"("model": ["model", 0], "clip_vision": ["model", 1], "vae": ["model", 2],
                   "filename_prefix": "checkpoints/saved")") +
           one_view())
          .floats("drawn.LATENT", "samples");
  const engine::Checkpoint saved =
      engine::open_checkpoint(folder / "out/checkpoints/saved_00001_.safetensors");
  BOOST_TEST(saved.find("cc_projection.weight") != nullptr);
  BOOST_TEST((draw(view_loader("saved_00001_.safetensors") + one_view())
                  .floats("drawn.LATENT", "samples") == given));
}

BOOST_AUTO_TEST_CASE(a_text_of_another_width_is_refused_by_it) {
  write_file("clip_vision/narrow", [] {
    std::vector<FileTensor> narrow = seeded_model("tower", false, "unclip");
    for (FileTensor& tensor : narrow)
      if (tensor.name == "visual_projection.weight") tensor = seeded_tensor(tensor.name, {32, 64});
    return narrow;
  }());
  std::string flow = view_loader() +
                     node("narrow", "CLIPVisionLoader", R"("clip_name": "narrow.safetensors")") +
                     one_view();
  const std::string link = R"("clip_vision": ["model", 1])";
  flow.replace(flow.find(link), link.size(), R"("clip_vision": ["narrow", 0])");
  const std::string why = engine_refusal([&] { draw(flow); });
  for (const char* words : {"'cross_attn' is 36 wide", "reads 64"})
    BOOST_TEST(why.find(words) != std::string::npos, "'" << words << "' is not in: " << why);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
