// Patches of UNets (FreeU, HyperTile, self-attention guidance) in whole runs, against PyTorch
// (../goldens/make_unet_patch_goldens.py), divided over devices and with little memory, beside
// LoRAs and ControlNets.
#include <atomic>
#include <functional>
#include <thread>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_patch_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

std::string tiles(int swap) {
  return cat(R"("tile_size": 32, "swap_size": )", swap,
             R"(, "max_depth": 1, "scale_depth": false)");
}

struct PatchedInside : PatchedUnet {
  static std::string both() {
    return patch("HyperTile", tiles(2), "loaded", "tiled") + patch("FreeU_V2", "", "tiled");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_patches, PatchedInside)

BOOST_AUTO_TEST_CASE(free_u_equals_pytorch) {
  const std::string factors = R"("b1": 1.3, "b2": 1.4, "s1": 0.9, "s2": 0.2)";
  for (const char* kind : {"sd1", "sdxl"}) {
    equal(kind, "free_u", patch("FreeU", factors));
    equal(kind, "free_u_v2", patch("FreeU_V2", factors));
  }
}

BOOST_AUTO_TEST_CASE(attention_in_tiles_equals_pytorch) {
  for (const char* kind : {"sd1", "sdxl"}) equal(kind, "tiles", patch("HyperTile", tiles(2)));
}

// A division is drawn for each block, by its path.
BOOST_AUTO_TEST_CASE(drawn_tiles_are_the_same_in_all_runs) {
  const std::vector<float> first = draw("sd1", patch("HyperTile", tiles(128)));
  const std::string flow_of_all = flow("sd1", patch("HyperTile", tiles(128)));
  heddle::EngineOptions again = engine_options();
  again.compute[test_device_kind()] = "f32";
  again.model_dirs = {folder / "models"};
  BOOST_TEST((first == drawn_with(again, flow_of_all)));
  BOOST_TEST((first != draw("sd1", patch("HyperTile", tiles(2)))));
}

BOOST_AUTO_TEST_CASE(self_attention_guidance_equals_pytorch) {
  for (const char* kind : {"sd1", "sdxl", "refiner"})
    equal(kind, "self_guided", patch("SelfAttentionGuidance", R"("scale": 0.75, "blur_sigma": 2)"));
}

BOOST_AUTO_TEST_CASE(what_self_attention_guidance_calls_is_told_before) {
  write("sd1");
  const std::string drawn =
      node("loaded", "CheckpointLoaderSimple", R"("ckpt_name": "drawn.safetensors")") +
      patch("SelfAttentionGuidance", "") + texts(R"(["loaded", 1])") + R"("drawn": )" +
      ksampler(sampler("4.0", "euler", "normal", 2)) +
      R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}})";
  heddle::EngineOptions again = engine_options();
  again.model_dirs = {folder / "models"};
  heddle::Engine::Data data{again};
  check_inference(data, "{" + drawn + "}");
}

// Stopped behind each step, it goes on to the same bytes.
BOOST_AUTO_TEST_CASE(self_attention_guidance_goes_on_after_a_stop,
                     *boost::unit_test::label("long")) {
  const std::string whole = flow("sd1", patch("SelfAttentionGuidance", ""));
  heddle::EngineOptions options = options_for({"cpu:0"});
  options.cache_bytes = 1;
  heddle::Engine engine(options);
  const auto run_with = [&](const std::function<void(const heddle::Event&)>& observe,
                            std::atomic<heddle::Run*>* under_way) {
    heddle::Run run = engine.start(engine.parse(whole), {observe, {"drawn.LATENT"}});
    if (under_way != nullptr) *under_way = &run;
    return run.wait().floats("drawn.LATENT", "samples");
  };
  std::atomic<heddle::Run*> under_way{nullptr};
  int begun = 0;
  const std::vector<float> in_pieces = run_with(
      [&](const heddle::Event& event) {
        if (event.node != "drawn") return;
        if (event.kind == heddle::Event::Kind::node_started) ++begun;
        if (event.kind != heddle::Event::Kind::node_progress) return;
        while (under_way == nullptr) std::this_thread::yield();
        under_way.load()->pause_and_release();
        under_way.load()->resume();
      },
      &under_way);
  BOOST_TEST((in_pieces == run_with({}, nullptr)));
  BOOST_TEST(begun > 1, begun << " calls");
}

