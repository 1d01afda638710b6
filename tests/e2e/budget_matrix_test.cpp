// One workflow with the sampler's devices at 1.0, 0.6 and 0.3 of what it holds when all is resident
// and at exactly the least, the decoder on a device of its own: the same picture, byte for byte,
// alone, in layers, by sets, and with a LoRA, on a plain model and on one in blocks; with a byte
// under the least a refusal that says what the least is.
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/e2e/flux_files.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;
using engine::Json;

namespace {

constexpr int kSteps = 3;
constexpr test::FluxSize kSize{.hidden = 128,
                               .head = 64,
                               .mlp = 256,
                               .doubles = 3,
                               .singles = 3,
                               .clip_width = 64,
                               .t5_width = 64,
                               .vae_channels = {32, 32, 32, 32}};
const std::vector<double> kShares{1.0, 0.6, 0.3, 0.0};  // 0: the least

test::FileTensor random_tensor(const std::string& name, std::vector<std::int64_t> shape,
                               float size) {
  std::size_t count = 1;
  for (const std::int64_t axis : shape) count *= std::size_t(axis);
  std::vector<float> values(count);
  std::uint32_t state = std::uint32_t(std::hash<std::string>()(name));
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = (float(state >> 8) / float(1u << 24) - 0.5f) * size;
  }
  return {name, "F32", std::move(shape), test::bytes_of_floats(values)};
}

// Products of rank 4 for all matrices of the blocks.
test::FileTensors lora_for(const test::FileTensors& model) {
  test::FileTensors lora;
  for (const test::FileTensor& tensor : model) {
    if (tensor.shape.size() != 2 || tensor.name.find("_blocks.") == std::string::npos) continue;
    std::string key = "lora_unet_" + tensor.name.substr(0, tensor.name.size() - 7);
    std::ranges::replace(key, '.', '_');
    lora.push_back(random_tensor(key + ".lora_down.weight", {4, tensor.shape[1]}, 0.3f));
    lora.push_back(random_tensor(key + ".lora_up.weight", {tensor.shape[0], 4}, 0.3f));
  }
  return lora;
}

// Numbers of bf16 as f32: devices keep those as they compute, so that plans know their bytes.
test::FileTensors widened(test::FileTensors model) {
  for (test::FileTensor& tensor : model) {
    std::vector<float> wide;
    for (std::size_t i = 0; i + 1 < tensor.bytes.size(); i += 2) {
      const std::uint32_t bits = std::uint32_t(std::uint8_t(tensor.bytes[i])) << 16 |
                                 std::uint32_t(std::uint8_t(tensor.bytes[i + 1])) << 24;
      std::memcpy(&wide.emplace_back(), &bits, sizeof bits);
    }
    tensor.dtype = "F32";
    tensor.bytes = test::bytes_of_floats(wide);
  }
  return model;
}

// The matrices of the blocks as q8_0 of random bytes, everything else as it is.
std::string in_blocks(const test::FileTensors& model) {
  std::vector<test::GgufTensor> tensors;
  for (const test::FileTensor& tensor : model) {
    const std::vector<std::uint64_t> sizes(tensor.shape.rbegin(), tensor.shape.rend());
    if (tensor.shape.size() != 2 || tensor.name.find("_blocks.") == std::string::npos) {
      tensors.push_back({tensor.name, test::kGgmlF32, sizes, tensor.bytes});
      continue;
    }
    std::string bytes;
    std::uint32_t state = std::uint32_t(tensors.size());
    for (std::int64_t b = 0; b < tensor.shape[0] * tensor.shape[1] / 32; ++b) {
      bytes += "\x80\x10";  // the scale: about 5.5e-4 as f16
      for (int i = 0; i < 32; ++i) {
        state = state * 1664525u + 1013904223u;
        bytes += char(state >> 24);
      }
    }
    tensors.push_back({tensor.name, test::kGgmlQ8_0, sizes, bytes});
  }
  return test::gguf_bytes(
      {.entries = {{"general.architecture", test::kGgufText, test::gguf_text("flux")}},
       .tensors = std::move(tensors)});
}

