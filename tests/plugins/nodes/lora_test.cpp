// LoRA files of every key scheme on the tiny models of both layouts, against what diffusers and
// PEFT make of them (make_lora_goldens.py).
#include <cstring>
#include <mutex>

#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::Results;
using namespace heddle::test;

namespace {

// Most of it from the sines of the timestep embedding, see random_models_test.cpp; a wrong term
// gives 1e-2 or more.
constexpr double kExact = 1e-5;
constexpr double kEncoderTolerance = 5e-6;
constexpr int kStep = 1;  // of the noise levels 0.9, 0.55, 0.125: the one that the goldens have

struct Lora {
  std::string file;
  double strength = 0.75;
};

struct LorasFixture : NodeFixture {
  std::mutex guard;
  std::vector<std::string> logged;
  Engine exact{exact_options({"cpu:0"})};

  EngineOptions exact_options(std::vector<std::string> devices, unsigned threads = 1) {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions result = engine_options();
    if (kind == "fake") result.plugin_dirs.push_back(kFakePlugin);
    result.devices = std::move(devices);
    result.compute = {{kind, "f32"}};
    result.reference_kernels = true;
    result.threads = threads;
    result.model_dirs = {folder / "models"};
    result.output_dir = folder / "out";
    result.log = [this](int, std::string_view message) {
      const std::lock_guard lock(guard);
      logged.emplace_back(message);
    };
    return result;
  }
  TensorFile expected{tests_folder() / "plugins/goldens/loras/expected.safetensors"};

