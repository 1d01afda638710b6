// IP-Adapters of Stable Diffusion 1.5 and SDXL, by the nodes of the well-known pack: workflows
// against PyTorch (../goldens/make_ip_adapter_goldens.py), and on several devices the same bytes.
#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/unet_controls.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct AdapterWorkflow : UnetWorkflow {
  const std::filesystem::path told =
      tests_folder() / "plugins/goldens/ip_adapter/expected.safetensors";
  const FakeControl control;

  AdapterWorkflow() {
    expected = TensorFile(told);
    write_file("clip_vision/tower", seeded_model("tower", false, "unclip"));
    for (const char* name : {"plain", "plus", "full", "plain_xl", "plus_xl"})
      write_file(cat("ipadapter/", name), adapter(name));
  }
  static std::vector<FileTensor> adapter(const std::string& name) {
    return seeded_model(name, false, "ip_adapter");
  }
  static std::string load(const std::string& name, const std::string& file) {
    return node(name, "IPAdapterModelLoader",
                cat(R"("ipadapter_file": ")", file, R"(.safetensors")"));
  }
  static std::string tower() {
    return node("tower", "CLIPVisionLoader", R"("clip_name": "tower.safetensors")");
  }
  // The two pictures of the goldens, and each by itself.
  std::string pictures() const {
    std::string nodes = given_of("both", "test.image", "pictures");
    for (const auto& [name, index] : {std::pair("first", 0), {"second", 1}})
      nodes += node(name, "ImageFromBatch",
                    cat(R"("image": ["both", 0], "length": 1, "batch_index": )", index));
    return nodes;
  }
  std::string given_of(const char* name, const char* type, const char* tensor) const {
    return node(name, type, cat(R"("path": ")", told.string(), R"(", "name": ")", tensor, "\""));
  }
  static std::string numbers(const char* weight, const char* type, const char* scaling = "V only",
                             const char* start = "0.0", const char* end = "1.0") {
    return cat(R"("weight": )", weight, R"(, "weight_type": ")", type, R"(", "start_at": )", start,
               R"(, "end_at": )", end, R"(, "embeds_scaling": ")", scaling, "\"");
  }
  static std::string apply(const std::string& name, const std::string& from,
                           const std::string& adapter, const std::string& image,
                           const std::string& rest, const std::string& combine = "concat") {
    return node(name, "IPAdapterAdvanced",
                cat(R"("model": [")", from, R"(", 0], "ipadapter": [")", adapter,
                    R"(", 0], "image": [")", image, R"(", 0], "clip_vision": ["tower", 0], )", rest,
                    R"(, "combine_embeds": ")", combine, "\""));
  }
  static std::string drawn(const std::string& sampler, const std::string& model,
                           const char* batch = "1") {
    return text("one", "a photo of a cat", R"(["model", 1])") + text("two", "", R"(["model", 1])") +
           node("empty", "EmptyLatentImage",
                cat(R"("width": 80, "height": 48, "batch_size": )", batch)) +
           "\"drawn\": " + ksampler(sampler + cat(R"(, "model": [")", model, R"(", 0])")) +
           R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}})";
  }
  std::vector<float> latent(const std::string& nodes) {
    return run_whole("{" + nodes + "}", {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
  void draw(const std::string& nodes, const std::string& name) {
    same(latent(nodes), name + ".latent");
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
  }
  // What PyTorch draws with the file "plain".
  std::string plain(const char* model = "adapted") const {
    return loader() + load("adapter", "plain") + tower() + pictures() +
           apply("adapted", "model", "adapter", "first", numbers("0.8", "linear")) +
           drawn(sampler("5.0", "euler", "normal", 4), model);
  }
  std::string refusal(const std::string& nodes) {
    return engine_refusal([&] { run_whole("{" + nodes + "}", {"drawn.LATENT"}); });
  }
  static void names(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    BOOST_TEST_REQUIRE(text.find(from) != std::string::npos, from);
    return text.replace(text.find(from), from.size(), to);
  }
  heddle::EngineOptions placed(std::vector<std::string> devices, std::uint64_t budget = 0) const {
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
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ip_adapter, AdapterWorkflow)

BOOST_AUTO_TEST_CASE(a_plain_one_equals_diffusers) {
  write("sd1");
  draw(plain(), "plain_drawn");
  // Without a weight, or outside its range, the model is the one without it.
  const std::vector<float> none = latent(plain("model"));
  BOOST_TEST(relative_error(none, expected.floats("plain_drawn.latent")) > 0.01);
  BOOST_TEST((latent(with(plain(), R"("weight": 0.8)", R"("weight": 0.0)")) == none));
}

// In either order: a node that builds the UNet anew keeps what another one has changed.
BOOST_AUTO_TEST_CASE(other_patches_of_the_unet_stay_beside_it, *boost::unit_test::label("long")) {
  write("sd1");
  const auto patched = [](const std::string& from) {
    return node(
               "tiled", "HyperTile",
               cat(R"("model": [")", from,
                   R"(", 0], "tile_size": 32, "swap_size": 1, "max_depth": 0, "scale_depth": false)")) +
           node("freed", "FreeU",
                R"("model": ["tiled", 0], "b1": 1.3, "b2": 1.4, "s1": 0.9, "s2": 0.2)");
  };
  const auto drawn_by = [&](bool is_before, bool is_adapted) {
    std::string nodes = loader() + load("adapter", "plain") + tower() + pictures();
    if (is_before) nodes += patched("model");
    if (is_adapted)
      nodes += apply("adapted", is_before ? "freed" : "model", "adapter", "first",
                     numbers("0.8", "linear"));
    if (!is_before) nodes += patched("adapted");
    return latent(nodes + drawn(sampler("5.0", "euler", "normal", 2),
                                is_before && is_adapted ? "adapted" : "freed"));
  };
  const std::vector<float> first = drawn_by(true, true), last = drawn_by(false, true),
                           alone = drawn_by(true, false);
  BOOST_TEST((first == last));
  BOOST_TEST(relative_error(alone, first) > 0.01);
  const std::vector<float> unpatched =
      latent(loader() + load("adapter", "plain") + tower() + pictures() +
             apply("adapted", "model", "adapter", "first", numbers("0.8", "linear")) +
             drawn(sampler("5.0", "euler", "normal", 2), "adapted"));
  BOOST_TEST(relative_error(unpatched, first) > 0.001);
}

BOOST_AUTO_TEST_CASE(the_node_without_a_choice_of_layers_draws_the_same) {
  write("sd1");
  write_file("clip_vision/CLIP-ViT-H-14-laion2B-s32B-b79K", seeded_model("tower", false, "unclip"));
  // Its file may be a link to one of another name, and folders may lead back to themselves.
  write_file("blob", adapter("plain"));
  const std::filesystem::path adapters = folder / "models/ipadapter";
  std::filesystem::create_symlink(folder / "models/blob.safetensors",
                                  adapters / "ip-adapter_sd15.safetensors");
  std::filesystem::create_directory_symlink(adapters, adapters / "again");
  write_file("ipadapter/ip-adapter_sd15_vit-G", adapter("plus"));
  std::string nodes =
      loader() + pictures() +
      node("unified", "IPAdapterUnifiedLoader",
           R"in("model": ["model", 0], "preset": "STANDARD (medium strength)")in") +
      node("adapted", "IPAdapter",
           R"("model": ["unified", 0], "ipadapter": ["unified", 1], "image": ["first", 0],
              "weight": 0.8, "weight_type": "standard", "start_at": 0.0, "end_at": 1.0)") +
      drawn(sampler("5.0", "euler", "normal", 4), "adapted");
  draw(nodes, "plain_drawn");
  names(refusal(with(nodes, "STANDARD (medium strength)", "PLUS (high strength)")),
        {"preset", "ip.adapter.plus.sd15", "Download the IP-Adapter"});
}

// A resampler in a part of the picture and of the way, for two pictures, and an MLP in all of both.
BOOST_AUTO_TEST_CASE(two_with_a_mask_and_a_range_equal_pytorch) {
  write("sd1");
  draw(loader() + load("adapter", "plus") + load("other", "full") + tower() + pictures() +
           given_of("mask", "test.mask", "mask") +
           apply("once", "model", "adapter", "both",
                 numbers("0.9", "ease out", "K+mean(V) w/ C penalty", "0.0", "0.5") +
                     R"(, "attn_mask": ["mask", 0])") +
           apply("adapted", "once", "other", "first", numbers("0.6", "weak input", "K+V")) +
           drawn(sampler("4.0", "euler", "normal", 4), "adapted"),
       "plus_drawn");
}

BOOST_AUTO_TEST_CASE(each_item_of_a_batch_has_a_picture_of_its_own) {
  write("sd1");
  draw(loader() + load("adapter", "plus") + tower() + pictures() +
           node("adapted", "IPAdapterBatch",
                R"("model": ["model", 0], "ipadapter": ["adapter", 0], "image": ["both", 0],
                   "clip_vision": ["tower", 0], "encode_batch_size": 0, )" +
                    numbers("1.0", "linear")) +
           drawn(sampler("4.0", "euler", "normal", 2), "adapted", "2"),
       "batch_drawn");
}

BOOST_AUTO_TEST_CASE(styles_and_compositions_of_sdxl_equal_pytorch,
                     *boost::unit_test::label("long")) {
  write("sdxl");
  const std::string loaded =
      loader() + load("adapter", "plain_xl") + load("other", "plus_xl") + tower() + pictures();
  draw(loaded + apply("once", "model", "adapter", "first", numbers("1.1", "style transfer")) +
           apply("adapted", "once", "other", "second", numbers("0.7", "style transfer precise")) +
           drawn(sampler("6.0", "euler", "normal", 4), "adapted"),
       "xl_drawn");
  draw(loaded +
           node("adapted", "IPAdapterStyleComposition",
                R"("model": ["model", 0], "ipadapter": ["other", 0], "image_style": ["first", 0],
                   "image_composition": ["second", 0], "clip_vision": ["tower", 0],
                   "weight_style": 1.2, "weight_composition": 0.8, "expand_style": false,
                   "combine_embeds": "average", "start_at": 0.0, "end_at": 1.0,
                   "embeds_scaling": "V only")") +
           drawn(sampler("6.0", "euler", "normal", 2), "adapted"),
       "composed_drawn");
}

BOOST_AUTO_TEST_CASE(pictures_encoded_before_draw_the_same) {
  write("sd1");
  const std::string loaded = loader() + load("adapter", "plus") + tower() + pictures();
  const std::string encoded =
      loaded +
      node(
          "encoded", "IPAdapterEncoder",
          R"("ipadapter": ["adapter", 0], "image": ["both", 0], "clip_vision": ["tower", 0], "weight": 1.0)") +
      node("combined", "IPAdapterCombineEmbeds",
           R"("embed1": ["encoded", 0], "method": "norm average")") +
      node("adapted", "IPAdapterEmbeds",
           R"("model": ["model", 0], "ipadapter": ["adapter", 0], "pos_embed": ["combined", 0],
              "neg_embed": ["encoded", 1], )" +
               numbers("1.0", "linear")) +
      node("look_c", "test.look", R"("value": ["combined", 0])") +
      drawn(sampler("4.0", "euler", "normal", 2), "adapted");
  const heddle::Results results =
      run_whole("{" + encoded + "}", {"drawn.LATENT", "combined.EMBEDS"});
  same(results.floats("combined.EMBEDS", ""), "combined");
  const std::vector<float> whole = latent(
      loaded +
      apply("adapted", "model", "adapter", "both", numbers("1.0", "linear"), "norm average") +
      drawn(sampler("4.0", "euler", "normal", 2), "adapted"));
  BOOST_TEST((results.floats("drawn.LATENT", "samples") == whole));
}

