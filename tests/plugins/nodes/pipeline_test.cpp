// A diffusers folder from its prompt to its picture, stage by stage, against PyTorch
// (make_goldens.py); and what the loaders say when something is missing.
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Results;
using heddle::test::engine_refusal;
using heddle::test::NodeFixture;

namespace {

constexpr const char* kPrompt = "a (red:1.3) house (by sea)";

std::string pipeline(const std::string& nodes) {
  return R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
             "text": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" +
         std::string(kPrompt) + R"(", "clip": ["loader", 1]}},
             "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
             )" +
         nodes + "}";
}

std::string draw(const std::string& inputs) {
  return R"({"class_type": "KSampler", "inputs": {"model": ["loader", 0], "cfg": 1.0, "sampler_name": "euler",
             "scheduler": "simple", "positive": ["text", 0], "negative": ["text", 0], )" +
         inputs + "}}";
}

std::string look(const std::string& name, const std::string& node) {
  return "\"" + name + R"(": {"class_type": "test.look", "inputs": {"value": [")" + node +
         R"(", 0]}})";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pipeline_folder, NodeFixture)

BOOST_AUTO_TEST_CASE(every_stage_from_the_prompt_to_the_picture_equals_pytorch) {
  const Results results = run_whole(
      pipeline(
          R"("entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
             "drawn": )" +
          draw(R"("seed": 5, "steps": 4, "latent_image": ["empty", 0], "denoise": 1.0)") +
          R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["loader", 2]}},
             "encoded": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2]}},
             "redrawn": )" +
          draw(R"("seed": 6, "steps": 3, "latent_image": ["encoded", 0], "denoise": 0.75)") + ", " +
          look("a", "entry") + ", " + look("b", "redrawn")),
      {"entry.value", "drawn.LATENT", "picture.IMAGE", "encoded.LATENT", "redrawn.LATENT"});
  BOOST_TEST(warnings.empty());
  compare(results.floats("entry.value", "cross_attn"), "pipeline.cross_attn");
  compare(results.floats("entry.value", "pooled_output"), "pipeline.pooled_output");
  compare(results.floats("drawn.LATENT", "samples"), "pipeline.latent");
  compare(results.floats("picture.IMAGE"), "pipeline.picture");
  compare(results.floats("encoded.LATENT", "samples"), "pipeline.encoded");
  compare(results.floats("redrawn.LATENT", "samples"), "pipeline.redrawn");
}

BOOST_AUTO_TEST_CASE(a_text_for_each_encoder_equals_one_text_for_both) {
  const Results results = run_whole(
      pipeline(
          R"("flux": {"class_type": "CLIPTextEncodeFlux", "inputs": {"clip": ["loader", 1], "clip_l": ")" +
          std::string(kPrompt) + R"(", "t5xxl": ")" + kPrompt + R"(", "guidance": 2.0}},
             "a": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
             "b": {"class_type": "test.first", "inputs": {"list": ["flux", 0]}}, )" +
          look("c", "a") + ", " + look("d", "b")),
      {"a.value", "b.value"});
  for (const char* field : {"cross_attn", "pooled_output"})
    BOOST_TEST(results.floats("a.value", field) == results.floats("b.value", field));
}

BOOST_AUTO_TEST_CASE(a_prompt_longer_than_the_folder_allows_is_cut_with_a_warning) {
  const Results results = run_whole(
      pipeline(
          R"("long": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house by the sea by night by a red house by the sea", "clip": ["loader", 1]}},
             "a": {"class_type": "test.first", "inputs": {"list": ["long", 0]}}, )" +
          look("b", "a")),
      {"a.value"});
  BOOST_TEST(results.shape("a.value", "cross_attn") == (std::vector<std::int64_t>{1, 16, 24}));
  BOOST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(contains(warnings[0], "16 tokens"), warnings[0]);
}

