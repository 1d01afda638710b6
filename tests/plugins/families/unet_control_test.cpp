// ControlNets of Stable Diffusion and SDXL with weights that follow from their names, and UNets
// that are given residuals, through the engine, against diffusers (make_unet_control_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/unet_controls.h"

using namespace heddle::test;

namespace {

constexpr double kUnetControlTolerance = 1e-5;
constexpr int kControlSteps = 2;
constexpr std::size_t kKept = 17;  // every 17th number of a residual is in the goldens

struct UnetControlFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{tests_folder() / "plugins/goldens/unet_control/expected.safetensors"};

  std::filesystem::path file(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "model.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  using Shaped = std::pair<std::string, std::vector<std::int64_t>>;
  // What the generator gives the models of a kind in a shape; residuals by name and shape. `more`
  // are put beside them.
  std::filesystem::path inputs(const std::string& kind, const std::string& shape,
                               const std::vector<Shaped>& residuals = {},
                               const std::vector<FileTensor>& more = {}) const {
    const bool is_square = shape == "square", is_odd = shape == "odd";
    const std::string name = kind + "_" + shape + ".";
    const std::int64_t batch = is_square ? 2 : 1, height = is_odd ? 5 : 8,
                       width = is_odd ? 11 : (is_square ? 8 : 6),
                       multiple = kind == "xl" ? 16 : 8;  // of the sides of a hint
    const auto side = [&](std::int64_t cells) {
      return (8 * cells + multiple - 1) / multiple * multiple;
    };
    std::vector<FileTensor> tensors{
        given_tensor(name + "x", {batch, 4, height, width}),
        given_tensor(name + "context", {1, 5, kind == "sdxl" || kind == "union" ? 128 : 64}),
        given_tensor(name + "hint", {1, 3, side(height), side(width)}),
        given_tensor(name + "y", {1, 64}),
        {name + "timestep", "F32", {kControlSteps}, bytes_of_floats({999, 431})}};
    std::vector<float> sizes;
    const FileTensor drawn = given_tensor(name + "sizes", {1, 6});
    for (int i = 0; i < 6; ++i)
      sizes.push_back(100 * reinterpret_cast<const float*>(drawn.bytes.data())[i]);
    tensors.push_back({name + "sizes", "F32", {1, 6}, bytes_of_floats(sizes)});
    for (const auto& [residual, its_shape] : residuals)
      tensors.push_back(given_tensor(name + residual, its_shape));
    tensors.insert(tensors.end(), more.begin(), more.end());
    const std::filesystem::path path = temporary / "inputs.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::vector<FileTensor>& model, const char* role,
                       const std::filesystem::path& tensors, const std::string& name) {
    return probe.call({file(model), role, "", tensors, name + "."});
  }
  std::vector<float> rows(const std::string& golden, int step) const {
    const std::vector<float> all = expected.floats(golden);
    const auto row = std::ptrdiff_t(all.size()) / expected.at(golden).shape.front();
    return {all.begin() + row * step, all.begin() + row * (step + 1)};
  }
  void compare(const std::vector<float>& found, const std::string& golden, int step) const {
    const double error = relative_error(found, rows(golden, step));
    BOOST_TEST_MESSAGE(golden << ", step " << step << ": relative error " << error);
    BOOST_TEST(error < kUnetControlTolerance, golden << ", step " << step << ": " << error);
  }
  // The mean of the colours, which the sampler makes for adapters of one channel.
  FileTensor grey_hint(const std::string& name, const std::string& shape) const {
    const TensorFile all(inputs(name.substr(0, name.find('_')), shape));
    const std::vector<float> colours = all.floats(name + ".hint");
    std::vector<std::int64_t> sides = all.at(name + ".hint").shape;
    const std::size_t plane = colours.size() / 3;
    std::vector<float> grey(plane);
    for (std::size_t i = 0; i < plane; ++i)
      grey[i] = (colours[i] + colours[i + plane] + colours[i + 2 * plane]) / 3;
    sides[1] = 1;
    return {name + ".hint", "F32", sides, bytes_of_floats(grey)};
  }
  std::filesystem::path only(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "inputs.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  static std::vector<float> kept(const std::vector<float>& all) {
    std::vector<float> some;
    for (std::size_t i = 0; i < all.size(); i += kKept) some.push_back(all[i]);
    return some;
  }
  static std::vector<std::string> residuals(int count) {
    std::vector<std::string> names{"control.middle"};
    for (int i = 0; i < count; ++i) names.push_back("control.output." + std::to_string(i));
    return names;
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

struct UnetControlKind {
  const char* name;
  int stages, layers;
};
constexpr UnetControlKind kUnetControlKinds[] = {{"sd1", 6, 2}, {"sd2", 4, 1}, {"sdxl", 6, 1}};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_control_nets, UnetControlFixture)

BOOST_AUTO_TEST_CASE(residuals_equal_diffusers) {
  for (const UnetControlKind& kind : kUnetControlKinds)
    for (const char* shape : {"square", "odd"}) {
      const std::string name = std::string(kind.name) + "_" + shape;
      const heddle::Results results =
          call(unet_control(kind.name), "control_net", inputs(kind.name, shape), name);
      for (const std::string& residual : residuals(kind.stages))
        for (int step = 0; step < kControlSteps; ++step)
          compare(kept(results.floats("model.outputs", residual + "." + std::to_string(step))),
                  name + "." + residual, step);
    }
}

BOOST_AUTO_TEST_CASE(residuals_without_transformers_equal_diffusers) {
  const heddle::Results results =
      call(unet_control("small"), "control_net", inputs("small", "odd"), "small_odd");
  for (const std::string& residual : residuals(6))
    for (int step = 0; step < kControlSteps; ++step)
      compare(kept(results.floats("model.outputs", residual + "." + std::to_string(step))),
              "small_odd." + residual, step);
}

BOOST_AUTO_TEST_CASE(unets_with_residuals_equal_diffusers) {
  for (const UnetControlKind& kind : kUnetControlKinds)
    for (const char* shape : {"square", "odd"}) {
      const std::string name = std::string(kind.name) + "_" + shape;
      const heddle::Results made =
          call(unet_control(kind.name), "control_net", inputs(kind.name, shape), name);
      std::vector<Shaped> given;
      for (const std::string& residual : residuals(kind.stages)) {
        std::vector<std::int64_t> its = made.shape("model.outputs", residual + ".0");
        if (residual == "control.output.0") its[0] = 1;  // the same for all items
        given.emplace_back(residual, its);
      }
      const heddle::Results results =
          call(unet_model(kind.name), "diffusion_model", inputs(kind.name, shape, given), name);
      for (int step = 0; step < kControlSteps; ++step)
        compare(results.floats("model.outputs", "out." + std::to_string(step)), name + ".out",
                step);
    }
}

BOOST_AUTO_TEST_CASE(averaged_residuals_are_means_over_their_pixels) {
  const std::filesystem::path model = file(unet_control("sd1")), given = inputs("sd1", "square");
  const auto made = [&](const char* config) {
    return probe.call({model, "control_net", config, given, "sd1_square."});
  };
  const heddle::Results plain = made(""), averaged = made(R"({"averages": true})");
  for (const std::string& residual : residuals(6)) {
    const std::string output = residual + ".0";
    std::vector<float> wanted = plain.floats("model.outputs", output);
    const std::vector<std::int64_t> shape = plain.shape("model.outputs", output);
    const auto channels = std::size_t(shape[3]), item = wanted.size() / std::size_t(shape[0]);
    for (std::size_t begin = 0; begin < wanted.size(); begin += item)
      for (std::size_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::size_t i = c; i < item; i += channels) sum += double(wanted[begin + i]);
        for (std::size_t i = c; i < item; i += channels)
          wanted[begin + i] = float(sum / double(item / channels));
      }
    const double error = relative_error(averaged.floats("model.outputs", output), wanted);
    BOOST_TEST(error < kUnetControlTolerance, residual << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(original_names_of_control_nets_give_the_same_bytes) {
  for (const UnetControlKind& kind : kUnetControlKinds) {
    const std::string name = std::string(kind.name) + "_odd";
    const auto bytes = [&](const std::vector<FileTensor>& model) {
      return call(model, "control_net", inputs(kind.name, "odd"), name)
          .floats("model.outputs", "control.middle.1");
    };
    const std::vector<float> same = bytes(unet_control(kind.name));
    for (const char* prefix : {"", "control_model."}) {
      std::vector<FileTensor> tensors = unet_control(kind.name);
      name_control_as_original(tensors, kind.layers, prefix);
      BOOST_TEST(bytes(tensors) == same, kind.name << ", '" << prefix << "'");
    }
  }
}

// Every op of theirs takes what the blocks make of it in 16 bits.
BOOST_AUTO_TEST_CASE(in_16_bits_they_are_near_diffusers) {
  ModelProbe narrow("bf16");
  const auto near = [&](const std::vector<FileTensor>& model, const char* role,
                        const std::filesystem::path& given, const std::string& name,
                        const std::string& output, bool is_whole) {
    const std::vector<float> found = narrow.call({file(model), role, "", given, name + "."})
                                         .floats("model.outputs", output + ".0");
    const double error =
        relative_error(is_whole ? found : kept(found), rows(name + "." + output, 0));
    BOOST_TEST_MESSAGE(name << ", " << output << " in 16 bits: relative error " << error);
    BOOST_TEST(error < 0.05, name << ", " << output << ": relative error " << error);
    BOOST_TEST(error > 1e-4, name << " was not made in 16 bits");
  };
  near(unet_control("sdxl"), "control_net", inputs("sdxl", "odd"), "sdxl_odd", "control.output.1",
       false);
  const std::int32_t kind = 2;
  near(unet_control("union"), "control_net",
       inputs("union", "odd", {},
              {{"union_odd.kinds", "F32", {4}, bytes_of_floats({0, 0, 1, 0})},
               {"union_odd.mode",
                "I32",
                {1},
                std::string(reinterpret_cast<const char*>(&kind), sizeof kind)}}),
       "union_odd", "control.output.1", false);
  near(unet_control("full"), "control_net", inputs("full", "odd"), "full_odd", "control.input.5",
       false);
  near(unet_model("sd1"), "diffusion_model",
       inputs("adapted", "square",
              {{"control.input.2", {2, 8, 8, 32}}, {"control.input.5", {2, 4, 4, 64}}}),
       "adapted_square", "out", true);
}

BOOST_AUTO_TEST_CASE(a_control_net_of_a_unet_says_what_samplers_need) {
  const auto settings = [&](const char* kind) {
    return call(unet_control(kind), "control_net", inputs(kind, "odd"), std::string(kind) + "_odd")
        .text("model.settings");
  };
  says(settings("sd1"), {R"("controls":"unet")", R"("hint_pixels":true)", R"("context_width":64)",
                         R"("control.output.5":[1,64])", R"("control.middle":[1,64])"});
  says(settings("sdxl"), {R"("size_numbers":6)", R"("pooled_width":64)"});
}

BOOST_AUTO_TEST_CASE(a_missing_filter_of_a_control_net_is_named) {
  for (const char* name :
       {"controlnet_down_blocks.3.weight", "controlnet_cond_embedding.blocks.2.bias",
        "down_blocks.1.resnets.0.conv1.weight"}) {
    std::vector<FileTensor> tensors = unet_control("sd1");
    std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    says(engine_refusal([&] { call(tensors, "control_net", inputs("sd1", "odd"), "sd1_odd"); }),
         {"model.safetensors", name});
  }
}

BOOST_AUTO_TEST_CASE(tensors_that_hold_no_numbers_are_refused_by_name) {
  const auto refusal = [&](const char* kind, const std::vector<FileTensor>& changed) {
    std::vector<FileTensor> tensors = unet_control(kind);
    for (const FileTensor& one : changed) {
      const auto at = std::ranges::find(tensors, one.name, &FileTensor::name);
      BOOST_TEST_REQUIRE((at != tensors.end()), one.name);
      *at = one;
    }
    return engine_refusal(
        [&] { call(tensors, "control_net", inputs(kind, "odd"), std::string(kind) + "_odd"); });
  };
  const auto size = [](const char* kind, const std::string& name, std::size_t axis) {
    for (const FileTensor& tensor : unet_control(kind))
      if (tensor.name == name) return tensor.shape.at(axis);
    return std::int64_t{0};
  };
  const std::string filters = "controlnet_cond_embedding.";
  says(refusal("sd1", {{filters + "conv_in.weight", "F32", {0, 3, 3, 3}, ""},
                       {filters + "conv_in.bias", "F32", {0}, ""},
                       {filters + "blocks.0.weight",
                        "F32",
                        {size("sd1", filters + "blocks.0.weight", 0), 0, 3, 3},
                        ""}}),
       {"'controlnet_cond_embedding.conv_in.weight' has shape (0, 3, 3, 3)", "holds no numbers"});
  const std::string kinds = "control_add_embedding.linear_1.weight";
  says(refusal("union", {{"task_embedding", "F32", {0, 32}, ""},
                         {kinds, "F32", {size("union", kinds, 0), 0}, ""}}),
       {"'control_add_embedding.linear_1.weight' has shape", "holds no numbers"});
  says(refusal("full", {{"adapter.conv_in.weight",
                         "F32",
                         {0, size("full", "adapter.conv_in.weight", 1), 3, 3},
                         ""},
                        {"adapter.conv_in.bias", "F32", {0}, ""}}),
       {"'adapter.conv_in.weight' has shape (0, ", "holds no numbers"});
}

BOOST_AUTO_TEST_CASE(a_union_control_net_told_a_kind_or_none_equals_diffusers) {
  const auto kinds = [](const std::string& name, bool is_told) {
    std::vector<FileTensor> tensors{
        {name + ".kinds", "F32", {4}, bytes_of_floats({0, 0, is_told ? 1.0f : 0.0f, 0})}};
    const std::int32_t kind = 2;
    if (is_told)
      tensors.push_back({name + ".mode",
                         "I32",
                         {1},
                         std::string(reinterpret_cast<const char*>(&kind), sizeof kind)});
    return tensors;
  };
  const std::tuple<const char*, bool, const char*> cases[] = {
      {"odd", true, "union_odd"}, {"one", true, "union_one"}, {"one", false, "union_one_alone"}};
  for (const auto& [shape, is_told, golden] : cases) {
    const std::string name = std::string("union_") + shape;
    const heddle::Results results = call(unet_control("union"), "control_net",
                                         inputs("union", shape, {}, kinds(name, is_told)), name);
    for (const std::string& residual : residuals(6))
      for (int step = 0; step < kControlSteps; ++step)
        compare(kept(results.floats("model.outputs", residual + "." + std::to_string(step))),
                std::string(golden) + "." + residual, step);
    says(results.text("model.settings"), {R"("control_modes":4)"});
  }
}

BOOST_AUTO_TEST_CASE(adapters_equal_diffusers_by_its_names_and_the_publishers) {
  const std::pair<const char*, std::vector<std::string>> kinds[] = {
      {"full", {"input.2", "input.5"}},
      {"light", {"input.2", "input.5"}},
      {"xl", {"input.3", "input.5", "input.8", "middle"}}};
  for (const auto& [its_name, its_places] : kinds)
    for (const char* shape : {"square", "odd"}) {
      const char* const kind = its_name;
      const std::string name = std::string(kind) + "_" + shape;
      std::vector<FileTensor> told;
      if (kind == std::string("light")) told.push_back(grey_hint(name, shape));
      const auto drawn = [&](const std::vector<FileTensor>& model) {
        return call(model, "control_net", told.empty() ? inputs(kind, shape) : only(told), name);
      };
      const heddle::Results results = drawn(unet_control(kind));
      std::vector<FileTensor> published = unet_control(kind);
      name_adapter_as_published(published, kind == std::string("light"));
      const heddle::Results same = drawn(published);
      for (const std::string& place : its_places) {
        const std::string output = "control." + place;
        const std::vector<float> found = results.floats("model.outputs", output + ".0");
        compare(kept(found), name + "." + output, 0);
        BOOST_TEST((found == same.floats("model.outputs", output + ".0")), name << ", " << place);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_unet_with_residuals_of_adapters_equals_diffusers) {
  const heddle::Results results =
      call(unet_model("sd1"), "diffusion_model",
           inputs("adapted", "square",
                  {{"control.input.2", {2, 8, 8, 32}}, {"control.input.5", {2, 4, 4, 64}}}),
           "adapted_square");
  for (int step = 0; step < kControlSteps; ++step)
    compare(results.floats("model.outputs", "out." + std::to_string(step)), "adapted_square.out",
            step);
}

BOOST_AUTO_TEST_SUITE_END()
