// The Fun ControlNet of MiniMax H3 in the graph of a tiny model, both with weights that follow from
// their names, through the engine, against PyTorch (make_minimax_fun_goldens.py). Model and
// ControlNets stand in one file here, as they do when a node has joined theirs.
#include <boost/test/unit_test.hpp>

#include <set>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr double kH3FunTolerance = 1e-4;
constexpr int kH3FunSteps = 3;

struct FunFixture {
  struct Applied {
    std::vector<FileTensor> tensors;
    double strength;
    std::string told = R"("places": [0, 1])";
  };
  ModelProbe probe;
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/minimax_fun/expected.safetensors";
  TensorFile expected{golden};

  static std::vector<FileTensor> fun(const std::string& name = "fun") {
    return seeded_model(name, false, "minimax_fun");
  }
  heddle::Results call(const std::string& kind, const std::string& clip,
                       const std::vector<Applied>& patches) {
    std::vector<FileTensor> model = seeded_model(kind, false, "minimax");
    std::string config;
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const std::string prefix = cat("model_patch.", i, ".");
      for (FileTensor tensor : patches[i].tensors) {
        tensor.name = prefix + tensor.name;
        model.push_back(std::move(tensor));
      }
      config += cat(config.empty() ? "" : ", ", R"({"prefix": ")", prefix,
                    R"(", "file": "fun.safetensors", "strength": )", patches[i].strength, ", ",
                    patches[i].told, "}");
    }
    const std::filesystem::path path = folder / "joined.safetensors";
    write_safetensors(path, model);
    return probe.call({path, "diffusion_model",
                       cat(R"({"rope_freq_dim": 2, "model_patches": [)", config, "]}"), golden,
                       cat(kind, ".", clip, ".")});
  }
  std::vector<float> step_of(const std::string& name, int step) const {
    const std::vector<float> all = expected.floats(name);
    const auto row = std::ptrdiff_t(all.size() / kH3FunSteps);
    return {all.begin() + row * step, all.begin() + row * (step + 1)};
  }
  void compare(const heddle::Results& results, const std::string& name) {
    for (const std::string out : {"out", "audio_out"})
      for (int step = 0; step < kH3FunSteps; ++step) {
        const double error = relative_error(results.floats("model.outputs", cat(out, ".", step)),
                                            step_of(cat(name, ".", out), step));
        BOOST_TEST_MESSAGE(name << "." << out << ", step " << step << ": " << error);
        BOOST_TEST(error < kH3FunTolerance,
                   name << "." << out << ", step " << step << ": " << error);
      }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
  // A ControlNet's file by itself: its settings, or why it is refused.
  heddle::engine::Json settings(const std::vector<FileTensor>& tensors,
                                const FileMetadata& metadata,
                                const char* hint = "whole.short.patch.0.") {
    const std::filesystem::path path = folder / "alone.safetensors";
    write_safetensors(path, tensors, metadata);
    return heddle::engine::parse_json(
        probe.call({path, "model_patch", "", golden, hint}).text("model.settings"), "settings");
  }
};

std::vector<FileTensor> without_tensor(std::vector<FileTensor> tensors, const std::string& name) {
  std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
  return tensors;
}

// Rows [begin, end) of a tensor, by another name.
FileTensor fun_rows(const FileTensor& tensor, const std::string& name, std::int64_t begin,
                    std::int64_t end) {
  const std::size_t row = tensor.bytes.size() / std::size_t(tensor.shape[0]);
  FileTensor part{name, tensor.dtype, tensor.shape};
  part.shape[0] = end - begin;
  part.bytes = tensor.bytes.substr(row * std::size_t(begin), row * std::size_t(end - begin));
  return part;
}

// As the publishers' files have them: parts of layers by the names of diffusers.
std::vector<FileTensor> with_diffusers_parts(const std::vector<FileTensor>& tensors) {
  const std::pair<std::string, std::string> parts[] = {{".q_norm.", ".norm_q."},
                                                       {".k_norm.", ".norm_k."},
                                                       {".out_proj.", ".to_out.0."},
                                                       {".mlp.fc1.", ".ff.net.0.proj."},
                                                       {".mlp.fc2.", ".ff.net.2."}};
  std::vector<FileTensor> named;
  for (FileTensor tensor : tensors) {
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
    const std::int64_t rows = tensor.shape[0];
    if (const std::size_t at = tensor.name.find("qkv_proj"); at != std::string::npos) {
      int third = 0;
      for (const char* name : {"to_q", "to_k", "to_v"}) {
        std::string own = tensor.name;
        own.replace(at, 8, name);
        named.push_back(fun_rows(tensor, own, third * rows / 3, (third + 1) * rows / 3));
        ++third;
      }
    } else if (tensor.name.find(".ff.net.0.proj.") != std::string::npos) {
      FileTensor whole = fun_rows(tensor, tensor.name, rows / 2, rows);
      whole.bytes += fun_rows(tensor, "", 0, rows / 2).bytes;
      whole.shape[0] = rows;
      named.push_back(whole);
    } else {
      named.push_back(tensor);
    }
  }
  return named;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_fun, FunFixture)