BOOST_AUTO_TEST_CASE(single_files_give_the_folders_bytes_for_the_same_text_and_levels) {
  const std::string rest =
      R"("cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["text", 0], "negative": ["text", 0],
         "seed": 5, "steps": 2, "latent_image": ["empty", 0], "denoise": 1.0}})";
  const Results results = run_whole(
      pipeline(
          R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors", "weight_dtype": "default"}},
             "shifted": {"class_type": "ModelSamplingAuraFlow", "inputs": {"model": ["unet", 0], "shift": 2.0}},
             "folder": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], )" +
          rest + R"(, "file": {"class_type": "KSampler", "inputs": {"model": ["shifted", 0], )" +
          rest + ", " + look("a", "folder") + ", " + look("b", "file")),
      {"folder.LATENT", "file.LATENT"});
  BOOST_TEST(results.floats("folder.LATENT", "samples") ==
             results.floats("file.LATENT", "samples"));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_gives_the_bytes_of_its_parts) {
  using heddle::test::FileTensor;
  std::vector<FileTensor> all;
  const auto add = [&](const char* file, const std::string& prefix) {
    const heddle::test::TensorFile tensors(random() / file);
    for (const auto& [name, entry] : tensors.entries())
      all.push_back({prefix + name, entry.dtype, entry.shape, entry.bytes});
  };
  add("flux_original.safetensors", "model.diffusion_model.");
  add("t5.safetensors", "text_encoders.t5xxl.transformer.");
  for (FileTensor& tensor : wide_autoencoder("vae.")) all.push_back(std::move(tensor));
  for (FileTensor tensor : clip_tensors("text_encoders.clip_l.transformer.text_model.")) {
    tensor.bytes.assign(heddle::test::bytes_of(tensor), '\0');
    all.push_back(std::move(tensor));
  }
  std::filesystem::create_directories(folder / "models/checkpoints");
  const heddle::test::FileMetadata latent{{"scaling_factor", "0.5"}, {"shift_factor", "0.25"}};
  heddle::test::write_safetensors(folder / "models/checkpoints/whole.safetensors", all, latent);
  heddle::test::write_safetensors(folder / "models/vae/told.safetensors", wide_autoencoder(""),
                                  latent);
  heddle::test::write_safetensors(folder / "models/vae/untold.safetensors", wide_autoencoder(""));
  for (const char* name : {"clip_l", "t5xxl"}) {
    std::filesystem::create_directories(folder / "models/tokenizers");
    std::filesystem::create_symlink(
        here() / "pipeline" / (std::string(name) == "clip_l" ? "tokenizer" : "tokenizer_2"),
        folder / "models/tokenizers" / name);
  }
  const std::string rest =
      R"("cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["one", 0],
         "seed": 5, "steps": 2, "latent_image": ["empty", 0], "denoise": 1.0}})";
  const Results results = run(
      R"("checkpoint": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "whole.safetensors"}},
         "unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors", "weight_dtype": "default"}},
         "told": {"class_type": "VAELoader", "inputs": {"vae_name": "told.safetensors"}},
         "untold": {"class_type": "VAELoader", "inputs": {"vae_name": "untold.safetensors"}},
         "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a (red:1.3) house", "clip": ["checkpoint", 1]}},
         "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
         "a": {"class_type": "KSampler", "inputs": {"model": ["checkpoint", 0], )" +
          rest + R"(, "b": {"class_type": "KSampler", "inputs": {"model": ["unet", 0], )" + rest +
          R"(, "a_picture": {"class_type": "VAEDecode", "inputs": {"samples": ["a", 0], "vae": ["checkpoint", 2]}},
         "b_picture": {"class_type": "VAEDecode", "inputs": {"samples": ["b", 0], "vae": ["told", 0]}},
         "c_picture": {"class_type": "VAEDecode", "inputs": {"samples": ["b", 0], "vae": ["untold", 0]}}, )" +
          look("x", "a_picture") + ", " + look("y", "b_picture") + ", " + look("z", "entry") +
          ", " + look("w", "c_picture"),
      {"a.LATENT", "b.LATENT", "a_picture.IMAGE", "b_picture.IMAGE", "c_picture.IMAGE",
       "entry.value"});
  BOOST_TEST(results.floats("a.LATENT", "samples") == results.floats("b.LATENT", "samples"));
  const std::vector<float> picture = results.floats("a_picture.IMAGE");
  BOOST_TEST(picture == results.floats("b_picture.IMAGE"));
  // Without metadata: Stable Diffusion's constants, for 4 channels.
  BOOST_TEST(picture != results.floats("c_picture.IMAGE"));
  BOOST_TEST(results.shape("entry.value", "cross_attn") == (std::vector<std::int64_t>{1, 256, 24}));
  BOOST_TEST(results.shape("entry.value", "pooled_output") == (std::vector<std::int64_t>{1, 64}));
}

