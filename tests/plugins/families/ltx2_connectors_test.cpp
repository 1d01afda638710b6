// The connectors between LTX 2's text encoder and its layers, with weights that follow from their
// names, against what diffusers makes of the same ones (make_ltx2_text_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// The bar of every family. Angles of the rotary table, up to 15708, are rounded to f32 here and in
// diffusers, in different places: with angles in double diffusers' results are 4e-5 from its own.
constexpr double kConnectorTolerance = 1e-4;

struct ConnectorsFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{tests_folder() / "plugins/goldens/ltx2_text/expected.safetensors"};

  template <class Change>
  std::filesystem::path file(const std::string& model, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, false, "ltx2_text");
    change(tensors);
    const std::filesystem::path path = temporary / "connectors.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& model) const {
    return file(model, [](std::vector<FileTensor>&) {});
  }
  // states: the golden that is the context.
  heddle::Results call(const std::filesystem::path& model, const std::string& states,
                       const std::string& more = "", const std::string& least = "32") {
    const TensorFile::Entry& entry = expected.at(states);
    const std::filesystem::path path = temporary / "inputs.safetensors";
    write_safetensors(path, {{"in.context", entry.dtype, entry.shape, entry.bytes}});
    return probe.call(
        {model, "text_connector", R"({"least_length": )" + least + more + "}", path, "in."});
  }
  void compare(const heddle::Results& results, const std::string& golden) const {
    for (const std::string kind : {"video", "audio"}) {
      const double error = relative_error(results.floats("model.outputs", kind + ".0"),
                                          expected.floats(golden + "." + kind));
      BOOST_TEST(error < kConnectorTolerance, golden << ", " << kind << ": " << error);
    }
  }
};

constexpr const char* kHeads =
    R"(, "connector_num_attention_heads": 2, "audio_connector_num_attention_heads": 2)";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_connectors, ConnectorsFixture)

BOOST_AUTO_TEST_CASE(registers_behind_the_text_equal_diffusers_in_place_of_padding) {
  for (const std::string name : {"one", "empty"})
    compare(call(file("projected"), name + ".states", kHeads), name);
}

BOOST_AUTO_TEST_CASE(gated_heads_and_a_context_for_each_stream_are_those_of_2_3) {
  // As many heads as gates.
  for (const std::string name : {"one23", "empty23"})
    compare(call(file("projected23"), name + ".states"), name);
}

BOOST_AUTO_TEST_CASE(rotated_pairs_may_be_neighbours) {
  compare(call(file("projected"), "one.states",
               kHeads + std::string(R"(, "rope_type": "interleaved")")),
          "one.interleaved");
}

BOOST_AUTO_TEST_CASE(names_of_diffusers_give_the_same) {
  const auto path = file("projected", [](std::vector<FileTensor>& tensors) {
    const std::pair<const char*, const char*> parts[] = {
        {"model.diffusion_model.video_embeddings_", "video_"},
        {"model.diffusion_model.audio_embeddings_", "audio_"},
        {"transformer_1d_blocks", "transformer_blocks"},
        {"q_norm", "norm_q"},
        {"k_norm", "norm_k"}};
    for (FileTensor& tensor : tensors)
      for (const auto& [from, to] : parts)
        if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
          tensor.name.replace(at, std::string(from).size(), to);
  });
  compare(
      call(
          path, "one.states",
          R"(, "video_connector_num_attention_heads": 2, "audio_connector_num_attention_heads": 2)"),
      "one");
}

// Ten tokens reach over the first eight registers: the other six are those of places 10 to 15.
BOOST_AUTO_TEST_CASE(registers_fill_the_last_multiple_that_a_text_reaches) {
  const heddle::Results results = call(file("projected"), "one.states", kHeads, "1");
  BOOST_TEST(results.floats("model.outputs", "video.0").size() == 16u * 24u);
  BOOST_TEST(call(file("projected"), "empty.states", kHeads, "1")
                 .floats("model.outputs", "video.0")
                 .size() == 8u * 24u);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_does_not_fit_is_said) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto damaged = file("projected", [](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) {
      return tensor.name.ends_with(
          "audio_embeddings_connector.transformer_1d_blocks.1.ff.net.2.bias");
    });
  });
  says(engine_refusal([&] { call(damaged, "one.states", kHeads); }),
       {"connectors.safetensors", "transformer_1d_blocks.1.ff.net.2.bias", "missing"});
  says(engine_refusal([&] { call(file("projected23"), "one.states"); }),
       {"width 32", "got 24", "LTXAVTextEncoderLoader"});
  says(engine_refusal([&] {
         call(file("projected"), "one.states", R"(, "connector_num_attention_heads": 5)");
       }),
       {"width 24", "5 heads"});
}

BOOST_AUTO_TEST_SUITE_END()