BOOST_AUTO_TEST_CASE(pictures_encoded_for_another_adapter_are_refused) {
  write("sd1");
  names(refusal(
            loader() + load("adapter", "plus") + load("other", "plain") + tower() + pictures() +
            node("encoded", "IPAdapterEncoder",
                 R"("ipadapter": ["adapter", 0], "image": ["both", 0], "clip_vision": ["tower", 0],
                    "weight": 1.0)") +
            node("adapted", "IPAdapterEmbeds",
                 R"("model": ["model", 0], "ipadapter": ["other", 0], "pos_embed": ["encoded", 0],
                    "neg_embed": ["encoded", 1], )" +
                     numbers("1.0", "linear")) +
            drawn(sampler("4.0", "euler", "normal", 2), "adapted")),
        {"embeddings are (2, ", "reads (pictures, 64)", "IPAdapterEncoder"});
}

BOOST_AUTO_TEST_CASE(a_mask_hides_a_part_of_the_pictures) {
  const std::string nodes =
      load("adapter", "plus") + tower() + pictures() + given_of("mask", "test.mask", "mask") +
      node("encoded", "IPAdapterEncoder",
           R"("ipadapter": ["adapter", 0], "image": ["both", 0], "clip_vision": ["tower", 0],
              "weight": 1.0, "mask": ["mask", 0])") +
      R"("look": {"class_type": "test.look", "inputs": {"value": ["encoded", 0]}})";
  same(run_whole("{" + nodes + "}", {"encoded.pos_embed"}).floats("encoded.pos_embed", ""),
       "masked");
}