  // "m<n>" is the model with n of the LoRAs.
  static std::string models(const std::string& loader, const std::vector<Lora>& loras) {
    std::string text = "\"m0\": " + loader;
    for (std::size_t i = 0; i < loras.size(); ++i)
      text += ", \"m" + std::to_string(i + 1) +
              R"(": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["m)" +
              std::to_string(i) + R"(", 0], "lora_name": ")" + loras[i].file +
              R"(.safetensors", "strength_model": )" + std::to_string(loras[i].strength) + "}}";
    return text;
  }
  static std::string unet(const std::string& name, const std::string& hints = "") {
    return R"({"class_type": "UNETLoader", "inputs": {"unet_name": ")" + name +
           R"(.safetensors", "weight_dtype": "default"})" + hints + "}";
  }
  static std::string called(const std::string& node, const std::string& prefix) {
    return R"({"class_type": "test.call_given", "inputs": {"given": )" + node +
           R"(, "tensors": ")" + (random() / "expected.safetensors").string() +
           R"(", "prefix": ")" + prefix + R"("}})";
  }
  static std::string whole(const std::string& nodes) { return "{" + nodes + ", " + kLook + "}"; }

  static Results run_on(Engine& engine, const std::string& flow, std::vector<std::string> keep) {
    return engine.start(engine.parse(flow), {{}, std::move(keep)}).wait();
  }
  static std::vector<float> evaluate_on(Engine& engine, const std::string& loader,
                                        const std::vector<Lora>& loras) {
    const std::string last = "[\"m" + std::to_string(loras.size()) + "\", 0]";
    const std::string flow = whole(models(loader, loras) + ", \"out\": " + called(last, "flux."));
    return run_on(engine, flow, {"out.outputs"})
        .floats("out.outputs", "out." + std::to_string(kStep));
  }
  std::vector<float> evaluate(const std::string& file, const std::vector<Lora>& loras) {
    return evaluate_on(exact, unet(file), loras);
  }
  void check(const std::string& golden, const std::vector<Lora>& loras) {
    for (const auto& [layout, file] : {std::pair("diffusers", "plain"), {"original", "guided"}}) {
      const std::string name = std::string(layout) + "." + golden + ".out";
      if (!expected.has(name)) continue;
      const double error = relative_error(evaluate(file, loras), expected.floats(name));
      BOOST_TEST_MESSAGE(name << ": relative error " << error);
      BOOST_TEST(error < kExact, name << ": relative error " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(loras, LorasFixture)

BOOST_AUTO_TEST_CASE(the_keys_of_diffusers_give_what_diffusers_gives) {
  check("diffusers", {{"diffusers"}});
  // The plain model has no guidance embedder, which the file has factors for.
  BOOST_REQUIRE(logged.size() == 1u);
  BOOST_TEST(logged[0].find("4 of its 100 keys") != std::string::npos, logged[0]);
  BOOST_TEST(logged[0].find("guidance_embedder.linear_1.lora_A.weight") != std::string::npos,
             logged[0]);
}

BOOST_AUTO_TEST_CASE(the_keys_of_peft_give_what_peft_gives) {
  check("peft", {{"peft", 1}});
  BOOST_TEST(logged.empty());
}

BOOST_AUTO_TEST_CASE(the_keys_of_kohya_are_scaled_by_alpha_over_rank) {
  check("kohya", {{"kohya"}});
  BOOST_TEST(logged.empty());
  check("kohya_bf16", {{"kohya_bf16"}});
  check("negative", {{"kohya", -0.5}});
}

BOOST_AUTO_TEST_CASE(one_after_another_adds_both) {
  check("stacked", {{"diffusers", 0.75}, {"kohya", -0.5}});
}

// The files are in bf16, and fast kernels keep weights of them so that have no patch.
BOOST_AUTO_TEST_CASE(devices_that_compute_in_f32_do_not_round_the_sum) {
  const std::vector<float> fast =
      evaluate_on(engine, unet("guided"), {{"diffusers", 0.75}, {"kohya", -0.5}});
  BOOST_TEST(relative_error(fast, expected.floats("original.stacked.out")) < kExact);
}

BOOST_AUTO_TEST_CASE(differences_of_weights_and_biases_are_added_to_their_rows) {
  check("difference", {{"difference"}});
}

BOOST_AUTO_TEST_CASE(a_strength_of_nothing_leaves_every_byte) {
  const std::vector<float> plain = evaluate("plain", {}),
                           same = evaluate("plain", {{"diffusers", 0}});
  BOOST_TEST((plain == same));
  BOOST_TEST(relative_error(evaluate("plain", {{"diffusers"}}), plain) > 0.01);
}

BOOST_AUTO_TEST_CASE(the_bytes_depend_neither_on_threads_nor_on_a_split_in_layers) {
  const std::vector<Lora> both{{"diffusers", 0.75}, {"kohya", -0.5}};
  for (const char* file : {"plain", "guided"}) {
    const std::vector<float> alone = evaluate(file, both);
    const auto same = [&](const std::vector<float>& other) {
      return other.size() == alone.size() &&
             std::memcmp(other.data(), alone.data(), alone.size() * sizeof(float)) == 0;
    };
    for (const unsigned threads : {2u, 3u, 4u}) {
      Engine engine(exact_options({"cpu:0"}, threads));
      BOOST_TEST(same(evaluate_on(engine, unet(file), both)), threads << " threads");
    }
    for (const std::string kind : {"cpu", "fake"}) {
      const std::string list = kind + ":0," + kind + ":1";
      const std::string hints = ", \"parallel\": \"layers\", \"device\": \"" + list + "\"";
      Engine engine(exact_options({kind + ":0", kind + ":1"}));
      BOOST_TEST(same(evaluate_on(engine, unet(file, hints), both)), "layers on " << list);
    }
  }
}

BOOST_AUTO_TEST_CASE(another_strength_makes_only_the_touched_weights_anew) {
  Engine engine(exact_options({"fake:0"}));
  const FakeControl control;
  const auto made_by = [&](const std::vector<Lora>& loras) {
    const std::uint64_t before = control->weights(0);
    evaluate_on(engine, unet("guided"), loras);
    return control->weights(0) - before;
  };
  const std::uint64_t all = made_by({});
  BOOST_TEST(all > 60u);
  // Queries, keys, values and their projections, twice in each of two double blocks; the matrix of
  // queries, keys and values and that of the MLP in each of two single blocks.
  BOOST_TEST(made_by({{"peft", 1}}) == 2u * 4 + 2u * 2);
  BOOST_TEST(made_by({{"peft", 0.5}}) == 2u * 4 + 2u * 2);
  BOOST_TEST(made_by({{"diffusers", 0.5}, {"peft", 0.5}}) > 2u * 4 + 2u * 2);
  BOOST_TEST(made_by({{"peft", 1}}) == 0u);
  BOOST_TEST(made_by({}) == 0u);
}

BOOST_AUTO_TEST_CASE(another_strength_reads_no_untouched_weight_from_the_file_again) {
  using Bytes = std::pair<std::uint64_t, std::uint64_t>;  // read for the first time, again
  const auto read_by = [&](Engine& engine, const std::vector<Lora>& loras) -> Bytes {
    const heddle::MemoryReport before = engine.host_memory();
    evaluate_on(engine, unet("guided"), loras);
    const heddle::MemoryReport after = engine.host_memory();
    return {after.read_first - before.read_first, after.read_again - before.read_again};
  };
  Engine fake(exact_options({"fake:0"}));
  const FakeControl control;
  const Bytes all = read_by(fake, {});
  BOOST_TEST(all.first > 0u);
  BOOST_TEST(all.second == 0u);
  for (const double strength : {1.0, 0.5})
    BOOST_TEST((read_by(fake, {{"peft", strength}}) == Bytes{}));  // the host has them
  // Devices in host memory have made their own form, and the file's pages are given back: what is
  // patched is read for that, and nothing else.
  Engine cpu(exact_options({"cpu:0"}));
  BOOST_TEST((read_by(cpu, {}) == all));
  const Bytes touched = read_by(cpu, {{"peft", 1}});
  BOOST_TEST(touched.first == 0u);
  BOOST_TEST(touched.second > 0u);
  BOOST_TEST(touched.second < all.first / 2);
  BOOST_TEST((read_by(cpu, {{"peft", 0.5}}) == touched));
  BOOST_TEST((read_by(cpu, {{"peft", 1}}) == Bytes{}));
  BOOST_TEST((read_by(cpu, {}) == Bytes{}));
}

BOOST_AUTO_TEST_CASE(devices_that_divide_matrices_patch_each_their_own_rows_and_columns) {
  Engine engine(exact_options({"cpu:0", "cpu:1"}));
  const std::string hints = R"(, "parallel": "tensor", "device": "cpu:0,cpu:1")";
  for (const auto& [layout, file] : {std::pair("diffusers", "plain"), {"original", "guided"}}) {
    const double error = relative_error(
        evaluate_on(engine, unet(file, hints), {{"diffusers", 0.75}, {"kohya", -0.5}}),
        expected.floats(std::string(layout) + ".stacked.out"));
    BOOST_TEST(error < kExact, layout << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(text_encoders_are_patched_by_the_other_strength) {
  const auto with = [&](const std::string& strengths) {
    return R"("loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
       "lora": {"class_type": "LoraLoader", "inputs": {"model": ["loader", 0], "clip": ["loader", 1],
                "lora_name": "kohya.safetensors", )" +
           strengths + "}}";
  };
  const Results results = run_on(
      exact,
      whole(with(R"("strength_model": -0.5, "strength_clip": 0.75)") + ", \"out\": " +
            called(R"(["lora", 0])", "flux.") + ", \"clip\": " + called(R"(["lora", 1])", "clip.") +
            ", \"t5\": " + called(R"(["lora", 1])", "t5.") +
            R"(, "look2": {"class_type": "test.look", "inputs": {"value": ["clip", 0]}},
                 "look3": {"class_type": "test.look", "inputs": {"value": ["t5", 0]}})"),
      {"out.outputs", "clip.outputs", "t5.outputs"});
  const auto error = [&](const std::string& node, const std::string& field,
                         const std::string& golden) {
    return relative_error(results.floats(node + ".outputs", field), expected.floats(golden));
  };
  BOOST_TEST(error("out", "out." + std::to_string(kStep), "diffusers.negative.out") < kExact);
  BOOST_TEST(error("clip", "penultimate.0", "clip.penultimate") < kEncoderTolerance);
  BOOST_TEST(error("clip", "pooled.0", "clip.pooled") < kEncoderTolerance);
  BOOST_TEST(error("t5", "last_hidden.0", "t5.last_hidden") < kEncoderTolerance);
  BOOST_TEST(logged.empty());
  // The model's strength alone leaves the encoders as they are.
  const Results plain = run_on(exact,
                               whole(with(R"("strength_model": 1, "strength_clip": 0)") +
                                     ", \"out\": " + called(R"(["lora", 1])", "t5.")),
                               {"out.outputs"});
  const TensorFile unpatched(random() / "expected.safetensors");
  BOOST_TEST(relative_error(plain.floats("out.outputs", "last_hidden.0"),
                            unpatched.floats("t5.last_hidden")) < kEncoderTolerance);
}

BOOST_AUTO_TEST_CASE(rows_of_files_are_added_one_after_another) {
  const std::string rows =
      R"("loras.0.lora_name": "diffusers.safetensors", "loras.0.strength": 0.75, "loras.0.enabled": true,
         "loras.1.lora_name": "peft.safetensors", "loras.1.strength": 1.0, "loras.1.enabled": false,
         "loras.2.lora_name": "peft.safetensors", "loras.2.strength": 0, "loras.2.enabled": true,
         "loras.4.lora_name": "kohya.safetensors", "loras.4.strength": -0.5, "loras.4.enabled": true)";
  const auto model = [&](const std::string& given) {
    return run_on(
               exact,
               whole("\"m0\": " + unet("guided") +
                     R"(, "m1": {"class_type": "LoadLoraModel", "inputs": {"model": ["m0", 0], )" +
                     given + R"(}}, "out": )" + called(R"(["m1", 0])", "flux.")),
               {"out.outputs"})
        .floats("out.outputs", "out." + std::to_string(kStep));
  };
  BOOST_TEST(relative_error(model(rows), expected.floats("original.stacked.out")) < kExact);
  const Results encoders = run_on(
      exact,
      whole(R"("loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
               "lora": {"class_type": "LoadLoraTextEncoder", "inputs": {"clip": ["loader", 1],
                        "loras.0.lora_name": "kohya.safetensors", "loras.0.strength": 0.75}}, )"
            "\"out\": " +
            called(R"(["lora", 0])", "t5.")),
      {"out.outputs"});
  BOOST_TEST(relative_error(encoders.floats("out.outputs", "last_hidden.0"),
                            expected.floats("t5.last_hidden")) < kEncoderTolerance);
  for (const char* name :
       {"loras.01.lora_name", "loras.20.lora_name", "loras.x.lora_name", "loras.0"}) {
    const std::string text = heddle::test::engine_refusal(
        [&] { model("\"" + std::string(name) + R"(": "peft.safetensors")"); });
    BOOST_TEST(text.find("rows are called loras.0.NAME to loras.19.NAME") != std::string::npos,
               text);
  }
}

BOOST_AUTO_TEST_CASE(the_loaders_list_the_files_of_the_folder) {
  for (const std::string type : {"LoraLoader", "LoraLoaderModelOnly"}) {
    const heddle::engine::Json info =
        heddle::engine::parse_json(exact.object_info(type), type).at(type);
    const auto& files = info.at("input").at("required").at("lora_name").at(std::size_t{0});
    BOOST_TEST(files.at(std::size_t{0}).as_string() == "difference.safetensors");
  }
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct Files : LorasFixture {
  // What is said of a file with these tensors of one element.
  std::string refusal(const std::vector<FileTensor>& tensors) {
    folder.write("models/loras/made.safetensors", safetensors_bytes(tensors));
    return engine_refusal([&] { evaluate("plain", {{"made"}}); });
  }
  static FileTensor tensor(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return {name,
            "F32",
            {rows, columns},
            bytes_of_floats(std::vector<float>(std::size_t(rows * columns), 0.5f))};
  }
  static void check_says(const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      BOOST_TEST((text.find(part) != std::string::npos), "'" << part << "' is not in: " << text);
  }
};

constexpr const char* kQuery = "transformer.transformer_blocks.0.attn.to_q";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lora_files, Files)

BOOST_AUTO_TEST_CASE(a_file_of_another_model_is_refused_with_the_schemes_that_were_tried) {
  check_says(refusal({tensor("lora_unet_input_blocks_1_0.lora_down.weight", 2, 4),
                      tensor("lora_unet_input_blocks_1_0.lora_up.weight", 4, 2)}),
             {"made.safetensors", "none of its 2 keys", "lora_unet_input_blocks_1_0", "diffusers",
              "PEFT", "kohya"});
}

BOOST_AUTO_TEST_CASE(factors_that_do_not_fit_are_refused_with_both_shapes) {
  const std::string query = kQuery;
  check_says(
      refusal({tensor(query + ".lora_A.weight", 2, 48), tensor(query + ".lora_B.weight", 40, 2)}),
      {"lora_A.weight' (2, 48)", "transformer_blocks.0.attn.to_q.weight' (40, 40)"});
  check_says(
      refusal({tensor(query + ".lora_A.weight", 2, 40), tensor(query + ".lora_B.weight", 40, 3)}),
      {"(2, 40)", "(40, 3)", "ranks"});
  check_says(
      refusal({tensor(query + ".lora_A.weight", 2, 40), tensor(query + ".lora_B.weight", 41, 2)}),
      {"(41, 2)", "(40, 40)"});
}

BOOST_AUTO_TEST_CASE(half_of_a_product_and_two_adapters_at_once_are_refused) {
  const std::string query = kQuery;
  check_says(refusal({tensor(query + ".lora_A.weight", 2, 40)}), {"lora_A.weight", "incomplete"});
  check_says(refusal({tensor(query + ".lora_A.default.weight", 2, 40),
                      tensor(query + ".lora_A.other.weight", 2, 40)}),
             {"two adapters", "lora_A.default.weight", "lora_A.other.weight"});
}

BOOST_AUTO_TEST_CASE(what_matches_nothing_is_left_out_with_one_warning) {
  const std::string query = kQuery;
  folder.write(
      "models/loras/some.safetensors",
      safetensors_bytes(
          {tensor(query + ".lora_A.weight", 2, 40), tensor(query + ".lora_B.weight", 40, 2),
           tensor("transformer.unheard_of.lora_A.weight", 2, 40),
           tensor("transformer.unheard_of.lora_B.weight", 40, 2), tensor("ostris", 1, 1)}));
  const std::vector<float> patched = evaluate("plain", {{"some"}});
  BOOST_REQUIRE(logged.size() == 1u);
  check_says(logged[0],
             {"some.safetensors", "3 of its 5 keys", "unheard_of.lora_A.weight", "ostris"});
  BOOST_TEST(relative_error(patched, evaluate("plain", {})) > 1e-3);
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_told_with_the_places_searched) {
  check_says(engine_refusal([&] { evaluate("plain", {{"is_not_there"}}); }),
             {"is_not_there.safetensors", "loras"});
}

BOOST_AUTO_TEST_SUITE_END()