enum class Way { alone, layers, sets, rows };

struct Case {
  std::string kind;  // of devices
  Way way = Way::alone;
  std::string model = "plain.safetensors";
  bool has_lora = false;
};

std::string name_of(const Case& c) {
  constexpr const char* kNames[] = {" alone ", " layers ", " sets ", " rows "};
  return cat(c.kind, kNames[int(c.way)], c.model, c.has_lora ? " with a LoRA" : "");
}

using Budgets = std::map<std::string, std::uint64_t>;  // bytes, by device

struct Matrix {
  test::TemporaryFolder folder;
  const test::FakeControl control;

  Matrix() {
    test::FileTensors model = test::flux_transformer(kSize, test::Guidance::none, "BF16");
    test::FileTensors decoder = test::flux_autoencoder(kSize, "BF16");
    for (test::FileTensors* part : {&model, &decoder}) test::fill_at_random(*part, 5);
    model = widened(std::move(model));
    const auto path = [&](const std::string& name) {
      std::filesystem::create_directories((folder / name).parent_path());
      return folder / name;
    };
    test::write_safetensors(path("models/diffusion_models/plain.safetensors"), model);
    folder.write("models/diffusion_models/blocks.gguf", in_blocks(model));
    test::write_safetensors(path("models/loras/lora.safetensors"), lora_for(model));
    test::write_safetensors(path("models/vae/ae.safetensors"), decoder);
    test::write_safetensors(path("given.safetensors"),
                            {random_tensor("one.cross_attn", {1, 5, kSize.t5_width}, 2),
                             random_tensor("one.pooled_output", {1, kSize.clip_width}, 2),
                             random_tensor("two.cross_attn", {1, 5, kSize.t5_width}, 2),
                             random_tensor("two.pooled_output", {1, kSize.clip_width}, 2)});
  }

