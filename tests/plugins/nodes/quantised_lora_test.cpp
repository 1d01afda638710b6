// LoRAs on models with quantised weights, against what PyTorch makes of the widened weights with
// the products added (make_quantised_lora_goldens.py): the file's matrices stay as they are, what
// is added comes beside their products.
#include <cstring>

#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using heddle::Engine;
using heddle::EngineOptions;
using namespace heddle::test;

namespace {

// As for models without patches, see lora_test.cpp; a wrong term gives 1e-2 or more.
constexpr double kNearlyExact = 1e-5;

struct Stacked {
  std::string file;
  double strength = 0.75;
};

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const std::vector<Stacked> kStacked{{"gguf_diffusers", 0.75}, {"gguf_kohya", -0.5}};

struct QuantisedLorasFixture : NodeFixture {
  const std::filesystem::path quantised = tests_folder() / "plugins/goldens/quantised";
  const std::filesystem::path loras = tests_folder() / "plugins/goldens/quantised_loras";
  const TensorFile expected{loras / "expected.safetensors"};

  QuantisedLorasFixture() {
    const auto link = [&](const std::filesystem::path& file, const std::string& name) {
      std::filesystem::create_symlink(file, folder / "models" / name);
    };
    link(quantised / "flux.gguf", "unet/gguf.gguf");
    for (const std::string name : {"scaled", "f8_e4m3", "f8_e5m2", "packed"})
      link(quantised / ("flux_" + name + ".safetensors"),
           "diffusion_models/" + name + ".safetensors");
    link(quantised / "t5.gguf", "text_encoders/t5-tiny.gguf");
    for (const char* name :
         {"gguf_kohya.safetensors", "gguf_diffusers.safetensors", "t5_kohya.safetensors"})
      link(loras / name, std::string("loras/") + name);
  }

  EngineOptions exact_options(std::vector<std::string> devices, unsigned threads = 1) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions result = engine_options();
    if (kind == "fake") result.plugin_dirs.push_back(kFakePlugin);
    result.devices = std::move(devices);
    result.compute = {{kind, "f32"}};
    result.threads = threads;
    result.model_dirs = {folder / "models"};
    result.output_dir = folder / "out";
    return result;
  }

  static std::string file_of(const std::string& model) {
    return model + (model == "gguf" ? ".gguf" : ".safetensors");
  }
  std::string flow(const std::string& model, const std::vector<Stacked>& list,
                   const std::string& hints = "") const {
    std::string text = R"({"m0": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" +
                       file_of(model) + R"(", "weight_dtype": "default"})" + hints + "}";
    for (std::size_t i = 0; i < list.size(); ++i)
      text += ", \"m" + std::to_string(i + 1) +
              R"(": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["m)" +
              std::to_string(i) + R"(", 0], "lora_name": ")" + list[i].file +
              R"(.safetensors", "strength_model": )" + std::to_string(list[i].strength) + "}}";
    return text + R"(, "out": {"class_type": "test.call_given", "inputs": {"given": ["m)" +
           std::to_string(list.size()) + R"(", 0], "tensors": ")" +
           (quantised / "expected.safetensors").string() + R"(", "prefix": ")" +
           (model == "gguf" || model == "packed" ? "flux." : "flux_f8.") + R"("}}, )" + kLook + "}";
  }
  // Both noise levels, one after the other.
  std::vector<float> evaluate(Engine& on, const std::string& model,
                              const std::vector<Stacked>& list,
                              const std::string& hints = "") const {
    const auto results = on.start(on.parse(flow(model, list, hints)), {{}, {"out.outputs"}}).wait();
    std::vector<float> all = results.floats("out.outputs", "out.0");
    const std::vector<float> second = results.floats("out.outputs", "out.1");
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }
  void check(Engine& on, const std::string& model, const std::string& golden,
             const std::vector<Stacked>& list, const std::string& hints = "") const {
    const double error =
        relative_error(evaluate(on, model, list, hints), expected.floats(golden + ".out"));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kNearlyExact, golden << ": relative error " << error);
  }
  void check_bytes(const std::string& model) const {
    const std::vector<Stacked>& list = kStacked;
    Engine one(exact_options({"cpu:0"}));
    const std::vector<float> alone = evaluate(one, model, list);
    for (const unsigned threads : {2u, 3u}) {
      Engine engine(exact_options({"cpu:0"}, threads));
      BOOST_TEST(same_bytes(evaluate(engine, model, list), alone),
                 model << ", " << threads << " threads");
    }
    EngineOptions plain = exact_options({"cpu:0"});
    plain.reference_kernels = true;
    Engine loops(plain);
    const std::vector<float> by_loops = evaluate(loops, model, list);
    for (const std::string kind : {"cpu", "fake"}) {
      const std::string devices = kind + ":0," + kind + ":1";
      EngineOptions options = exact_options({kind + ":0", kind + ":1"});
      options.reference_kernels = kind == "fake";
      Engine engine(options);
      BOOST_TEST(same_bytes(evaluate(engine, model, list,
                                     R"(, "parallel": "layers", "device": ")" + devices + "\""),
                            kind == "fake" ? by_loops : alone),
                 model << " in layers on " << devices);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quantised_loras, QuantisedLorasFixture)