BOOST_AUTO_TEST_CASE(
    an_encoder_without_a_tokenizer_says_where_it_was_looked_for_and_what_to_fetch) {
  const std::string flow =
      R"({"clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5.safetensors", "clip_name2": "clip_l.safetensors", "type": "flux"}},
          "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["clip", 0]}}, )" +
      look("a", "text") + "}";
  const std::string text = engine_refusal([&] { run_whole(flow, {}); });
  BOOST_TEST(contains(text, (folder / "models/clip/t5xxl").string()), text);
  BOOST_TEST(contains(text, "tokenizers/t5xxl"), text);
  BOOST_TEST(contains(text, "spiece.model"), text);
  // With T5's tokenizer beside its file, CLIP's is the next that is missing.
  std::filesystem::create_symlink(here() / "pipeline/tokenizer_2", folder / "models/clip/t5xxl");
  std::filesystem::create_directories(folder / "models/tokenizers");
  const std::string changed = engine_refusal([&] {
    run_whole(  // the other way round: loaders are not run again for the same inputs
        R"({"clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "clip_l.safetensors", "clip_name2": "t5.safetensors", "type": "flux"}},
            "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["clip", 0]}}, )" +
            look("a", "text") + "}",
        {});
  });
  BOOST_TEST(contains(changed, "tokenizers/clip_l"), changed);
  BOOST_TEST(contains(changed, "merges.txt"), changed);
}

BOOST_AUTO_TEST_CASE(loaders_refuse_what_they_cannot_load_naming_what_they_can) {
  const auto refusal = [&](const std::string& node) {
    return engine_refusal([&] { run_whole("{\"x\": " + node + ", " + look("a", "x") + "}", {}); });
  };
  const std::string same = refusal(
      R"({"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5.safetensors", "clip_name2": "t5.safetensors", "type": "flux"}})");
  BOOST_TEST(contains(same, "clip_l with t5xxl (flux)"), same);
  const std::string type = refusal(
      R"({"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5.safetensors", "clip_name2": "clip_l.safetensors", "type": "newbie"}})");
  BOOST_TEST(contains(type, "'newbie' is not known yet. Known: flux"), type);
  const std::string pair = refusal(
      R"({"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5.safetensors", "clip_name2": "clip_l.safetensors", "type": "hunyuan_video"}})");
  for (const char* part : {"t5xxl and clip_l", "'hunyuan_video'", "llama3 and clip_l"})
    BOOST_TEST(contains(pair, part), pair);
  std::filesystem::create_directories(folder / "models/diffusers/nothing");
  std::filesystem::create_directories(folder / "models/checkpoints");
  const std::string none =
      refusal(R"({"class_type": "DiffusersLoader", "inputs": {"model_path": "nothing"}})");
  BOOST_TEST(contains(none, "model_index.json"), none);
  std::filesystem::create_symlink(random() / "t5.safetensors",
                                  folder / "models/checkpoints/t5.safetensors");
  const std::string bare = refusal(
      R"({"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "t5.safetensors"}})");
  BOOST_TEST(contains(bare, "UNETLoader"), bare);
}

BOOST_AUTO_TEST_SUITE_END()
