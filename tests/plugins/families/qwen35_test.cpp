// Qwen3.5, most of whose layers have a gated delta rule in the place of an attention: states,
// scores by the whole text and token by token, and pictures, on tiny models whose weights follow
// from their names, against transformers (make_qwen35_goldens.py).
#include <boost/test/unit_test.hpp>
#include <map>

#include "engine/base/json.h"
#include "tests/support/model_probe.h"
#include "tests/support/qwen35_model.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// transformers goes through chunks of 64 tokens, this token by token. Over eight layers
// transformers itself differs by 1.2e-5 between f32 and f64.
constexpr double kQwen35Tolerance = 2e-5;
constexpr std::int64_t kQwen35Length = 70;

struct Qwen35Fixture {
  static constexpr const char* kNames[] = {"small", "large"};

  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/qwen35";
  TensorFile expected{goldens / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(goldens / "configs.json"), "configs.json");

  std::string config(const std::string& name, const std::string& more = "") const {
    const heddle::engine::Json* found = configs.find(name);
    const std::string text = found == nullptr ? "{}" : heddle::engine::write_json(*found);
    return more.empty() ? text : "{" + more + (text == "{}" ? "" : ", ") + text.substr(1);
  }
  std::filesystem::path file(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "model.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& name) const { return file(qwen35_model(name)); }
  heddle::Results call(const std::filesystem::path& model, const std::string& config,
                       const std::string& prefix) {
    return probe.call({model, "text_encoder", config, goldens / "expected.safetensors", prefix});
  }
  void compare(const heddle::Results& results, const std::string& output,
               const std::string& golden) const {
    const double error =
        relative_error(results.floats("model.outputs", output), expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kQwen35Tolerance, golden << ": relative error " << error);
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

// A model that writes, and what it is given of the tokens before.
struct Qwen35Writer {
  Qwen35Fixture& test;
  const std::string name, config;
  const std::filesystem::path model;
  std::int64_t attention_every = 4, layers, room = 80, told = 0;
  std::map<std::string, FileTensor> kept;  // by the input's name

  Qwen35Writer(Qwen35Fixture& fixture, const std::string& which)
      : test(fixture),
        name(which),
        config(fixture.config(which, R"("writes_texts": true)")),
        model(fixture.file(which)),
        layers(which == "small" ? 4 : 8) {}

  static FileTensor numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                            const std::vector<float>& values) {
    return {name, "F32", shape, bytes_of_floats(values)};
  }
  bool has_attention(std::int64_t layer) const { return (layer + 1) % attention_every == 0; }

  // The next `count` tokens of the first row; its results.
  heddle::Results read(std::int64_t count) {
    const std::string all = test.expected.at(name + ".ids").bytes;
    std::vector<float> positions;
    for (std::int64_t i = told; i < told + count; ++i)
      positions.insert(positions.end(), 3, float(i));
    std::vector<FileTensor> inputs{
        {"in.ids", "I32", {1, count}, all.substr(std::size_t(4 * told), std::size_t(4 * count))},
        numbers("in.positions", {count, 3}, positions)};
    if (told > 0) {
      std::vector<float> hidden(std::size_t(room + 1), -1e30f);
      std::fill_n(hidden.begin(), told, 0.0f);
      hidden.back() = 0;
      inputs.push_back(numbers("in.seen", {1, room + 1}, hidden));
    }
    for (const auto& [input, tensor] : kept) inputs.push_back(tensor);
    const std::filesystem::path path = test.temporary / "inputs.safetensors";
    write_safetensors(path, inputs);
    const heddle::Results results = test.probe.call({model, "text_encoder", config, path, "in."});
    for (std::int64_t layer = 0; layer < layers; ++layer) keep(results, layer, count);
    told += count;
    return results;
  }
  void keep(const heddle::Results& results, std::int64_t layer, std::int64_t count) {
    const std::string number = std::to_string(layer);
    const auto made = [&](const char* what) {
      return results.floats("model.outputs", what + number + ".0");
    };
    if (!has_attention(layer)) {
      const bool is_small = name == "small";
      kept["tail." + number] = numbers(
          "in.tail." + number,
          is_small ? std::vector<std::int64_t>{1, 3, 128} : std::vector<std::int64_t>{1, 5, 216},
          made("tail."));
      kept["state." + number] = numbers("in.state." + number,
                                        is_small ? std::vector<std::int64_t>{1, 4, 16, 16}
                                                 : std::vector<std::int64_t>{1, 6, 24, 20},
                                        made("state."));
      return;
    }
    const std::vector<float> own = made("kept.");
    const auto width = std::int64_t(own.size()) / count;
    FileTensor& tensor = kept["kept." + number];
    if (tensor.name.empty())
      tensor = numbers("in.kept." + number, {1, room, width},
                       std::vector<float>(std::size_t(room * width), 0.0f));
    tensor.bytes.replace(std::size_t(4 * told * width), 4 * own.size(), bytes_of_floats(own));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen35, Qwen35Fixture)

BOOST_AUTO_TEST_CASE(states_equal_those_of_transformers) {
  for (const std::string name : kNames) {
    compare(call(file(name), config(name), name + "."), "last_hidden.0", name + ".last_hidden");
    compare(call(file(name), config(name, R"("hidden_layers": [3])"), name + "."), "last_hidden.0",
            name + ".layer.3");
  }
  // Behind a layer with an attention.
  compare(call(file("large"), config("large", R"("hidden_layers": [4])"), "large."),
          "last_hidden.0", "large.layer.4");
}

BOOST_AUTO_TEST_CASE(scores_of_a_text_are_the_same_at_once_and_token_by_token) {
  for (const std::string name : kNames) {
    compare(Qwen35Writer(*this, name).read(kQwen35Length), "logits.0", name + ".logits");
    Qwen35Writer behind(*this, name);
    behind.read(65);
    for (std::int64_t i = 66; i < kQwen35Length; ++i) behind.read(1);
    compare(behind.read(1), "logits.0", name + ".logits");
    Qwen35Writer alone(*this, name);
    for (std::int64_t i = 1; i < kQwen35Length; ++i) alone.read(1);
    compare(alone.read(1), "logits.0", name + ".logits");
  }
}

BOOST_AUTO_TEST_CASE(pictures_are_seen_as_transformers_sees_them) {
  for (const std::string name : kNames) {
    const std::int64_t height = name == "small" ? 64 : 96, width = name == "small" ? 96 : 32;
    FileTensor picture = seeded_tensor(name + ".picture", {height * width * 3});
    picture.shape = {1, height, width, 3};
    const std::filesystem::path path = temporary / "pictures.safetensors";
    write_safetensors(path, {picture});
    const std::string prefix = name + ".";
    compare(probe.call({file(name), "vision_encoder", config(name), path, prefix}), "tokens.0",
            name + ".shown.tokens");
    compare(call(file(name), config(name), name + ".shown."), "last_hidden.0",
            name + ".shown.last_hidden");
  }
}

BOOST_AUTO_TEST_CASE(single_files_may_have_the_text_alone) {
  std::vector<FileTensor> tensors = qwen35_model("small");
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find("visual.") != std::string::npos;
  });
  for (const std::string prefix : {"model.", "language_model.model.", ""}) {
    std::vector<FileTensor> named = tensors;
    for (FileTensor& tensor : named)
      if (const std::string whole = "model.language_model."; tensor.name.starts_with(whole))
        tensor.name = prefix + tensor.name.substr(whole.size());
    compare(call(file(named), "", "small."), "last_hidden.0", "small.last_hidden");
  }
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const std::string layer = "model.language_model.layers.";
  const auto refusal = [&](auto&& change, const std::string& config = "") {
    std::vector<FileTensor> tensors = qwen35_model("small");
    change(tensors);
    return engine_refusal([&] { call(file(tensors), config, "small."); });
  };
  const auto without = [&](const std::string& name) {
    return refusal([&](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    });
  };
  for (const char* tensor :
       {"1.linear_attn.A_log", "2.linear_attn.conv1d.weight", "1.linear_attn.in_proj_qkv.weight",
        "0.linear_attn.norm.weight", "3.self_attn.q_proj.weight", "3.self_attn.k_norm.weight",
        "2.mlp.down_proj.weight"})
    says(without(layer + tensor), {"model.safetensors", (layer + tensor).c_str()});
  says(refusal([&](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == layer + "1.linear_attn.conv1d.weight") tensor.shape = {128, 4};
       }),
       {"1.linear_attn.conv1d.weight", "(128, 4)", "(128, 1, 4)"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         tensors = {seeded_tensor("token_embd.weight", {320, 32}),
                    seeded_tensor("blk.0.ssm_conv1d.weight", {128, 4})};
       }),
       {"Qwen3.5", "gguf", "safetensors"});
  const auto nothing = [](std::vector<FileTensor>&) {};
  says(refusal(nothing, R"({"linear_key_head_dim": 13})"), {"128", "13", "config.json"});
  says(refusal(nothing, R"({"head_dim": 100})"), {"1024", "100", "config.json"});
  says(refusal(nothing, R"({"rope_parameters": {"mrope_section": [2, 29, 1]}})"),
       {"mrope_section", "29", "32"});
  says(refusal(nothing, R"({"masks_padding": true})"), {"qwen3.5", "padding"});
}

BOOST_AUTO_TEST_SUITE_END()
