// SAM 3 and SAM 3.1 with weights that follow from their names, against transformers
// (make_sam3_goldens.py): the detector as a whole and after its encoder of pictures, and the masks
// of points, a box and a mask.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <regex>
#include <set>

#include "engine/base/json.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

constexpr double kSam3Tolerance = 1e-5;
using Sam3Tensors = std::vector<FileTensor>;

struct Sam3Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/sam3/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& model, Change&& change) const {
    Sam3Tensors tensors = seeded_model(model, false, "sam3");
    change(tensors);
    const std::filesystem::path path = temporary / (model + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& model) const {
    return file(model, [](Sam3Tensors&) {});
  }
  heddle::Results call(const std::filesystem::path& path, const std::string& config,
                       const std::string& prefix) {
    return probe.call({path, "diffusion_model", config, golden, prefix});
  }
  void compare(const heddle::Results& made, const std::string& prefix, const std::string& name) {
    const double error =
        relative_error(made.floats("model.outputs", name + ".0"), expected.floats(prefix + name));
    BOOST_TEST_MESSAGE(prefix << name << ": relative error " << error);
    BOOST_TEST(error < kSam3Tolerance, prefix << name << ": relative error " << error);
  }
  std::string refusal(const std::string& model, const std::string& config,
                      const std::string& changed) {
    return engine_refusal([&] {
      call(file(model,
                [&](Sam3Tensors& tensors) {
                  BOOST_TEST(std::erase_if(tensors, [&](const FileTensor& tensor) {
                               return tensor.name == changed;
                             }) == 1u);
                }),
           config, "sam3.112.");
    });
  }
};

const char* const kFound[] = {"boxes", "scores", "presence", "masks"};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sam3, Sam3Fixture)

constexpr int kSam3Sizes[] = {112, 56};
BOOST_DATA_TEST_CASE_F(Sam3Fixture, what_is_found_in_a_picture_equals_transformers,
                       boost::unit_test::data::make(kSam3Sizes), size) {
  const std::string number = std::to_string(size), prefix = "sam3." + number + ".",
                    config = R"({"image_size": )" + number;
  const heddle::Results whole = call(file("sam3"), config + "}", prefix);
  for (const char* name : kFound) compare(whole, prefix, name);
  compare(call(file("sam3"), config + R"(, "part": "trunk"})", prefix), prefix, "hidden");
  const heddle::Results later = call(file("sam3"), config + R"(, "part": "detector"})", prefix);
  for (const char* name : kFound) compare(later, prefix, name);
}

constexpr const char* kSam3Models[] = {"sam3", "sam31"};
constexpr const char* kSam3Prompts[] = {"points", "box", "mask"};
BOOST_DATA_TEST_CASE_F(Sam3Fixture, masks_of_prompts_equal_transformers,
                       boost::unit_test::data::make(kSam3Models) *
                           boost::unit_test::data::make(kSam3Prompts),
                       model, prompt) {
  const std::string prefix = std::string(model) + "." + prompt + ".";
  const heddle::Results made =
      call(file(model), R"({"image_size": 112, "part": "segmenter"})", prefix);
  const std::vector<float> masks = expected.floats(prefix + "masks");
  const auto each = std::ptrdiff_t(masks.size() / 4);
  for (std::ptrdiff_t i = 0; i < 4; ++i) {
    const double error =
        relative_error(made.floats("model.outputs", "mask." + std::to_string(i) + ".0"),
                       {masks.begin() + i * each, masks.begin() + (i + 1) * each});
    BOOST_TEST_MESSAGE(prefix << "mask " << i << ": relative error " << error);
    BOOST_TEST(error < kSam3Tolerance, prefix << "mask " << i << ": relative error " << error);
  }
  compare(made, prefix, "qualities");
  compare(made, prefix, "object");
}

