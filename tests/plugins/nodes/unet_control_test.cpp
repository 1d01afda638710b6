// Stable Diffusion and SDXL with ControlNets, over models whose weights follow from their names,
// against PyTorch (../goldens/make_unet_control_goldens.py), on several devices, in little memory.
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/unet_control_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

BOOST_FIXTURE_TEST_SUITE(unet_control_workflows, UnetControlWorkflow)

BOOST_AUTO_TEST_CASE(two_control_nets_of_the_first_equal_pytorch,
                     *boost::unit_test::label("long")) {
  write("sd1");
  add_control("sd1");
  check(two_hints(picture()), "sd1_controlled");
  told_whole(two_hints(grey()));
}

BOOST_AUTO_TEST_CASE(a_control_net_with_a_text_of_its_own_equals_pytorch) {
  write("sd1");
  add_control("sd1");
  const auto flow = [&](const std::string& hint) {
    const auto worded = [](const char* from, const char* to) {
      return node(to, "CLIPTextEncodeControlnet",
                  cat(R"("clip": ["model", 1], "text": "", "conditioning": [")", from, R"(", 0])"));
    };
    return loader() + texts() + net("sd1") + hint + worded("one", "worded") +
           worded("two", "other") +
           node("applied", "ControlNetApplyAdvanced", R"("positive": ["worded", 0],
                "negative": ["other", 0], "control_net": ["net", 0], "image": ["hint", 0],
                "strength": 0.3, "start_percent": 0, "end_percent": 1)") +
           drawing(sampler("7.0", "euler", "normal") + kFromApplied);
  };
  check(flow(picture()), "worded_controlled");
  told_whole(flow(grey()));
}

