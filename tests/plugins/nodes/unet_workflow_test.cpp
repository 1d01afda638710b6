// Stable Diffusion 1.x, 2.x, SDXL and its refiner from the prompt to the picture, out of
// checkpoints as they were published, over models whose weights follow from their names, against
// PyTorch (../goldens/make_unet_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/unet_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

BOOST_FIXTURE_TEST_SUITE(unet_workflows, UnetWorkflow)

BOOST_AUTO_TEST_CASE(the_first_from_a_checkpoint_equals_pytorch) {
  write("sd1");
  check(loader() + texts() + drawing(sampler("7.0", "euler", "normal")), "sd1_drawn");
  check(loader() +
            node("clip", "CLIPSetLastLayer", R"("clip": ["model", 1], "stop_at_clip_layer": -2)") +
            texts(R"(["clip", 0])") + drawing(sampler("7.0", "dpmpp_2m", "karras")),
        "sd1_skipped");
}

BOOST_AUTO_TEST_CASE(the_second_from_a_checkpoint_equals_pytorch) {
  write("sd2");
  check(loader() + texts() + drawing(sampler("5.0", "dpmpp_2m", "karras")), "sd2_drawn");
}

// Files of diffusers lack its last layer, which counts all the same.
BOOST_AUTO_TEST_CASE(layers_of_open_clip_h_are_counted_as_published) {
  std::vector<FileTensor> tensors = without_projection("clip_h");
  write_file("text_encoders/whole", tensors);
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find("encoder.layers.23.") != std::string::npos;
  });
  write_file("text_encoders/cut", tensors);
  const auto states = [this](const std::string& file, int stop) {
    return run_whole(
               "{" +
                   node("clip", "CLIPLoader",
                        cat(R"("clip_name": ")", file,
                            R"(.safetensors", "type": "stable_diffusion")")) +
                   node("stopped", "CLIPSetLastLayer",
                        cat(R"("clip": ["clip", 0], "stop_at_clip_layer": )", stop)) +
                   text("one", "a cat", R"(["stopped", 0])") +
                   node("first", "test.first", R"("list": ["one", 0])") +
                   R"("look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
               {"first.value"})
        .floats("first.value", "cross_attn");
  };
  for (const int stop : {-2, -5, -24})
    BOOST_TEST((states("cut", stop) == states("whole", stop)), stop);
  BOOST_TEST((states("cut", -2) != states("cut", -3)));
}

BOOST_AUTO_TEST_CASE(sdxl_from_a_checkpoint_equals_pytorch) {
  write("sdxl");
  check(loader() + texts() + drawing(sampler("6.0", "dpmpp_2m", "karras")), "sdxl_drawn");
  // The same said by the node that tells sizes, and with encoders of their own.
  write_file("text_encoders/clip_l", unet_model("clip_l"));
  write_file("text_encoders/clip_g", unet_model("clip_g"));
  const auto told = [](const char* name, const char* words) {
    return node(name, "CLIPTextEncodeSDXL",
                cat(R"("clip": ["clip", 0], "width": 80, "height": 48, "crop_w": 0, "crop_h": 0,
                "target_width": 80, "target_height": 48, "text_g": ")",
                    words, R"(", "text_l": ")", words, "\""));
  };
  check(loader() + node("clip", "DualCLIPLoader", R"("clip_name1": "clip_l.safetensors",
                 "clip_name2": "clip_g.safetensors", "type": "sdxl")") +
            told("one", "a photo of a cat") + told("two", "") +
            node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
            drawing(sampler("6.0", "dpmpp_2m", "karras")),
        "sdxl_drawn");
}

BOOST_AUTO_TEST_CASE(the_refiner_from_a_checkpoint_equals_pytorch) {
  write("refiner");
  check(loader() + texts() + drawing(sampler("4.0", "euler", "normal")), "refiner_drawn");
  const auto told = [](const char* name, const char* words, const char* score) {
    return node(name, "CLIPTextEncodeSDXLRefiner",
                cat(R"("clip": ["model", 1], "width": 80, "height": 48, "ascore": )", score,
                    R"(, "text": ")", words, "\""));
  };
  check(loader() + told("one", "a photo of a cat", "6.0") + told("two", "", "2.5") +
            node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
            drawing(sampler("4.0", "euler", "normal")),
        "refiner_drawn");
}