BOOST_AUTO_TEST_CASE(files_make_the_tokens_of_diffusers) {
  ModelProbe probe;
  const heddle::Results seen = run_whole(
      "{" + tower() + pictures() +
          node("seen", "CLIPVisionEncode",
               R"("clip_vision": ["tower", 0], "image": ["first", 0], "crop": "center")") +
          R"("look": {"class_type": "test.look", "inputs": {"value": ["seen", 0]}}})",
      {"seen.CLIP_VISION_OUTPUT"});
  for (const auto& [name, field, shape] :
       {std::tuple("plain", "image_embeds", std::vector<std::int64_t>{1, 64}),
        {"plus", "penultimate", {1, 5, 64}},
        {"full", "penultimate", {1, 5, 64}}}) {
    const std::filesystem::path given = folder / cat(name, "_seen.safetensors");
    write_safetensors(given, {{"in.seen", "F32", shape,
                               bytes_of_floats(seen.floats("seen.CLIP_VISION_OUTPUT", field))}});
    same(probe
             .call({folder / "models/ipadapter" / cat(name, ".safetensors"), "ip_adapter", "",
                    given, "in."})
             .floats("model.outputs", "tokens.0"),
         std::string(name) + ".tokens");
  }
}

BOOST_AUTO_TEST_CASE(what_is_called_is_told_before_a_run) {
  write("sd1");
  const std::string grey = node("both", "EmptyImage",
                                R"("width": 44, "height": 30, "batch_size": 2, "color": 8421504)") +
                           node("mask", "SolidMask", R"("value": 0.5, "width": 20, "height": 9)");
  heddle::EngineOptions again = engine_options();
  again.model_dirs = {folder / "models"};
  heddle::Engine::Data data{again};
  check_inference(
      data, "{" + loader() + load("adapter", "plus") + load("other", "plain") + tower() + grey +
                apply("once", "model", "adapter", "both",
                      numbers("0.9", "style transfer precise", "K+V", "0.0", "0.5") +
                          R"(, "attn_mask": ["mask", 0])") +
                apply("adapted", "once", "other", "both", numbers("0.6", "linear"), "average") +
                drawn(sampler("4.0", "euler", "normal", 3), "adapted") + "}");
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused_by_name) {
  write("sd1");
  names(refusal(with(plain(), "plain.safetensors", "plain_xl.safetensors")),
        {"ipadapter", "11 transformer blocks", "width 128", "the model has 6", "width"});
  std::vector<FileTensor> faces = adapter("plain");
  faces.push_back(seeded_tensor("ip_adapter.0.to_q_lora.down.weight", {8, 32}));
  write_file("ipadapter/plain", faces);
  names(refusal(plain()),
        {"plain.safetensors", "FaceID", "InsightFace", "ip-adapter-plus-face_sd15"});
  std::vector<FileTensor> empty = adapter("plain");
  for (FileTensor& tensor : empty)
    if (tensor.name == "ip_adapter.1.to_k_ip.weight") tensor = {tensor.name, "F32", {32, 0}, {}};
  write_file("ipadapter/plain", empty);
  names(refusal(plain()), {"plain.safetensors", "'ip_adapter.1.to_k_ip.weight'", "no columns"});
  write_file("ipadapter/plain", unet_model("sd1"));
  names(refusal(plain()), {"plain.safetensors", "a diffusion model", "UNETLoader"});
  write_file("ipadapter/plain", adapter("plus"));
  std::vector<FileTensor> narrow = seeded_model("tower", false, "unclip");
  for (FileTensor& tensor : narrow)
    if (tensor.name == "visual_projection.weight") tensor = seeded_tensor(tensor.name, {32, 64});
  write_file("clip_vision/tower", narrow);
  write_file("ipadapter/plain", adapter("plain"));
  names(refusal(plain()), {"clip_vision", "32 numbers", "reads 64", "CLIP-ViT-H-14"});
  names(refusal(with(plain(), R"("clip_vision": ["tower", 0], )", "")),
        {"clip_vision", "IPAdapterUnifiedLoader"});
}