// Where a positive conditioning has an area, the negative one gets it, too, with its ControlNet.
BOOST_AUTO_TEST_CASE(an_area_s_control_net_is_beside_the_negative_conditioning) {
  write("sd1");
  add_control("sd1");
  const auto drawn = [&](const std::string& negative) {
    const auto area = [](const char* from, const char* to) {
      const char* place = R"("width": 0.5, "height": 1.0, "x": 0, "y": 0, "strength": 1.0)";
      return node(to, "ConditioningSetAreaPercentage",
                  cat(place, R"(, "conditioning": [")", from, R"(", 0])"));
    };
    const auto both = [](const char* to, const char* whole, const char* part) {
      return node(to, "ConditioningCombine",
                  cat(R"("conditioning_1": [")", whole, R"(", 0], "conditioning_2": )", part));
    };
    const std::string nodes =
        loader() + texts() + net("sd1") + picture() + area("one", "left") + area("two", "bare") +
        node("applied", "ControlNetApplyAdvanced", R"("positive": ["left", 0], "strength": 0.3,
             "negative": ["bare", 0], "control_net": ["net", 0], "image": ["hint", 0],
             "start_percent": 0, "end_percent": 1)") +
        both("all", "one", R"(["applied", 0])") + both("others", "two", R"(["applied", 1])") +
        both("bares", "two", R"(["bare", 0])") +
        drawing(sampler("7.0", "euler", "normal") +
                cat(R"(, "positive": ["all", 0], "negative": [")", negative, R"(", 0])"));
    return run_whole("{" + nodes + "}", {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  const std::vector<float> added = drawn("two");
  BOOST_TEST((added == drawn("others")));
  BOOST_TEST(relative_error(added, drawn("bares")) > 100 * kTolerance);
}

// A file of what a ControlNet differs from the model by makes the ControlNet again.
BOOST_AUTO_TEST_CASE(a_control_net_of_differences_equals_pytorch) {
  write("sd1");
  std::vector<FileTensor> net = unet_control("sd1"), model = unet_model("sd1");
  name_control_as_original(net, 2);
  name_unet_as_original(model, 2);
  for (FileTensor& tensor : net) {
    for (const FileTensor& of_model : model) {
      if (of_model.name != tensor.name) continue;
      auto* const to = reinterpret_cast<float*>(tensor.bytes.data());
      const auto* const from = reinterpret_cast<const float*>(of_model.bytes.data());
      for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i) to[i] -= from[i];
    }
    tensor.name = "control_model." + tensor.name;
  }
  net.push_back({"difference", "F32", {1}, bytes_of_floats({1})});
  write_file("controlnet/sd1", net);
  std::string flow = two_hints(picture());
  BOOST_TEST(engine_refusal([&] { check(flow, "sd1_controlled"); }).find("DiffControlNetLoader") !=
             std::string::npos);
  const std::string plain = R"("ControlNetLoader", "inputs": {)";
  BOOST_TEST_REQUIRE(flow.find(plain) != std::string::npos);
  flow.replace(flow.find(plain), plain.size(),
               R"("DiffControlNetLoader", "inputs": {"model": ["model", 0], )");
  check(flow, "sd1_controlled");
}

BOOST_AUTO_TEST_CASE(a_control_net_of_sdxl_equals_pytorch) {
  write("sdxl");
  add_control("sdxl");
  check(loader() + texts() + net("sdxl") + picture() +
            applied("applied", "text", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)") +
            drawing(sampler("6.0", "dpmpp_2m", "karras") + kFromApplied),
        "sdxl_controlled");
}

// Its weights are those of the model with products added.
BOOST_AUTO_TEST_CASE(a_control_net_that_is_a_lora_equals_pytorch) {
  write("sd1");
  add_control("lora");
  const std::string flow =
      loader() + texts() + net("lora") + picture() +
      applied("applied", "text", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)") +
      drawing(sampler("7.0", "euler", "normal") + kFromApplied);
  check(flow, "lora_controlled");
  // By the names of diffusers, too.
  write_file("diffusion_models/unet", unet_model("sd1"));
  std::string named =
      flow + ", " +
      node("unet", "UNETLoader", R"("unet_name": "unet.safetensors", "weight_dtype": "default")");
  named = named.substr(0, named.rfind(','));
  const std::string from = R"("model":["model",0])";
  BOOST_TEST_REQUIRE(named.find(from) != std::string::npos);
  check(named.replace(named.find(from), from.size(), R"("model":["unet",0])"), "lora_controlled");
}

// What changes the model's weights changes the ControlNet's, too.
BOOST_AUTO_TEST_CASE(a_lora_of_the_model_reaches_a_control_net_that_is_a_lora) {
  write("sd1");
  add_control("lora");
  const std::string module = "lora_unet_down_blocks_0_resnets_0_conv1.";
  write_file("loras/changed", {seeded_tensor(module + "lora_up.weight", {32, 2, 1, 1}),
                               seeded_tensor(module + "lora_down.weight", {2, 32, 3, 3})});
  const auto drawn = [&](const char* lora_strength, const char* strength) {
    const std::string nodes =
        loader() + texts() + net("lora") + picture() +
        node("changed", "LoraLoaderModelOnly",
             cat(R"("model": ["model", 0], "lora_name": "changed.safetensors", "strength_model": )",
                 lora_strength)) +
        applied("applied", "text",
                cat(R"("strength": )", strength, R"(, "start_percent": 0, "end_percent": 1)")) +
        node("drawn", "KSampler",
             R"("model": ["changed", 0], "seed": 7, "steps": 1, "cfg": 1.0, "denoise": 1.0,
                "sampler_name": "euler", "scheduler": "normal", "latent_image": ["empty", 0])" +
                 std::string(kFromApplied)) +
        R"("look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}})";
    return run_whole("{" + nodes + "}", {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  // The model's file with the product in it is the same as its LoRA.
  const std::vector<float> by_lora = drawn("1.0", "0.3");
  for (FileTensor& tensor : checkpoint)
    if (tensor.name == "model.diffusion_model.input_blocks.1.0.in_layers.2.weight")
      add_product(tensor, seeded_tensor(module + "lora_up.weight", {32, 2, 1, 1}),
                  seeded_tensor(module + "lora_down.weight", {2, 32, 3, 3}));
  write_file("checkpoints/drawn", checkpoint);
  const double error = relative_error(drawn("0.0", "0.3"), by_lora);
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_union_control_net_by_its_node_equals_pytorch,
                     *boost::unit_test::label("long")) {
  write("sdxl");
  add_control("union");
  const auto flow = [&](const char* type) {
    return loader() + texts() + net("union", "all") + picture() +
           node("net", "SetUnionControlNetType",
                cat(R"("control_net": ["all", 0], "type": ")", type, "\"")) +
           applied("applied", "text", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)") +
           drawing(sampler("6.0", "dpmpp_2m", "karras") + kFromApplied);
  };
  check(flow("hed/pidi/scribble/ted"), "union_controlled");
  const std::string beyond = engine_refusal([&] { check(flow("tile"), "union_controlled"); });
  BOOST_TEST(beyond.find("knows 4 kinds of hints, and 'tile'") != std::string::npos, beyond);
}