BOOST_AUTO_TEST_CASE(products_come_beside_matrices_in_blocks_as_pytorch_adds_them) {
  for (const bool plain_loops : {false, true}) {
    EngineOptions options = exact_options({"cpu:0"});
    options.reference_kernels = plain_loops;
    Engine on(options);
    check(on, "gguf", "gguf.kohya", {{"gguf_kohya"}});
    check(on, "gguf", "gguf.diffusers", {{"gguf_diffusers"}});
    check(on, "gguf", "gguf.stacked", kStacked);
  }
}

BOOST_AUTO_TEST_CASE(products_come_beside_matrices_of_8_bits_as_pytorch_adds_them) {
  Engine on(exact_options({"cpu:0"}));
  for (const std::string model : {"scaled", "f8_e4m3", "f8_e5m2"})
    check(on, model, model, {{"kohya"}});
}

// Matrices that are multiplied packed have products beside them, those that are widened are
// patched.
BOOST_AUTO_TEST_CASE(quantised_files_of_4_bits_are_patched_as_pytorch_does) {
  const TensorFile packed{quantised / "expected_packed.safetensors"};
  Engine on(exact_options({"cpu:0"}));
  BOOST_TEST(relative_error(evaluate(on, "packed", {{"gguf_kohya"}}), packed.floats("kohya.out")) <
             kNearlyExact);
  BOOST_TEST(relative_error(evaluate(on, "packed", {}), packed.floats("out")) < kNearlyExact);
}

// Queries, keys and values fill one matrix together; in the first layer they have several formats.
BOOST_AUTO_TEST_CASE(matrices_of_several_formats_are_patched_as_pytorch_does) {
  Engine on(exact_options({"cpu:0"}));
  const auto hidden = [&](const char* strength) {
    const std::string text =
        R"({"clip": {"class_type": "DualCLIPLoaderGGUF", "inputs": {"clip_name1": "clip_l.safetensors",
            "clip_name2": "t5-tiny.gguf", "type": "flux"}},
            "model": {"class_type": "UNETLoader", "inputs": {"unet_name": "gguf.gguf", "weight_dtype": "default"}},
            "lora": {"class_type": "LoraLoader", "inputs": {"model": ["model", 0], "clip": ["clip", 0],
            "lora_name": "t5_kohya.safetensors", "strength_model": 0, "strength_clip": )" +
        std::string(strength) +
        R"(}}, "out": {"class_type": "test.call_given", "inputs": {"given": ["lora", 1], "tensors": ")" +
        (quantised / "expected.safetensors").string() + R"(", "prefix": "t5."}}, )" + kLook + "}";
    return on.start(on.parse(text), {{}, {"out.outputs"}})
        .wait()
        .floats("out.outputs", "last_hidden.0");
  };
  const std::vector<float> wanted = expected.floats("t5.last_hidden");
  BOOST_TEST(relative_error(hidden("0.75"), wanted) < kNearlyExact);
  BOOST_TEST(relative_error(hidden("0"), wanted) > 1e-2);
}