// "short": two items of a batch with one hint; "shown": pictures among the text, references of
// pictures and sounds. "curve" has a table of times.
BOOST_AUTO_TEST_CASE(both_velocities_with_a_control_net_equal_pytorch) {
  for (const char* clip : {"short", "shown"}) {
    compare(call("whole", clip, {{fun(), 0.8}}), cat("whole.", clip));
    compare(call("curve", clip, {{fun("fun_curve"), 0.8, R"("places": [0, 1], "of_table": true)"}}),
            cat("curve.", clip));
  }
}

BOOST_AUTO_TEST_CASE(two_control_nets_run_beside_each_other) {
  compare(call("whole", "both", {{fun(), 0.7}, {fun("alone"), -0.4, R"("places": [0])"}}),
          "whole.both");
}

BOOST_AUTO_TEST_CASE(parts_by_the_names_of_diffusers_give_the_same_bytes) {
  const auto bytes = [&](const std::vector<FileTensor>& tensors) {
    return call("whole", "shown", {{tensors, 0.8}}).floats("model.outputs", "out.1");
  };
  BOOST_TEST(bytes(fun()) == bytes(with_diffusers_parts(fun())));
}

BOOST_AUTO_TEST_CASE(a_file_tells_where_its_layers_are_and_what_its_holes_show) {
  const auto written = [&](const heddle::engine::Json& settings, const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  const heddle::engine::Json told = settings(fun(), {{"control_blocks_places", "[0, 1]"},
                                                     {"minimax_h3_fun_controlnet", "adaln_basis"},
                                                     {"inpaint_masked_pixel_mode", "post_norm"}});
  BOOST_TEST(written(told, "patches") == "\"minimax-h3\"");
  BOOST_TEST(written(told, "latent_channels") == "24");
  BOOST_TEST(written(told, "hint_channels") == "49");
  BOOST_TEST(written(told, "hint_holes_mean") == "true");
  BOOST_TEST(written(told, "patch_config") == R"({"places":[0,1],"of_table":true})");
  // Without metadata layers are spread over the 50 of the model.
  const heddle::engine::Json spread = settings(with_diffusers_parts(fun()), {});
  BOOST_TEST(written(spread, "hint_holes_mean") == "false");
  BOOST_TEST(written(spread, "patch_config") == R"({"places":[0,25],"of_table":false})");
  BOOST_TEST(written(settings(fun("alone"), {}, "whole.both.patch.1."), "hint_channels") == "24");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_said) {
  const auto alone = [&](const char* places) {
    return engine_refusal([&] { settings(fun(), {{"control_blocks_places", places}}); });
  };
  for (const char* places : {"[0]", "[1, 2]", "[0, 0]", "[0, true]", "7"})
    says(alone(places), {"alone.safetensors", "control_blocks_places", places, "2 rising numbers"});
  says(alone("[0, "), {"alone.safetensors", "control_blocks_places"});
  const auto joined = [&](const std::string& kind, const Applied& applied) {
    return engine_refusal([&] { call(kind, "short", {applied}); });
  };
  says(joined("whole", {without_tensor(fun(), "control_blocks.1.after_proj.bias"), 1}),
       {"fun.safetensors does not fit", "'model_patch.0.control_blocks.1.after_proj.bias'",
        "patch.0.layer.1.add", "missing"});
  says(joined("whole", {without_tensor(fun(), "control_blocks.0.before_proj.weight"), 1}),
       {"'model_patch.0.control_blocks.0.before_proj.weight'", "patch.0.begin"});
  says(joined("whole", {fun(), 1, R"("places": [0, 2])"}),
       {"fun.safetensors does not fit", "behind layer 2", "which has 2"});
  says(joined("whole", {fun("fun_curve"), 1}), {"times of 8 numbers", "such of 12 by a network"});
  says(joined("whole", {fun(), 1, R"("places": [0, 1], "of_table": true)"}),
       {"times of 12 numbers", "by a network", "'pruned'"});
  says(joined("curve", {fun(), 1}), {"times of 12 numbers", "such of 8 by a table"});
}

BOOST_AUTO_TEST_SUITE_END()