BOOST_AUTO_TEST_CASE(adapters_alone_and_beside_a_control_net_equal_pytorch) {
  write("sd1");
  for (const char* name : {"sd1", "full"}) add_control(name);
  const std::string begin = loader() + texts() + picture() + net("full");
  const std::string drawn = drawing(sampler("7.0", "euler", "normal") + kFromApplied);
  check(begin +
            applied("applied", "text", R"("strength": 0.4, "start_percent": 0, "end_percent": 1)") +
            drawn,
        "adapted_controlled");
  std::string beside =
      applied("applied", "once", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)");
  beside.replace(beside.find(R"(["net", 0])"), 10, R"(["other", 0])");
  const auto both = [&](const std::string& hint) {
    return loader() + texts() + hint + net("full") + net("sd1", "other") +
           node("turned", "ImageFlip",
                R"("image": ["hint", 0], "flip_method": "y-axis: horizontally")") +
           applied("once", "text", R"("strength": 0.4, "start_percent": 0, "end_percent": 0.5)",
                   "turned") +
           beside + drawn;
  };
  check(both(picture()), "beside_controlled");
  told_whole(both(grey()));
}

// Where both add to one input of the model, what one picture makes counts for all items.
BOOST_AUTO_TEST_CASE(an_adapter_of_one_picture_goes_beside_one_of_a_picture_for_each_item,
                     *boost::unit_test::label("long")) {
  write("sd1");
  add_control("full");
  const auto flow = [&](const std::string& hint, const char* first, const char* strength) {
    return loader() + texts() + net("full") + hint +
           node("single", "ImageFromBatch",
                R"("image": ["hint", 0], "batch_index": 0, "length": 1)") +
           node("repeated", "RepeatImageBatch", R"("image": ["single", 0], "amount": 2)") +
           node("two_items", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 2)") +
           applied("once", "text",
                   cat(R"("strength": )", strength, R"(, "start_percent": 0, "end_percent": 1)"),
                   first) +
           applied("applied", "once", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)") +
           drawing(sampler("7.0", "euler", "normal", 2) + kFromApplied +
                   R"(, "latent_image": ["two_items", 0])");
  };
  const auto drawn = [&](const char* first, const char* strength) {
    return run_whole("{" + flow(picture(), first, strength) + "}", {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  const std::vector<float> repeated = drawn("repeated", "0.4");
  const double error = relative_error(drawn("single", "0.4"), repeated);
  BOOST_TEST_MESSAGE("one picture beside two: relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(relative_error(drawn("single", "0.0"), repeated) > 100 * kTolerance);
  told_whole(flow(grey(), "single", "0.4"));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct PlacedUnetControl : UnetControlWorkflow {
  const heddle::test::FakeControl control;

  heddle::EngineOptions options_for(std::vector<std::string> devices,
                                    std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    heddle::EngineOptions options = engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  static std::vector<float> draw(heddle::EngineOptions options, const std::string& flow) {
    heddle::Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_control_placed, PlacedUnetControl)

BOOST_AUTO_TEST_CASE(dividing_a_unet_with_a_control_net_keeps_its_bytes,
                     *boost::unit_test::label("long")) {
  write_file("diffusion_models/unet", unet_model("sd1"));
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.one.cross_attn", {1, 7, 64}),
                                                   seeded_tensor("in.two.cross_attn", {1, 4, 64})});
  const auto given_text = [&](const char* name) {
    return node(name, "test.conditioning",
                cat(R"("path": ")", (folder / "texts.safetensors").string(), R"(", "prefix": "in.)",
                    name, R"(", "option": "")"));
  };
  const auto flow = [&](const std::string& kind, const std::string& hints) {
    return "{" +
           node("model", "UNETLoader",
                R"("unet_name": "unet.safetensors", "weight_dtype": "default")") +
           given_text("one") + given_text("two") + net(kind) + picture() +
           applied("applied", "text",
                   R"("strength": 0.3, "start_percent": 0, "end_percent": 0.6)") +
           node("empty", "EmptyLatentImage", R"("width": 72, "height": 40, "batch_size": 2)") +
           node(
               "drawn", "KSampler",
               R"("model": ["model", 0], "seed": 1, "steps": 2, "cfg": 2.0, "sampler_name": "euler",
                "scheduler": "normal", "latent_image": ["empty", 0], "denoise": 1.0)" +
                   std::string(kFromApplied) + hints) +
           R"("look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})";
  };
  for (const std::string kind : {"sd1", "lora", "full"}) {
    add_control(kind);
    const std::vector<float> alone = draw(options_for({"cpu:0"}), flow(kind, ""));
    BOOST_TEST(alone.size() == 2u * 4 * 5 * 9);
    for (const char* mode : {"layers", "data", "cfg"})
      BOOST_TEST((alone == draw(options_for({"fake:0", "fake:1"}),
                                flow(kind, cat(R"(, "parallel": ")", mode,
                                               R"(", "device": "fake:0,fake:1")")))),
                 kind << ", " << mode);
    BOOST_TEST((alone == draw(options_for({"fake:0"}, 2 << 20), flow(kind, ""))),
               kind << ", little memory");
  }
}

BOOST_AUTO_TEST_SUITE_END()