BOOST_AUTO_TEST_CASE(a_strength_of_nothing_leaves_every_byte_and_another_is_seen) {
  Engine on(exact_options({"cpu:0"}));
  for (const std::string model : {"gguf", "scaled"}) {
    const std::string file = model == "gguf" ? "gguf_kohya" : "kohya";
    const std::vector<float> plain = evaluate(on, model, {});
    BOOST_TEST(same_bytes(evaluate(on, model, {{file, 0}}), plain), model);
    BOOST_TEST(relative_error(evaluate(on, model, {{file, 0.05}}), plain) > 1e-3, model);
  }
}

BOOST_AUTO_TEST_CASE(the_bytes_depend_neither_on_threads_nor_on_a_split_in_layers,
                     *boost::unit_test::label("long")) {
  for (const std::string model : {"gguf", "packed"}) check_bytes(model);
}

BOOST_AUTO_TEST_CASE(a_quantised_file_of_4_bits_is_streamed_to_the_same_bytes) {
  const FakeControl control;
  std::uint64_t once = 0;
  std::vector<float> roomy;
  bool is_streamed = false;
  for (std::uint64_t percent = 0; !is_streamed; percent -= 10) {  // none, then less and less
    EngineOptions options = exact_options({"fake:0"});
    options.reference_kernels = true;
    if (percent > 0) options.budgets["fake:0"] = once * percent / 100;
    Engine engine(options);
    const std::uint64_t before = control->bytes_copied(HEDDLE_FAKE_HOST, 0);
    const std::vector<float> values = evaluate(engine, "packed", {});
    const std::uint64_t copied = control->bytes_copied(HEDDLE_FAKE_HOST, 0) - before;
    if (percent == 0) {
      once = copied, roomy = values, percent = 200;
      continue;
    }
    is_streamed = copied > once;
    BOOST_TEST(same_bytes(values, roomy), percent << " percent");
    BOOST_TEST_REQUIRE((is_streamed || percent > 20));
  }
}

BOOST_AUTO_TEST_CASE(another_strength_makes_one_factor_of_each_touched_matrix_and_no_matrix) {
  const FakeControl control;
  EngineOptions options = exact_options({"fake:0"});
  options.reference_kernels = true;
  Engine engine(options);
  const auto made_by = [&](const std::vector<Stacked>& list) {
    const std::uint64_t before = control->weights(0);
    evaluate(engine, "gguf", list);
    return control->weights(0) - before;
  };
  const std::uint64_t all = made_by({});
  BOOST_TEST(all > 20u);
  // Of a double block two modulations, and queries, keys and values, projection and both layers of
  // the MLP of each stream; of a single block the modulation, and linear1 and linear2, which the
  // model has in parts.
  const std::uint64_t both = made_by({{"gguf_kohya", 1}});
  const std::uint64_t touched = made_by({{"gguf_kohya", 0.5}});
  BOOST_TEST(touched >= 2u + 2 * 4 + 3);
  BOOST_TEST(both == 2 * touched - 1);  // the parts of linear1 share the factor without a strength
  BOOST_TEST(made_by({{"gguf_kohya", 1}}) == 0u);
  BOOST_TEST(made_by({}) == 0u);
}

