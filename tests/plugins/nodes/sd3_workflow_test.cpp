// Stable Diffusion 3.5 from the prompt to the picture, over models whose weights follow from their
// names, against PyTorch (../goldens/make_sd3_goldens.py), and its encoders in other combinations.
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/sd3_models.h"

using namespace heddle::test;

namespace {

constexpr std::size_t kTextWidth = 160, kClipWidth = 64, kClipTokens = 77;

struct Sd3Workflow : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/sd3/expected.safetensors"};

  void write(const std::string& file, const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = folder / "models" / (file + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  static std::vector<FileTensor> model(const std::string& name) {
    return seeded_model(name, false, "sd3");
  }
  void write_encoders() const {
    for (const char* name : {"clip_l", "clip_g", "t5xxl"})
      write(std::string("text_encoders/") + name, model(name));
  }
  static std::string clip(const std::string& loader, std::vector<std::string> files,
                          const std::string& type) {
    std::string inputs;
    for (std::size_t i = 0; i < files.size(); ++i)
      inputs += (i > 0 ? ", \"clip_name" : "\"clip_name") +
                (files.size() > 1 ? std::to_string(i + 1) : "") + "\": \"" + files[i] +
                ".safetensors\"";
    if (!type.empty()) inputs += ", \"type\": \"" + type + "\"";
    return R"("clip": {"class_type": ")" + loader + R"(", "inputs": {)" + inputs + "}}";
  }
  struct Text {
    std::vector<float> states, pooled;
    std::size_t tokens() const { return states.size() / kTextWidth; }
    // Of every token a stretch of its numbers.
    std::vector<float> part(std::size_t first, std::size_t last, std::size_t begin,
                            std::size_t end) const {
      std::vector<float> found;
      for (std::size_t token = first; token < last; ++token)
        found.insert(found.end(), states.begin() + std::ptrdiff_t(token * kTextWidth + begin),
                     states.begin() + std::ptrdiff_t(token * kTextWidth + end));
      return found;
    }
  };
  Text text(const std::string& loader, const std::string& node) {
    const heddle::Results results =
        run_whole("{" + loader + R"(, "one": )" + node +
                      R"(, "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
                  {"first.value"});
    return {results.floats("first.value", "cross_attn"),
            results.floats("first.value", "pooled_output")};
  }
  static std::string plain(const std::string& words) {
    return R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")" + words +
           R"(", "clip": ["clip", 0]}})";
  }
  static std::string apart(const std::string& l, const std::string& g, const std::string& t5,
                           const std::string& padding) {
    return R"({"class_type": "CLIPTextEncodeSD3", "inputs": {"clip": ["clip", 0], "clip_l": ")" +
           l + R"(", "clip_g": ")" + g + R"(", "t5xxl": ")" + t5 + R"(", "empty_padding": ")" +
           padding + R"("}})";
  }
  std::string triple() const { return clip("TripleCLIPLoader", {"clip_l", "clip_g", "t5xxl"}, ""); }

  // loaders: "model", and the nodes that `clip` and `vae` are outputs of.
  void check(const std::string& loaders, const std::string& clip, const std::string& vae) {
    const heddle::Results results = run_whole(
        "{" + loaders +
            R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": )" +
            clip + R"(}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )" +
            clip + R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": )" +
            ksampler(R"("steps": 3, "cfg": 4.5)") +
            R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )" +
            vae + R"(}},
      "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}},
      "look_b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})",
        {"first.value", "drawn.LATENT", "picture.IMAGE"});
    BOOST_TEST(warnings.empty());
    std::vector<float> states;
    const Text whole{results.floats("first.value", "cross_attn"), {}};
    for (std::size_t token = 0; token < whole.tokens(); token += 11) {
      const std::vector<float> one = whole.part(token, token + 1, 0, kTextWidth);
      states.insert(states.end(), one.begin(), one.end());
    }
    const auto same = [&](const std::vector<float>& found, const char* golden) {
      const double error = relative_error(found, expected.floats(golden));
      BOOST_TEST_MESSAGE(golden << ": relative error " << error);
      BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
    };
    same(states, "flow.states");
    same(results.floats("first.value", "pooled_output"), "flow.pooled");
    same(results.floats("drawn.LATENT", "samples"), "flow.latent");
    same(results.floats("picture.IMAGE", ""), "flow.picture");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sd3_workflows, Sd3Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  write("diffusion_models/sd3.5", sd3_transformer("drawn"));
  write("vae/sd3", model("vae"));
  write_encoders();
  check(
      R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": "sd3.5.safetensors", "weight_dtype": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "sd3.safetensors"}}, )" +
          triple(),
      R"(["clip", 0])", R"(["vae", 0])");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts) {
  std::vector<FileTensor> all;
  const auto add = [&](const std::string& prefix, std::vector<FileTensor> tensors) {
    for (FileTensor& tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  };
  add("model.diffusion_model.", sd3_transformer("drawn"));
  for (const char* name : {"clip_l", "clip_g", "t5xxl"})
    add(std::string("text_encoders.") + name + ".transformer.", model(name));
  add("first_stage_model.", model("vae"));
  write("checkpoints/sd3.5_large_fp8_scaled", all);
  check(
      R"("model": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd3.5_large_fp8_scaled.safetensors"}})",
      R"(["model", 1])", R"(["model", 2])");
}