BOOST_AUTO_TEST_CASE(what_is_inside_a_mask_is_drawn_anew) {
  write("inpaint");
  const std::string shown = given("pixels", "test.image", "inpaint_drawn.pixels") +
                            given("mask", "test.mask", "inpaint_drawn.mask") + loader() +
                            text("words", "a photo of a cat", R"(["model", 1])") +
                            text("nothing", "", R"(["model", 1])") +
                            node("shown", "InpaintModelConditioning",
                                 R"("positive": ["words", 0], "negative": ["nothing", 0],
      "vae": ["model", 2], "pixels": ["pixels", 0], "mask": ["mask", 0], "noise_mask": false)");
  const auto latent = [](const char* positive, const char* negative, const char* from) {
    return cat(sampler("7.0", "euler", "normal"), R"(, "positive": )", positive,
               R"(, "negative": )", negative, R"(, "latent_image": )", from);
  };
  const std::string first = node("one", "ConditioningZeroOut", R"("conditioning": ["words", 0])");
  check(shown + first + drawing(latent(R"(["shown", 0])", R"(["shown", 1])", R"(["shown", 2])")),
        "inpaint_drawn");
  // Where the conditioning shows nothing, the model is shown the latent and its mask.
  const std::string kept = node("kept", "VAEEncodeForInpaint",
                                R"("pixels": ["pixels", 0], "vae": ["model", 2],
      "mask": ["mask", 0], "grow_mask_by": 0)");
  const auto drawn = [&](const char* positive, const char* negative) {
    return run_whole("{" + shown + kept + first +
                         drawing(latent(positive, negative, R"(["kept", 0])")) + "}",
                     {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  const double error = relative_error(drawn(R"(["words", 0])", R"(["nothing", 0])"),
                                      drawn(R"(["shown", 0])", R"(["shown", 1])"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

// Stretched, and repeated for further items: as the sampler keeps the rest of the picture by it.
BOOST_AUTO_TEST_CASE(the_model_is_shown_the_mask_that_the_sampler_draws_by) {
  write("inpaint");
  const std::string masks =
      given("wide", "test.image", "inpaint_drawn.pixels") +
      node("square", "ImageScale", R"("image": ["wide", 0], "upscale_method": "nearest-exact",
           "width": 48, "height": 48, "crop": "center")") +
      node("rest", "ImageInvert", R"("image": ["square", 0])") +
      node("both", "ImageBatch", R"("image1": ["square", 0], "image2": ["rest", 0])") +
      node("fitted", "ImageScale", R"("image": ["both", 0], "upscale_method": "bilinear",
           "width": 10, "height": 6, "crop": "disabled")") +
      node("four", "ImageBatch", R"("image1": ["fitted", 0], "image2": ["fitted", 0])") +
      node("items", "RepeatLatentBatch", R"("samples": ["empty", 0], "amount": 4)") +
      node("held", "SetLatentNoiseMask", R"("samples": ["items", 0], "mask": ["mask", 0])");
  const auto drawn = [&](const char* picture) {
    const std::string mask = cat(R"("channel": "red", "image": [")", picture, R"(", 0])");
    return run_whole("{" + masks + loader() + texts() + node("mask", "ImageToMask", mask) +
                         drawing(sampler("7.0", "euler", "normal", 2) +
                                 R"(, "latent_image": ["held", 0])") +
                         "}",
                     {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  BOOST_TEST(relative_error(drawn("both"), drawn("four")) < kTolerance);
}

BOOST_AUTO_TEST_CASE(a_picture_is_drawn_by_another) {
  write("pix2pix");
  check(given("pixels", "test.image", "inpaint_drawn.pixels") + loader() +
            text("words", "a photo of a cat", R"(["model", 1])") +
            text("nothing", "", R"(["model", 1])") +
            node("one", "InstructPixToPixConditioning",
                 R"("positive": ["words", 0], "negative": ["nothing", 0], "vae": ["model", 2],
      "pixels": ["pixels", 0])") +
            drawing(cat(sampler("7.0", "euler", "normal"),
                        R"(, "negative": ["one", 1], "latent_image": ["one", 2])")),
        "pix2pix_drawn");
}

BOOST_AUTO_TEST_CASE(attentions_of_the_middle_are_perturbed, *boost::unit_test::label("long")) {
  const heddle::test::TensorFile guidance(tests_folder() /
                                          "plugins/goldens/unet/guidance.safetensors");
  const std::pair<const char*, std::string> kinds[] = {
      {"sd1", sampler("7.0", "euler", "normal")}, {"sdxl", sampler("6.0", "dpmpp_2m", "karras")}};
  for (const auto& [kind, drawing_by] : kinds) {
    checkpoint.clear();
    write(kind);
    const std::string loaded =
        node("loaded", "CheckpointLoaderSimple", R"("ckpt_name": "drawn.safetensors")");
    const std::string guided =
        node("model", "PerturbedAttentionGuidance", R"("model": ["loaded", 0], "scale": 3.0)");
    const std::vector<float> latent =
        run_whole(
            "{" + loaded + guided + texts(R"(["loaded", 1])") +
                "\"drawn\": " + ksampler(drawing_by) +
                R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
            {"drawn.LATENT"})
            .floats("drawn.LATENT", "samples");
    const double error = relative_error(latent, guidance.floats(std::string(kind) + ".latent"));
    BOOST_TEST_MESSAGE(kind << ": relative error " << error);
    BOOST_TEST(error < kTolerance, kind << ": relative error " << error);
    const double change =
        relative_error(latent, expected.floats(std::string(kind) + "_drawn.latent"));
    BOOST_TEST(change > 100 * kTolerance, kind << ": changed by " << change);
  }
}

// A LoRA of a matrix, of a filter (LoCon) and of both encoders, under the names of kohya's scripts
// for UNets of either layout, and of diffusers.
BOOST_AUTO_TEST_CASE(loras_of_all_names_change_the_same_weights, *boost::unit_test::label("long")) {
  write("sdxl");
  const LoraFiles files = lora_files();
  write_file("loras/unet_kohya", files.kohya);
  write_file("loras/unet_original", files.original);
  write_file("loras/unet_diffusers", files.diffusers);
  write_file("loras/unet_attentions", files.attentions);
  write_file("loras/unet_processors", files.processors);
  write_file("checkpoints/merged", files.merged);
  const auto drawn = [&](const std::string& loaders, const char* from) {
    const heddle::Results results = run_whole(
        "{" + loaders + texts(cat(R"([")", from, R"(", 1])")) + "\"drawn\": " +
            ksampler(
                cat(sampler("6.0", "euler", "normal", 2), R"(, "model": [")", from, R"(", 0])")) +
            R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
        {"drawn.LATENT"});
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    return results.floats("drawn.LATENT", "samples");
  };
  const auto with = [&](const char* lora) {
    return drawn(loader() + node("lora", "LoraLoader",
                                 cat(R"("model": ["model", 0], "clip": ["model", 1],
      "lora_name": ")",
                                     lora,
                                     R"(.safetensors", "strength_model": 1.0,
      "strength_clip": 1.0)")),
                 "lora");
  };
  const std::vector<float> first = with("unet_kohya");
  BOOST_TEST((first == with("unet_original")));
  BOOST_TEST((first == with("unet_diffusers")));
  BOOST_TEST((with("unet_attentions") == with("unet_processors")));
  const std::vector<float> whole = drawn(
      node("model", "CheckpointLoaderSimple", R"("ckpt_name": "merged.safetensors")"), "model");
  const double error = relative_error(first, whole);
  BOOST_TEST(error < 1e-5, "relative error " << error);
  const double change = relative_error(first, drawn(loader(), "model"));
  BOOST_TEST(change > 1e-3, "the LoRA changes " << change);
}

// The other parts are those of the random pipeline.
BOOST_AUTO_TEST_CASE(a_folder_draws_what_its_scheduler_says) {
  namespace fs = std::filesystem;
  const fs::path pipelines = folder / "models/diffusers", drawn = pipelines / "drawn";
  fs::create_directories(drawn / "scheduler");
  for (const char* part : {"text_encoder", "tokenizer", "vae"})
    fs::create_directory_symlink(pipelines / "random" / part, drawn / part);
  write_file("diffusers/drawn/unet/diffusion_pytorch_model", unet_model("sd1"));
  write_file("diffusion_models/alone", unet_model("sd1"));
  folder.write("models/diffusers/drawn/model_index.json",
               R"({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet"],
             "text_encoder": ["transformers", "CLIP"], "vae": ["diffusers", "VAE"]})");
  const std::string states = (folder / "states.safetensors").string();
  write_safetensors(states, {seeded_tensor("in.one.cross_attn", {1, 7, 64})});
  const auto draw = [&](const std::string& model) {
    return run_whole(
               "{" + model +
                   node("one", "test.conditioning",
                        cat(R"("path": ")", states, R"(", "prefix": "in.one", "option": "")")) +
                   node("empty", "EmptyLatentImage",
                        R"("width": 80, "height": 48, "batch_size": 1)") +
                   "\"drawn\": " +
                   ksampler(sampler("1.0", "euler", "normal", 2) + R"(, "negative": ["one", 0])") +
                   R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
               {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  const auto as_told = [&](const std::string& type) {
    folder.write("models/diffusers/drawn/scheduler/scheduler_config.json",
                 cat(R"({"beta_schedule": "scaled_linear", "prediction_type": ")", type, "\"}"));
    return draw(node("model", "DiffusersLoader", R"("model_path": "drawn")"));
  };
  const std::vector<float> alone = draw(node(
      "model", "UNETLoader", R"("unet_name": "alone.safetensors", "weight_dtype": "default")"));
  BOOST_TEST((as_told("epsilon") == alone));
  BOOST_TEST((as_told("v_prediction") != alone));
}

BOOST_AUTO_TEST_SUITE_END()