BOOST_AUTO_TEST_CASE(self_attention_guidance_needs_a_negative_and_comes_once) {
  const auto has = [](const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  const std::string twice = patch("SelfAttentionGuidance", "", "loaded", "guided") +
                            patch("SelfAttentionGuidance", "", "guided");
  has(engine_refusal([&] { draw("sd1", twice); }), "guided by its self-attention already");
  add_kind("sd1");
  const std::string alone = cat(
      "{",
      node("loaded", "UNETLoader", R"("unet_name": "sd1.safetensors", "weight_dtype": "default")"),
      patch("SelfAttentionGuidance", ""), text("sd1", "one"),
      node("guider", "BasicGuider", R"("model": ["model", 0], "conditioning": ["one", 0])"),
      node("noise", "RandomNoise", R"("noise_seed": 7)"),
      node("method", "KSamplerSelect", R"("sampler_name": "euler")"),
      node("levels", "BasicScheduler",
           R"("model": ["model", 0], "scheduler": "normal", "steps": 1, "denoise": 1)"),
      node("empty", "EmptyLatentImage", R"("width": 128, "height": 64, "batch_size": 1)"),
      node("drawn", "SamplerCustomAdvanced",
           R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0],
              "sigmas": ["levels", 0], "latent_image": ["empty", 0])"),
      R"("look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  has(engine_refusal([&] { run_whole(alone, {}); }), "by the negative conditioning");
}

// The negative model tells what it attends to.
BOOST_AUTO_TEST_CASE(self_attention_guidance_of_two_models) {
  add_kind("sd1");
  const auto flow_with = [&](const char* negative_model) {
    return cat("{",
               node("loaded", "UNETLoader",
                    R"("unet_name": "sd1.safetensors", "weight_dtype": "default")"),
               patch("SelfAttentionGuidance", R"("scale": 0.75, "blur_sigma": 2)"),
               text("sd1", "one"), text("sd1", "two"),
               node("guider", "DualModelGuider",
                    cat(R"("model": ["model", 0], "positive": ["one", 0], "model_negative": [")",
                        negative_model, R"(", 0], "negative": ["two", 0], "cfg": 4)")),
               node("noise", "RandomNoise", R"("noise_seed": 7)"),
               node("method", "KSamplerSelect", R"("sampler_name": "euler")"),
               node("levels", "BasicScheduler",
                    R"("model": ["model", 0], "scheduler": "normal", "steps": 2, "denoise": 1)"),
               node("empty", "EmptyLatentImage", R"("width": 128, "height": 64, "batch_size": 1)"),
               node("drawn", "SamplerCustomAdvanced",
                    R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0],
                       "sigmas": ["levels", 0], "latent_image": ["empty", 0])"),
               R"("look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  };
  const double error = relative_error(
      run_whole(flow_with("model"), {"drawn.output"}).floats("drawn.output", "samples"),
      wanted.floats("sd1.self_guided"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  const std::string said = engine_refusal([&] { run_whole(flow_with("loaded"), {}); });
  BOOST_TEST(said.find("before model_negative") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(self_attention_guidance_needs_attention_in_the_middle) {
  add_kind("sd1");
  std::vector<FileTensor> tensors = unet_model("sd1");
  const std::size_t whole = tensors.size();
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find("mid_block.attentions") != std::string::npos ||
           tensor.name.find("middle_block.1.") != std::string::npos;
  });
  BOOST_TEST_REQUIRE(tensors.size() < whole);
  write_file("diffusion_models/sd1", tensors);
  const std::string said = engine_refusal([&] { draw("sd1", patch("SelfAttentionGuidance", "")); });
  BOOST_TEST(said.find("has no attention") != std::string::npos, said);
}

// All at once. With little memory both looks of the guidance take turns.
BOOST_AUTO_TEST_CASE(dividing_patched_unets_keeps_their_bytes, *boost::unit_test::label("long")) {
  std::filesystem::create_directories(folder / "models/hypernetworks");
  std::filesystem::create_symlink(tests_folder() / "plugins/goldens/unet/hypernetwork.pt",
                                  folder / "models/hypernetworks/net.pt");
  hold("sd1",
       patch("HypernetworkLoader", R"("hypernetwork_name": "net.pt", "strength": 0.8)", "loaded",
             "changed") +
           patch("HyperTile", tiles(2), "changed", "tiled") +
           patch("SelfAttentionGuidance", "", "tiled", "guided") + patch("FreeU_V2", "", "guided"),
       5 << 19);
}

BOOST_AUTO_TEST_CASE(a_patch_and_a_lora_come_in_any_order) {
  const std::string module = "lora_unet_up_blocks_0_resnets_0_conv1.";
  write_file("loras/changed", {seeded_tensor(module + "lora_up.weight", {64, 2, 1, 1}),
                               seeded_tensor(module + "lora_down.weight", {2, 128, 3, 3})});
  const std::string lora = R"("lora_name": "changed.safetensors", "strength_model": 1.0)";
  const std::vector<float> patched_first =
      draw("sd1",
           patch("FreeU", "", "loaded", "patched") + patch("LoraLoaderModelOnly", lora, "patched"));
  const std::vector<float> lora_first =
      draw("sd1",
           patch("LoraLoaderModelOnly", lora, "loaded", "changed") + patch("FreeU", "", "changed"));
  BOOST_TEST((patched_first == lora_first));
  BOOST_TEST((patched_first != draw("sd1", patch("FreeU", ""))));
}

BOOST_AUTO_TEST_CASE(a_control_net_steers_a_patched_unet) {
  write_file("controlnet/sd1", unet_control("sd1"));
  const std::string controls =
      node("net", "ControlNetLoader", R"("control_net_name": "sd1.safetensors")") +
      node("hint", "EmptyImage",
           R"("width": 128, "height": 64, "batch_size": 1, "color": 8421504)") +
      node("steered", "ControlNetApplyAdvanced",
           R"("positive": ["one", 0], "negative": ["two", 0], "control_net": ["net", 0],
              "image": ["hint", 0], "strength": 0.3, "start_percent": 0, "end_percent": 1)");
  const auto steered = [&](const std::string& patches) {
    std::string whole = flow("sd1", patches + controls);
    const std::string from = R"("positive": ["one", 0], "negative": ["two", 0], "latent_image")";
    const std::size_t at = whole.find(from);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    whole.replace(at, from.size(),
                  R"("positive": ["steered", 0], "negative": ["steered", 1], "latent_image")");
    return run_whole(whole, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  // Factors of 1 and tiles of everything change nothing but the order of sums.
  const std::string neutral =
      patch("FreeU", R"("b1": 1, "b2": 1, "s1": 1, "s2": 1)", "loaded", "free") +
      patch("HyperTile", R"("tile_size": 2048)", "free");
  const std::vector<float> plain = steered(
      node("model", "UNETLoader", R"("unet_name": "sd1.safetensors", "weight_dtype": "default")"));
  const double same = relative_error(steered(neutral), plain);
  BOOST_TEST(same < 1e-5, "changed by " << same);
  const double change = relative_error(steered(both()), plain);
  BOOST_TEST(change > 1e-3, "changed by " << change);
  const double control = relative_error(steered(both()), draw("sd1", both()));
  BOOST_TEST(control > 1e-3, "the ControlNet changes " << control);
}

BOOST_AUTO_TEST_CASE(models_that_are_no_unet_are_refused) {
  for (const char* type : {"FreeU", "FreeU_V2", "HyperTile", "SelfAttentionGuidance"}) {
    const std::string flow_of_flux =
        cat("{",
            node("loaded", "UNETLoader",
                 R"("unet_name": "plain.safetensors", "weight_dtype": "default")"),
            patch(type, ""),
            R"("look": {"class_type": "test.look", "inputs": {"value": ["model", 0]}}})");
    const std::string said = engine_refusal([&] { run_whole(flow_of_flux, {}); });
    BOOST_TEST(
        said.find(cat(type, " changes UNets, and the model is of 'flux'")) != std::string::npos,
        said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