  std::string flow(const Case& c) const {
    const std::string first = c.kind + ":0", second = c.kind + ":1";
    const std::string both = cat(R"(, "device": ")", first, ",", second, '"');
    const std::string hints = c.way == Way::sets   ? both + R"(, "parallel": "cfg")"
                              : c.way == Way::rows ? both + R"(, "parallel": "tensor")"
                              : c.way == Way::layers
                                  ? cat(R"(, "blocks": [{"match": "double.*", "device": ")", first,
                                        R"("}, {"match": "*", "device": ")", second, R"("}])")
                                  : "";
    const auto given = [&](const char* name) {
      return cat(R"({"class_type": "test.given_conditioning", "inputs": {"path": ")",
                 (folder / "given.safetensors").string(), R"(", "prefix": ")", name,
                 R"(", "option": ""}})");
    };
    return cat(R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", c.model,
               R"(", "weight_dtype": "default"})", hints, R"(},
        "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
                 "lora_name": "lora.safetensors", "strength_model": )",
               c.has_lora ? "0.7" : "0", R"(}}, "one": )", given("one"), R"(, "two": )",
               given("two"),
               R"(, "empty": {"class_type": "EmptySD3LatentImage",
                 "inputs": {"width": 32, "height": 32, "batch_size": 1}},
        "sampler": {"class_type": "KSampler", "inputs": {"model": ["lora", 0], "seed": 7,
                 "steps": )",
               kSteps, R"(, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
                 "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["empty", 0],
                 "denoise": 1.0}, "device": ")",
               first, '"', c.way == Way::alone ? R"(, "parallel": "none")" : "", R"(},
        "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}},
        "decode": {"class_type": "VAEDecode", "inputs": {"samples": ["sampler", 0],
                 "vae": ["vae", 0]}, "device": ")",
               c.kind, R"(:2"},
        "look": {"class_type": "test.look", "inputs": {"value": ["decode", 0]}}})");
  }

  EngineOptions options(const Case& c, const Budgets& budgets) const {
    const std::vector<std::string> devices{c.kind + ":0", c.kind + ":1", c.kind + ":2"};
    EngineOptions options = c.kind == "fake"
                                ? test::fake_engine_options(devices, R"({"peer": false})")
                                : test::engine_options();
    options.devices = devices;
    options.compute = {{c.kind, "f32"}};
    options.threads = 1;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "output";
    options.budgets.insert(budgets.begin(), budgets.end());
    return options;
  }

  struct Drawn {
    std::vector<float> pixels;
    std::map<std::string, std::uint64_t> copied;  // from the host, by fake device
  };
  Drawn draw(const Case& c, const Budgets& budgets) {
    Engine engine(options(c, budgets));
    control->reset();
    Drawn drawn{engine.start(engine.parse(flow(c)), {{}, {"decode.IMAGE"}})
                    .wait()
                    .image("decode.IMAGE")
                    .pixels,
                {}};
    for (std::uint32_t d = 0; d < 2; ++d) {
      drawn.copied[cat("fake:", d)] = control->bytes_copied(HEDDLE_FAKE_HOST, d);
      if (c.kind != "fake" || !budgets.contains(cat("fake:", d))) continue;
      BOOST_TEST(control->peak_bytes(d) <= budgets.at(cat("fake:", d)));
    }
    return drawn;
  }
  struct Needs {
    std::uint64_t all = 0, least = 0, values = 0;
  };
  // Page-ins of a step, by device, as planned for what of the budgets is kept neither for the two
  // chunks of a 64th that small pieces share nor for the values of the sampler itself.
  std::map<std::string, std::uint64_t> planned(const Case& c, Budgets budgets,
                                               const std::map<std::string, Needs>& needs) const {
    for (auto& [device, bytes] : budgets) bytes -= 2 * (bytes / 64) + needs.at(device).values;
    const Engine engine(options(c, budgets));
    std::map<std::string, std::uint64_t> steps;
    find_streams(engine::parse_json(engine.plan_json(engine.parse(flow(c))), "plan"), steps);
    return steps;
  }
  static void find_streams(const Json& json, std::map<std::string, std::uint64_t>& steps) {
    if (json.is_array())
      for (const Json& each : json.as_array()) find_streams(each, steps);
    if (!json.is_object()) return;
    if (const Json* bytes = json.find("step_bytes"))
      steps[json.at("device").as_string()] += bytes->as_uint64();
    for (const Json::Member& member : json.members()) find_streams(member.value, steps);
  }

  // By device, of the sampler.
  std::map<std::string, Needs> needs_of(const Case& c) const {
    Engine engine(options(c, {}));
    const Json reported =
        engine::parse_json(engine.plan_min_memory(engine.parse(flow(c)), true), "min-memory");
    std::map<std::string, Needs> needs;
    for (const Json& device : reported.as_array()) {
      if (device.at("device").as_string() == "host") continue;  // a budget of its own
      for (const Json& node : device.at("nodes").as_array())
        if (node.at("node").as_string() == "sampler")
          needs[device.at("device").as_string()] = {node.at("all_bytes").as_uint64(),
                                                    device.at("min_bytes").as_uint64(),
                                                    node.at("values_bytes").as_uint64()};
    }
    return needs;
  }

  void check(const Case& c) {
    const std::map<std::string, Needs> needs = needs_of(c);
    BOOST_TEST_REQUIRE(needs.size() == (c.way == Way::alone ? 1u : 2u));
    for (const auto& [device, need] : needs)
      BOOST_TEST_MESSAGE(name_of(c) << ": " << device << " needs " << need.least << " to "
                                    << need.all << " bytes");
    const Drawn resident = draw(c, {});
    BOOST_TEST_REQUIRE(resident.pixels.size() == 32u * 32 * 3);
    BOOST_TEST(planned(c, {}, needs).empty());
    Budgets least;
    for (const auto& [device, need] : needs) least[device] = need.least;
    for (const double share : kShares) BOOST_TEST_CONTEXT(name_of(c) << ", " << share) {
        Budgets budgets;
        for (const auto& [device, need] : needs) {
          budgets[device] = std::max(need.least, std::uint64_t(double(need.all) * share));
          // Matrices in blocks are smaller, what is read whole beside them is not.
          BOOST_TEST(double(need.least) <
                     (c.model == "blocks.gguf" ? 0.6 : 0.3) * double(need.all));
        }
        const Drawn drawn = draw(c, budgets);
        BOOST_TEST((drawn.pixels == resident.pixels));
        const std::map<std::string, std::uint64_t> pages = planned(c, budgets, needs);
        BOOST_TEST((pages.size() == needs.size()) == (share != 1.0));
        // What passes comes in every step instead of once. Weights of so many sizes as a model in
        // blocks has are chosen otherwise when the sampler's own values are there as well.
        if (c.kind != "fake" || c.model == "blocks.gguf") continue;
        for (const auto& [device, bytes] : pages)
          BOOST_TEST(drawn.copied.at(device) == resident.copied.at(device) + (kSteps - 1) * bytes);
      }
    for (const auto& [device, need] : needs) {
      Budgets short_of_one = least;
      short_of_one[device] = need.least - 1;
      try {
        draw(c, short_of_one);
        BOOST_ERROR(name_of(c) << ": a byte less was enough on " << device);
      } catch (const EngineError& error) {
        const std::string reason = error.what();
        BOOST_TEST(error.code() == HEDDLE_OUT_OF_MEMORY);
        for (const std::string& part :
             {cat(device, ": its budget is "), cat("(", need.least, " bytes)")})
          BOOST_TEST(reason.find(part) != std::string::npos, reason);
      }
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(budget_matrix, Matrix)

BOOST_AUTO_TEST_CASE(a_sampler_alone_draws_the_same_picture_with_less_memory) {
  for (const std::string kind : {"cpu", "fake"}) check({kind, Way::alone});
}

BOOST_AUTO_TEST_CASE(layers_on_two_devices_draw_the_same_picture_with_less_memory) {
  for (const std::string kind : {"cpu", "fake"}) check({kind, Way::layers});
}

BOOST_AUTO_TEST_CASE(sets_on_two_devices_draw_the_same_picture_with_less_memory) {
  for (const std::string kind : {"cpu", "fake"}) check({kind, Way::sets});
}

BOOST_AUTO_TEST_CASE(a_lora_draws_the_same_picture_with_less_memory) {
  for (const std::string kind : {"cpu", "fake"})
    for (const Way way : {Way::alone, Way::layers, Way::sets})
      check({kind, way, "plain.safetensors", true});
}

BOOST_AUTO_TEST_CASE(a_lora_beside_weights_in_blocks_draws_the_same_picture_with_less_memory) {
  for (const std::string kind : {"cpu", "fake"})
    for (const Way way : {Way::alone, Way::layers}) check({kind, way, "blocks.gguf", true});
  check({"fake", Way::sets, "blocks.gguf", true});
}

// Of a matrix that is divided by rows the second factor is, too; by columns, the first one.
BOOST_AUTO_TEST_CASE(devices_that_divide_matrices_of_8_bits_have_each_their_part_of_a_lora) {
  test::FluxSize wide = kSize;
  wide.hidden = 256, wide.doubles = wide.singles = 1;
  test::FileTensors model = test::flux_transformer(wide, test::Guidance::none, "BF16");
  test::fill_at_random(model, 6);
  test::write_safetensors(folder / "models/diffusion_models/wide.safetensors", test::in_fp8(model));
  test::write_safetensors(folder / "models/loras/lora.safetensors", lora_for(model));
  const Case alone{"cpu", Way::alone, "wide.safetensors", true},
      rows{"cpu", Way::rows, "wide.safetensors", true},
      plain{"cpu", Way::rows, "wide.safetensors", false};
  const std::vector<float> good = draw(alone, {}).pixels;
  const double error = test::relative_error(draw(rows, {}).pixels, good);
  BOOST_TEST(error > 0);  // sums are taken in another order
  BOOST_TEST(error < 1e-4);
  BOOST_TEST(test::relative_error(draw(plain, {}).pixels, good) > 1e-2);
}

BOOST_AUTO_TEST_SUITE_END()