BOOST_AUTO_TEST_CASE(skip_layer_guidance_leaves_joint_blocks_out) {
  write("diffusion_models/sd3.5", sd3_transformer("drawn"));
  write_encoders();
  const heddle::Results results = run_whole(
      R"({"unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "sd3.5.safetensors", "weight_dtype": "default"}},
      "model": {"class_type": "SkipLayerGuidanceSD3", "inputs": {"model": ["unet", 0], "layers": "1", "scale": 3.0, "start_percent": 0.0, "end_percent": 1.0}},
      "one": )" +
          plain("a photo of a cat") + R"(, "two": )" + plain("") + ", " + triple() +
          R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": )" +
          ksampler(R"("steps": 3, "cfg": 4.5)") +
          R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
      {"drawn.LATENT"});
  const double error =
      relative_error(results.floats("drawn.LATENT", "samples"), expected.floats("flow.skipped"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(encoders_that_are_not_there_are_zeros_of_their_width) {
  write_encoders();
  const Text all = text(triple(), plain("a photo of a cat"));
  BOOST_TEST(all.tokens() == 2 * kClipTokens);
  // T5 with CLIP-L: the same but for CLIP-G's numbers.
  const Text without_g =
      text(clip("DualCLIPLoader", {"t5xxl", "clip_l"}, "sd3"), plain("a photo of a cat"));
  BOOST_TEST(without_g.part(0, 77, 0, 64) == all.part(0, 77, 0, 64));
  BOOST_TEST(without_g.part(77, 154, 0, 160) == all.part(77, 154, 0, 160));
  BOOST_TEST(without_g.part(0, 77, 64, 160) == std::vector<float>(77 * 96, 0.0f));
  BOOST_TEST(without_g.pooled.size() == kClipWidth + 1280);
  // T5 alone has no pooled vector.
  const Text t5 = text(clip("CLIPLoader", {"t5xxl"}, "sd3"), plain("a photo of a cat"));
  BOOST_TEST(t5.states == all.part(77, 154, 0, 160));
  BOOST_TEST(t5.pooled == std::vector<float>(768 + 1280, 0.0f));
  // Without T5 the states have its published width.
  const Text clips =
      text(clip("DualCLIPLoader", {"clip_l", "clip_g"}, "sd3"), plain("a photo of a cat"));
  BOOST_TEST(clips.states.size() == kClipTokens * 4096);
  BOOST_TEST(clips.pooled == all.pooled);
}

BOOST_AUTO_TEST_CASE(each_encoder_reads_its_own_text_and_an_empty_one_is_left_out,
                     *boost::unit_test::label("long")) {
  write_encoders();
  const Text all = text(triple(), plain("a photo of a cat"));
  const Text same = text(
      triple(), apart("a photo of a cat", "a photo of a cat", "a photo of a cat", "empty_prompt"));
  BOOST_TEST(same.states == all.states);
  const Text nothing = text(triple(), plain(""));
  const Text empty = text(triple(), apart("", "", "", "empty_prompt"));
  BOOST_TEST(empty.states == nothing.states);
  // One empty text of CLIP's two is as long as the other; T5's is its end alone.
  const Text without_l = text(triple(), apart("", "a photo of a cat", "", "none"));
  BOOST_TEST(without_l.tokens() == kClipTokens + 1);
  BOOST_TEST(without_l.part(0, 77, 0, 64) == nothing.part(0, 77, 0, 64));
  BOOST_TEST(without_l.part(0, 77, 64, 128) == all.part(0, 77, 64, 128));
  // Neither of CLIP's: T5 stands alone.
  const Text t5 = text(triple(), apart("", "", "a photo of a cat", "none"));
  BOOST_TEST(t5.states == all.part(77, 154, 0, 160));
  BOOST_TEST(t5.pooled == std::vector<float>(768 + 1280, 0.0f));
}

BOOST_AUTO_TEST_CASE(encoders_of_another_set_are_refused) {
  write_encoders();
  const auto refusal = [&](const std::string& loader) {
    return engine_refusal([&] { text(loader, plain("a cat")); });
  };
  const auto says = [](const std::string& message, const char* words) {
    BOOST_TEST(message.find(words) != std::string::npos,
               "'" << words << "' is not in: " << message);
  };
  says(refusal(clip("DualCLIPLoader", {"clip_g", "clip_g"}, "sd3")), "clip_g is there twice");
  says(refusal(clip("DualCLIPLoader", {"clip_l", "clip_g"}, "flux")),
       "type 'sdxl', asked for is 'flux'");
}

BOOST_AUTO_TEST_SUITE_END()