// What they round is far more than in 32 bits.
BOOST_AUTO_TEST_CASE(in_16_bits_what_is_found_is_near) {
  constexpr double kNear = 0.05;
  ModelProbe narrow("bf16");
  const heddle::Results made =
      narrow.call({file("sam3"), "diffusion_model", R"({"image_size": 112})", golden, "sam3.112."});
  for (const char* name : kFound) {
    const double error = relative_error(made.floats("model.outputs", std::string(name) + ".0"),
                                        expected.floats(std::string("sam3.112.") + name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kNear, name << ": relative error " << error);
    BOOST_TEST(error > kSam3Tolerance, name << ": nothing was rounded");
  }
}

// Queries, keys and values of ComfyUI's own names are three tensors.
BOOST_AUTO_TEST_CASE(attentions_in_three_tensors_give_the_same_bytes) {
  const auto split = [](Sam3Tensors& tensors) {
    Sam3Tensors out;
    for (const FileTensor& tensor : tensors) {
      const std::size_t at = tensor.name.find("in_proj_");
      if (at == std::string::npos) {
        out.push_back(tensor);
        continue;
      }
      const std::size_t third = tensor.bytes.size() / 3;
      for (std::size_t i = 0; i < 3; ++i) {
        FileTensor part{
            tensor.name.substr(0, at) + "qkv"[i] + "_proj." + tensor.name.substr(at + 8),
            tensor.dtype, tensor.shape, tensor.bytes.substr(i * third, third)};
        part.shape[0] /= 3;
        out.push_back(part);
      }
    }
    tensors = std::move(out);
  };
  const std::string config = R"({"image_size": 56})";
  const heddle::Results joined = call(file("sam3"), config, "sam3.56."),
                        apart = call(file("sam3", split), config, "sam3.56.");
  for (const char* name : kFound)
    BOOST_TEST(joined.floats("model.outputs", std::string(name) + ".0") ==
                   apart.floats("model.outputs", std::string(name) + ".0"),
               name);
}

BOOST_AUTO_TEST_CASE(what_a_file_lacks_is_said) {
  const auto says = [&](const std::string& config, const std::string& name) {
    const std::string text = refusal("sam3", config, name);
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
  };
  const std::string whole = R"({"image_size": 112})",
                    segmenter = R"({"image_size": 112, "part": "segmenter"})";
  says(whole, "detector.backbone.vision_backbone.trunk.blocks.3.mlp.fc2.bias");
  says(whole, "detector.geometry_encoder.cls_embed.weight");
  says(whole, "detector.transformer.decoder.layers.1.ca_text.in_proj_weight");
  says(whole, "detector.segmentation_head.mask_predictor.mask_embed.layers.1.weight");
  says(segmenter, "tracker.model.sam_prompt_encoder.point_embeddings.2.weight");
  says(segmenter, "tracker.model.sam_mask_decoder.mask_tokens.weight");
}

BOOST_AUTO_TEST_CASE(configs_that_do_not_fit_are_refused) {
  const auto says = [&](const std::string& config, const char* word) {
    const std::string text = engine_refusal([&] { call(file("sam3"), config, "sam3.112."); });
    BOOST_TEST(text.find(word) != std::string::npos, word << " is not in: " << text);
  };
  says(R"({"image_size": 100})", "image_size");
  says(R"({"num_attention_heads": 3})", "3 heads");
  says(R"({"part": "rest"})", "no part 'rest'");
  says(R"({"image_size": 0})", "image_size");
}

// What transformers and the tracker's own module (make_sam3_tracker_goldens.py) know of the
// checkpoint of true size.
BOOST_AUTO_TEST_CASE(parts_take_every_tensor_of_the_published_checkpoint) {
  namespace engine = heddle::engine;
  const engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR});
  std::set<std::string> names;
  const auto take = [&](const engine::Checkpoint& file, const char* role, const char* config,
                        const std::string& prefix) {
    const engine::Value built_of = engine::from_json(engine::parse_json(config, "config"));
    const engine::Value model =
        engine::build_model(*plugins.catalog, role, file, built_of.get(), {});
    for (const auto& node : engine::get_model(*model)->graph->nodes)
      for (const auto& parts : node.weights)
        for (const auto& part : parts) names.insert(prefix + part.tensor);
  };
  const std::string words = "detector.backbone.language_backbone.encoder.";
  const engine::Json told = engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");
  const std::vector<FileTensor> tensors =
      true_tensors(*told.find("checkpoints/sam3.1_multiplex_fp16"));
  write_header_only(temporary / "file.safetensors", tensors);
  const engine::Checkpoint file = engine::open_checkpoint(temporary / "file.safetensors");
  take(file, "diffusion_model", "{}", "");
  for (const std::string part : {"segmenter", "tracker", "memory", "pointer", "mask_logits"})
    take(file, "diffusion_model", (R"({"part": ")" + part + R"("})").c_str(), "");
  take(file.strip_prefix(words), "text_encoder", "{}", words);
  // Of boxes beside a text, of a picture's mask as a whole, and of a stage that nothing reaches.
  const std::regex of_no_use(
      R"(detector\.geometry_encoder\.(label_embed|boxes_|img_pre_norm).*)"
      R"(|detector\.segmentation_head\.(semantic_seg_head|pixel_decoder\.[a-z_]+\.2).*)");
  for (const FileTensor& tensor : tensors)
    BOOST_TEST((names.count(tensor.name) > 0) != std::regex_match(tensor.name, of_no_use),
               "'" << tensor.name << "'");
}

BOOST_AUTO_TEST_SUITE_END()
