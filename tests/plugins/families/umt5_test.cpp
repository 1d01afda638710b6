// UMT5 with weights that follow from their names, whole and through the engine, against what
// transformers makes of the same ones (make_umt5_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kUmt5Tolerance = 1e-5;

using Renaming = std::vector<std::pair<std::string, std::string>>;  // parts of names, in order
const Renaming kWanParts = {
    {"encoder.block.", "blocks."},
    {"layer.0.SelfAttention.relative_attention_bias", "pos_embedding.embedding"},
    {"layer.0.SelfAttention", "attn"},
    {"layer.0.layer_norm", "norm1"},
    {"layer.1.layer_norm", "norm2"},
    {"layer.1.DenseReluDense.wi_0", "ffn.gate.0"},
    {"layer.1.DenseReluDense.wi_1", "ffn.fc1"},
    {"layer.1.DenseReluDense.wo", "ffn.fc2"},
    {"encoder.final_layer_norm", "norm"},
    {"shared", "token_embedding"}};
const Renaming kLlamaParts = {{"encoder.block.", "enc.blk."},
                              {"layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
                              {"layer.0.SelfAttention.", "attn_"},
                              {"layer.0.layer_norm", "attn_norm"},
                              {"layer.1.layer_norm", "ffn_norm"},
                              {"layer.1.DenseReluDense.wi_0", "ffn_gate"},
                              {"layer.1.DenseReluDense.wi_1", "ffn_up"},
                              {"layer.1.DenseReluDense.wo", "ffn_down"},
                              {"encoder.final_layer_norm", "enc.output_norm"},
                              {"shared", "token_embd"}};

struct Umt5Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/umt5/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("text", false, "umt5");
    change(tensors);
    const std::filesystem::path path = temporary / "umt5.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const Renaming& parts = {}) const {
    return file([&](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors)
        for (const auto& [from, to] : parts)
          if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
            tensor.name.replace(at, from.size(), to);
    });
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& rows) {
    return probe.call({model, "text_encoder", "", golden, rows + ".", ""});
  }
  std::vector<float> states(const std::filesystem::path& model, const std::string& rows) {
    return call(model, rows).floats("model.outputs", "last_hidden.0");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(umt5, Umt5Fixture)

// The longer row reaches beyond the largest distance that buckets tell apart.
BOOST_AUTO_TEST_CASE(the_states_equal_transformers) {
  for (const std::string rows : {"short", "long"}) {
    const double error =
        relative_error(states(file(), rows), expected.floats(rows + ".last_hidden"));
    BOOST_TEST_MESSAGE(rows << ": relative error " << error);
    BOOST_TEST(error < kUmt5Tolerance, rows << ": relative error " << error);
  }
}

// Each layer has a bias of its own: T5's form, with the first one for all, gives other states.
BOOST_AUTO_TEST_CASE(every_layer_has_positions_of_its_own) {
  const auto drop = [](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) {
      return tensor.name.find("relative_attention_bias") != std::string::npos &&
             tensor.name.find("block.0.") == std::string::npos;
    });
  };
  BOOST_TEST(relative_error(states(file(drop), "short"), expected.floats("short.last_hidden")) >
             0.01);
}

BOOST_AUTO_TEST_CASE(other_names_and_a_prefix_give_the_same_bytes) {
  const std::vector<float> plain = states(file(), "short");
  BOOST_TEST(plain == states(file(kWanParts), "short"));
  BOOST_TEST(plain == states(file(kLlamaParts), "short"));
  BOOST_TEST(plain == states(file([](std::vector<FileTensor>& tensors) {
                               for (FileTensor& tensor : tensors)
                                 tensor.name = "text_encoders.umt5xxl.transformer." + tensor.name;
                             }),
                             "short"));
}

BOOST_AUTO_TEST_CASE(settings_tell_it_from_t5) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "short").text("model.settings"), "settings");
  BOOST_TEST(heddle::engine::write_json(*settings.find("kind")) == "\"umt5\"");
  BOOST_TEST(heddle::engine::write_json(*settings.find("vocabulary")) == "338");
}

BOOST_AUTO_TEST_SUITE_END()