BOOST_AUTO_TEST_CASE(beside_a_lora_and_a_control_net_the_bytes_are_the_same_everywhere,
                     *boost::unit_test::label("long")) {
  write_file("diffusion_models/unet", unet_model("sd1"));
  write_file("controlnet/net", unet_control("sd1"));
  const char* module = "lora_unet_down_blocks_0_attentions_1_transformer_blocks_0_attn2_to_out_0";
  write_file("loras/change", {seeded_tensor(cat(module, ".lora_up.weight"), {32, 2}),
                              seeded_tensor(cat(module, ".lora_down.weight"), {2, 32})});
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.one.cross_attn", {1, 7, 64}),
                                                   seeded_tensor("in.two.cross_attn", {1, 4, 64})});
  const auto given_text = [&](const char* name) {
    return node(name, "test.conditioning",
                cat(R"("path": ")", (folder / "texts.safetensors").string(), R"(", "prefix": "in.)",
                    name, R"(", "option": "")"));
  };
  const auto lora = [](const char* name, const char* from) {
    return node(name, "LoraLoaderModelOnly",
                cat(R"("model": [")", from,
                    R"(", 0], "lora_name": "change.safetensors", "strength_model": 0.7)"));
  };
  const auto flow = [&](bool lora_first, const std::string& hints) {
    const std::string adapted =
        numbers("0.9", "ease in", "V only", "0.0", "0.6") + R"(, "attn_mask": ["mask", 0])";
    return "{" +
           node("model", "UNETLoader",
                R"("unet_name": "unet.safetensors", "weight_dtype": "default")") +
           load("adapter", "plus") + tower() + pictures() + given_of("mask", "test.mask", "mask") +
           given_text("one") + given_text("two") +
           (lora_first
                ? lora("changed", "model") + apply("last", "changed", "adapter", "both", adapted)
                : apply("adapted", "model", "adapter", "both", adapted) + lora("last", "adapted")) +
           node("net", "ControlNetLoader", R"("control_net_name": "net.safetensors")") +
           node("applied", "ControlNetApplyAdvanced",
                R"("positive": ["one", 0], "negative": ["two", 0], "control_net": ["net", 0],
                   "image": ["first", 0], "strength": 0.3, "start_percent": 0, "end_percent": 1)") +
           node("empty", "EmptyLatentImage", R"("width": 72, "height": 40, "batch_size": 2)") +
           node("drawn", "KSampler",
                R"("model": ["last", 0], "seed": 1, "steps": 2, "cfg": 2.0, "sampler_name": "euler",
                   "scheduler": "normal", "latent_image": ["empty", 0], "denoise": 1.0,
                   "positive": ["applied", 0], "negative": ["applied", 1])" +
                    hints) +
           R"("look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})";
  };
  const auto draws = [](heddle::EngineOptions options, const std::string& text) {
    heddle::Engine placed_engine(std::move(options));
    return placed_engine.start(placed_engine.parse(text), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  };
  const std::vector<float> alone = draws(placed({"cpu:0"}), flow(false, ""));
  BOOST_TEST(alone.size() == 2u * 4 * 5 * 9);
  BOOST_TEST((draws(placed({"cpu:0"}), flow(true, "")) == alone), "the LoRA first");
  for (const char* mode : {"layers", "data", "cfg"})
    BOOST_TEST((draws(placed({"fake:0", "fake:1"}),
                      flow(false, cat(R"(, "parallel": ")", mode,
                                      R"(", "device": "fake:0,fake:1")"))) == alone),
               mode);
  BOOST_TEST((draws(placed({"fake:0"}, 5 << 19), flow(false, "")) == alone), "little memory");
}

BOOST_AUTO_TEST_SUITE_END()
