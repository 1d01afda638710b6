// Encoders of sound, wav2vec 2.0 in both of its forms and Whisper, with weights that follow from
// their names, against transformers (make_sound_encoder_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSoundTolerance = 1e-5;

struct SoundEncoders {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sound_encoders/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& model, bool older, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, older, "sound_encoders");
    change(tensors);
    const std::filesystem::path path = temporary / (model + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& model, bool older = false) const {
    return file(model, older, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& path, const std::string& model) {
    return probe.call({path, "audio_encoder", "", golden, model + "."});
  }
  void compare(const std::string& model, int layers) {
    const heddle::Results results = call(file(model), model);
    for (int i = 0; i <= layers; ++i) {
      const std::string name = i == layers ? "last_hidden" : "hidden." + std::to_string(i);
      const double error = relative_error(results.floats("model.outputs", name + ".0"),
                                          expected.floats(model + "." + name));
      BOOST_TEST_MESSAGE(model << " " << name << ": relative error " << error);
      BOOST_TEST(error < kSoundTolerance, model << " " << name << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sound_encoders, SoundEncoders)

BOOST_AUTO_TEST_CASE(states_of_a_sound_equal_transformers) {
  compare("stable", 3);
  compare("plain", 2);
}

BOOST_AUTO_TEST_CASE(states_of_a_spectrum_equal_transformers) { compare("whisper", 2); }

// Lengths of taps by their older names, under the prefix of a model that does more, or none.
BOOST_AUTO_TEST_CASE(older_names_and_prefixes_give_the_same_bytes) {
  for (const char* model : {"stable", "plain", "whisper"}) {
    const auto made = [&](bool older) {
      return call(file(model, older), model).floats("model.outputs", "last_hidden.0");
    };
    BOOST_TEST(made(false) == made(true), model);
  }
}

// What they round is far more than in 32 bits.
BOOST_AUTO_TEST_CASE(in_16_bits_the_states_are_near) {
  constexpr double kNear = 0.03;
  ModelProbe narrow("bf16");
  for (const std::string model : {"stable", "plain", "whisper"}) {
    const double error =
        relative_error(narrow.call({file(model), "audio_encoder", "", golden, model + "."})
                           .floats("model.outputs", "last_hidden.0"),
                       expected.floats(model + ".last_hidden"));
    BOOST_TEST_MESSAGE(model << ": relative error " << error);
    BOOST_TEST(error < kNear, model << ": relative error " << error);
    BOOST_TEST(error > kSoundTolerance, "nothing was rounded");
  }
}

BOOST_AUTO_TEST_CASE(what_a_file_of_an_encoder_lacks_is_said) {
  const auto says = [&](const char* model, const std::string& name) {
    const std::string text = engine_refusal([&] {
      call(file(model, false,
                [&](std::vector<FileTensor>& tensors) {
                  BOOST_TEST(std::erase_if(tensors, [&](const FileTensor& tensor) {
                               return tensor.name == name;
                             }) == 1u);
                }),
           model);
    });
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
  };
  says("stable", "feature_extractor.conv_layers.2.layer_norm.weight");
  says("stable", "encoder.layers.1.attention.k_proj.weight");
  says("plain", "feature_projection.layer_norm.bias");
  says("plain", "encoder.layers.1.feed_forward.output_dense.weight");
  says("whisper", "model.encoder.layers.1.self_attn.q_proj.bias");
}

BOOST_AUTO_TEST_SUITE_END()