BOOST_AUTO_TEST_CASE(whole_differences_of_matrices_in_blocks_are_refused_with_their_type) {
  std::vector<float> numbers(192 * 64, 0.01f);
  folder.write("models/loras/whole.safetensors",
               safetensors_bytes({{"diffusion_model.double_blocks.0.img_attn.qkv.diff",
                                   "F32",
                                   {192, 64},
                                   bytes_of_floats(numbers)}}));
  Engine on(exact_options({"cpu:0"}));
  const std::string refused = engine_refusal([&] { evaluate(on, "gguf", {{"whole"}}); });
  for (const char* part : {"img_attn.qkv.weight' (192, 64)", "is quantised to q", "only products",
                           "img_attn.qkv.diff' (192, 64)", "16 or 32 bits"})
    BOOST_TEST(refused.find(part) != std::string::npos, part << " is not in " << refused);
}

// Kinds that are no products change the numbers themselves, which blocks cannot hold.
BOOST_AUTO_TEST_CASE(other_kinds_are_refused_on_matrices_in_blocks_with_their_type) {
  const std::string module = "lora_unet_double_blocks_0_img_attn_proj.";
  using Factors = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  const std::pair<const char*, Factors> kinds[] = {
      {"loha",
       {{"hada_w1_a", {64, 2}},
        {"hada_w1_b", {2, 64}},
        {"hada_w2_a", {64, 2}},
        {"hada_w2_b", {2, 64}}}},
      {"lokr", {{"lokr_w1", {8, 8}}, {"lokr_w2", {8, 8}}}},
      {"glora",
       {{"a1.weight", {64, 2}},
        {"a2.weight", {2, 64}},
        {"b1.weight", {64, 2}},
        {"b2.weight", {2, 64}}}},
      {"oft", {{"oft_blocks", {8, 8, 8}}}},
      {"boft", {{"oft_blocks", {2, 8, 8, 8}}}},
      {"dora",
       {{"lora_up.weight", {64, 2}}, {"lora_down.weight", {2, 64}}, {"dora_scale", {64, 1}}}}};
  for (const auto& kind : kinds) {
    const char* const name = kind.first;
    std::vector<FileTensor> tensors;
    for (const auto& [factor, shape] : kind.second)
      tensors.push_back(seeded_tensor(module + factor, shape));
    write_safetensors(folder / "models/loras" / (std::string(name) + ".safetensors"), tensors);
    Engine on(exact_options({"cpu:0"}));
    const std::string refused = engine_refusal([&] { evaluate(on, "gguf", {{name}}); });
    for (const char* part :
         {"img_attn.proj.weight", "is q4_1", "products alone can be added", "8, 16 or 32 bits"})
      BOOST_TEST(refused.find(part) != std::string::npos, name << ": " << refused);
  }
}

// A LoHa whose second product is of ones is its first product.
BOOST_AUTO_TEST_CASE(other_kinds_change_widened_matrices_of_8_bits) {
  const std::string module = "lora_unet_double_blocks_0_img_attn_proj.";
  const FileTensor up = seeded_tensor("up", {40, 2}), down = seeded_tensor("down", {2, 40});
  const auto named = [&](FileTensor tensor, const char* factor) {
    tensor.name = module + factor;
    return tensor;
  };
  const std::string ones = bytes_of_floats(std::vector<float>(40, 1.0f));
  write_safetensors(folder / "models/loras/product.safetensors",
                    {named(up, "lora_up.weight"), named(down, "lora_down.weight")});
  write_safetensors(folder / "models/loras/loha.safetensors",
                    {named(up, "hada_w1_a"), named(down, "hada_w1_b"),
                     FileTensor{module + "hada_w2_a", "F32", {40, 1}, ones},
                     FileTensor{module + "hada_w2_b", "F32", {1, 40}, ones}});
  Engine on(exact_options({"cpu:0"}));
  for (const std::string model : {"scaled", "f8_e4m3", "f8_e5m2"}) {
    const std::vector<float> product = evaluate(on, model, {{"product"}});
    const double error = relative_error(evaluate(on, model, {{"loha"}}), product);
    BOOST_TEST(error < kNearlyExact, model << ": relative error " << error);
    BOOST_TEST(relative_error(evaluate(on, model, {}), product) > 1e-3, model);
  }
}

BOOST_AUTO_TEST_SUITE_END()
