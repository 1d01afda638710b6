// Videos of Stable Video Diffusion and SV3D from a picture, out of one checkpoint, against PyTorch
// (../goldens/make_svd_goldens.py).
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/svd_models.h"

namespace heddle::test {
namespace {

using engine::cat;

struct SvdWorkflow : UnetWorkflow {
  heddle::Engine videos{svd_options()};  // finds the picture, and what was saved

  SvdWorkflow() {
    expected = TensorFile(tests_folder() / "plugins/goldens/svd/expected.safetensors");
    std::filesystem::create_directories(folder / "out/checkpoints");
    std::filesystem::create_symlink(folder / "out/checkpoints", folder / "models/checkpoints");
    write_svd(true);
  }
  heddle::EngineOptions svd_options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.input_dir = tests_folder() / "plugins/goldens/edit";
    options.output_dir = folder / "out";
    return options;
  }
  // As published: all names the original ones.
  void write_svd(bool has_tower) {
    checkpoint.clear();
    std::vector<FileTensor> unet = svd_model("unet"), vae = svd_model("vae");
    name_svd_as_original(unet, "model.diffusion_model.");
    name_svd_vae_as_original(vae, "first_stage_model.");
    add("", std::move(unet));
    add("", std::move(vae));
    if (has_tower)
      add("", as_open_clip(seeded_model("tower", false, "unclip"),
                           "conditioner.embedders.0.open_clip.model.visual."));
    write_file("checkpoints/drawn", checkpoint);
  }
  // With two autoencoders, of which the second draws pictures.
  void write_sv3d() {
    checkpoint.clear();
    std::vector<FileTensor> unet = sv3d_unet(1280), vae = svd_model("vae");
    name_svd_as_original(unet, "model.diffusion_model.");
    name_svd_vae_as_original(vae, "first_stage_model.");
    add("", std::move(unet));
    add("", std::move(vae));
    add("conditioner.embedders.1.encoder.", unet_model("vae"));
    add("", as_open_clip(seeded_model("tower", false, "unclip"),
                         "conditioner.embedders.0.open_clip.model.visual."));
    write_file("checkpoints/drawn", checkpoint);
  }
  static std::string svd_loader(const std::string& file = "drawn.safetensors") {
    return node("model", "ImageOnlyCheckpointLoader", cat(R"("ckpt_name": ")", file, "\""));
  }
  static std::string picture(const char* noise = "0.0") {
    return node("load", "LoadImage", R"("image": "one.png")") +
           node("told", "SVD_img2vid_Conditioning",
                cat(R"("clip_vision": ["model", 1], "init_image": ["load", 0], "vae": ["model", 2],
                       "width": 80, "height": 48, "video_frames": 5, "motion_bucket_id": 120,
                       "fps": 8, "augmentation_level": )",
                    noise));
  }
  static std::string video(const char* guidance = "VideoLinearCFGGuidance", int steps = 4) {
    return node("guided", guidance, R"("model": ["model", 0], "min_cfg": 1.0)") + "\"drawn\": " +
           ksampler(sampler("2.5", "euler", "karras", steps) +
                    R"(, "model": ["guided", 0], "positive": ["told", 0], "negative": ["told", 1],
                        "latent_image": ["told", 2])") +
           ", " + node("frames", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
           node("look", "test.look", R"("value": ["drawn", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["frames", 0]}})";
  }
  heddle::Results draw(const std::string& nodes) {
    return videos.start(videos.parse("{" + nodes + "}"), {{}, {"drawn.LATENT", "frames.IMAGE"}})
        .wait();
  }
  std::string svd_refusal(const std::string& nodes) {
    return engine_refusal([&] { draw(nodes); });
  }
};

// Every fifth pixel of every fifth row of each frame.
std::vector<float> few_of_frames(const std::vector<float>& frames) {
  constexpr std::size_t kFrame = 48 * 80 * 3;
  std::vector<float> found;
  for (std::size_t begin = 0; begin < frames.size(); begin += kFrame) {
    const std::vector<float> some = UnetWorkflow::few(
        {frames.begin() + std::ptrdiff_t(begin), frames.begin() + std::ptrdiff_t(begin + kFrame)});
    found.insert(found.end(), some.begin(), some.end());
  }
  return found;
}

void svd_tells(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(svd_workflows, SvdWorkflow)

BOOST_AUTO_TEST_CASE(a_video_from_a_picture_equals_pytorch) {
  const std::string flow = svd_loader() + picture() + video();
  const heddle::Results results = draw(flow);
  same(results.floats("drawn.LATENT", "samples"), "drawn.latent");
  same(few_of_frames(results.floats("frames.IMAGE", "")), "drawn.picture");
  heddle::Engine::Data other(svd_options());
  check_inference(other, "{" + flow + "}");
}

BOOST_AUTO_TEST_CASE(the_guidance_may_rise_to_the_middle, *boost::unit_test::label("long")) {
  same(draw(svd_loader() + picture() + video("VideoTriangleCFGGuidance"))
           .floats("drawn.LATENT", "samples"),
       "triangle.latent");
}

// Under the names of the published file; loaded again it draws the same.
BOOST_AUTO_TEST_CASE(what_is_saved_draws_the_same) {
  const std::string saving =
      node("save", "ImageOnlyCheckpointSave",
           R"("model": ["model", 0], "clip_vision": ["model", 1], "vae": ["model", 2],
              "filename_prefix": "checkpoints/saved")");
  const auto latent = [&](const heddle::Results& results) {
    return results.floats("drawn.LATENT", "samples");
  };
  const std::vector<float> given =
      latent(draw(svd_loader() + saving + picture() + video("VideoLinearCFGGuidance", 2)));
  const auto names = [&](const char* file) {
    std::set<std::string> all;
    const engine::Checkpoint read = engine::open_checkpoint(folder / "out/checkpoints" / file);
    for (const engine::TensorView& tensor : read.tensors()) all.emplace(tensor.name);
    return all;
  };
  BOOST_TEST((names("saved_00001_.safetensors") == names("drawn.safetensors")));
  BOOST_TEST((latent(draw(svd_loader("saved_00001_.safetensors") + picture() +
                          video("VideoLinearCFGGuidance", 2))) == given));
}

BOOST_AUTO_TEST_CASE(a_camera_goes_around_as_pytorch_has_it, *boost::unit_test::label("long")) {
  write_sv3d();
  const std::string flow =
      svd_loader() + node("load", "LoadImage", R"("image": "one.png")") +
      node("told", "SV3D_Conditioning",
           R"("clip_vision": ["model", 1], "init_image": ["load", 0], "vae": ["model", 2],
              "width": 80, "height": 48, "video_frames": 4, "elevation": 10.0)") +
      "\"drawn\": " +
      ksampler(
          sampler("2.5", "euler", "karras", 3) +
          R"(, "positive": ["told", 0], "negative": ["told", 1], "latent_image": ["told", 2])") +
      ", " + node("frames", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
      node("look", "test.look", R"("value": ["drawn", 0])") +
      R"("look_b": {"class_type": "test.look", "inputs": {"value": ["frames", 0]}})";
  const heddle::Results results = draw(flow);
  same(results.floats("drawn.LATENT", "samples"), "orbit.latent");
  same(few_of_frames(results.floats("frames.IMAGE", "")), "orbit.picture");
  heddle::Engine::Data other(svd_options());
  check_inference(other, "{" + flow + "}");
}

// Factors of two change no bits of what they multiply.
BOOST_AUTO_TEST_CASE(attentions_over_frames_are_multiplied_apart,
                     *boost::unit_test::label("long")) {
  const auto latent = [&](const std::string& more, const char* model) {
    std::string flow = svd_loader() + more + picture() + video("VideoLinearCFGGuidance", 2);
    const std::string link = R"("model": ["model", 0], "min_cfg")";
    flow.replace(flow.find(link), link.size(), cat(R"("model": [")", model, R"(", 0], "min_cfg")"));
    return draw(flow).floats("drawn.LATENT", "samples");
  };
  const std::vector<float> plain = latent("", "model"),
                           multiplied =
                               latent(node("more", "UNetTemporalAttentionMultiply",
                                           R"("model": ["model", 0], "self_structural": 1.0,
             "self_temporal": 2.0, "cross_structural": 0.5, "cross_temporal": 1.0)"),
                                      "more");
  for (FileTensor& tensor : checkpoint) {
    const bool is_self = tensor.name.find(".time_stack.0.attn1.to_out.0.") != std::string::npos,
               is_cross =
                   tensor.name.find(".transformer_blocks.0.attn2.to_out.0.") != std::string::npos;
    auto* const numbers = reinterpret_cast<float*>(tensor.bytes.data());
    for (std::size_t i = 0; (is_self || is_cross) && i < tensor.bytes.size() / sizeof(float); ++i)
      numbers[i] *= is_self ? 2.0f : 0.5f;
  }
  write_file("checkpoints/drawn", checkpoint);
  BOOST_TEST((latent("", "model") == multiplied));
  BOOST_TEST((plain != multiplied));
}

BOOST_AUTO_TEST_CASE(noise_in_the_picture_is_the_same_in_each_run,
                     *boost::unit_test::label("long")) {
  const auto drawn = [&](const char* noise) {
    heddle::Engine fresh{svd_options()};
    const std::string flow =
        "{" + svd_loader() + picture(noise) + video("VideoLinearCFGGuidance", 2) + "}";
    return fresh.start(fresh.parse(flow), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  };
  const std::vector<float> some = drawn("0.5");
  BOOST_TEST((drawn("0.5") == some));
  BOOST_TEST((drawn("0.0") != some));
}

BOOST_AUTO_TEST_CASE(what_it_does_not_take_is_refused_by_name) {
  // A latent of one picture is a video of one frame; texts of another model are too wide.
  write_svd(false);
  svd_tells(svd_refusal(svd_loader() + picture() + video()),
            {"drawn.safetensors", "no vision tower", "CLIPVisionLoader"});
  write_svd(true);
  svd_tells(svd_refusal(svd_loader() +
                        node("free", "FreeU", R"("model": ["model", 0], "b1": 1.1, "b2": 1.2,
                                                 "s1": 0.9, "s2": 0.2)") +
                        picture() + video() + R"(, "look_c": {"class_type": "test.look",
                                                 "inputs": {"value": ["free", 0]}})"),
            {"FreeU", "'svd'"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
