// Runs with ControlNets and model patches on several devices and with little memory.
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/patched_models.h"

using heddle::engine::cat;
using heddle::test::tests_folder;

namespace {

struct PlacedControl : heddle::test::PlacedFixture {
  PlacedControl() { input_dir = tests_folder() / "plugins/goldens/control"; }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return heddle::test::node_of(name, type, inputs);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(control_placed, PlacedControl)

// The first of two sets alone has the ControlNet.
BOOST_AUTO_TEST_CASE(dividing_denoiser_and_control_net_keeps_their_bytes_or_nearly_their_numbers) {
  using heddle::test::seeded_model;
  add("diffusion_models/flux", seeded_model("flux", false, "control"));
  add("controlnet/union", seeded_model("flux_union", false, "control"));
  add("vae/ae", seeded_model("z_image.vae"));
  const std::string nodes =
      cat(loaded("flux"), R"(, "two": )", text("flux", input_dir / "expected.safetensors"),
          node("net", "ControlNetLoader", R"("control_net_name": "union.safetensors")"),
          node("vae", "VAELoader", R"("vae_name": "ae.safetensors")"),
          node("hint", "LoadImage", R"("image": "hint.png")"),
          node("one", "ControlNetApplySD3",
               R"("positive": ["two", 0], "negative": ["two", 0], "control_net": ["net", 0],
           "vae": ["vae", 0], "image": ["hint", 0], "strength": 0.05, "start_percent": 0,
           "end_percent": 1)"));
  // The two models are some 2 MB, and take turns.
  hold([&](const std::string& hints) { return drawn_of(nodes, hints); }, {"layers", "data", "cfg"},
       {"sequence", "tensor"}, 1000 << 10);
}

// Its model is made of its file and the denoiser's.
BOOST_AUTO_TEST_CASE(dividing_a_fun_control_net_keeps_its_bytes_or_nearly_its_numbers) {
  using heddle::test::seeded_model;
  add("diffusion_models/qwen", seeded_model("qwen_image.transformer"));
  add("controlnet/fun", seeded_model("qwen_fun", false, "control"));
  add("vae/ae", seeded_model("qwen_image.vae"));
  const std::filesystem::path golden = heddle::test::patches_golden();
  const std::string nodes =
      cat(loaded("qwen"), R"(, "all": )", text("qwen_one", golden), R"(, "two": )",
          text("qwen_two", golden),
          node("net", "ControlNetLoader", R"("control_net_name": "fun.safetensors")"),
          node("vae", "VAELoader", R"("vae_name": "ae.safetensors")"),
          node("hint", "LoadImage", R"("image": "hint.png")"),
          node("one", "ControlNetApplyAdvanced",
               R"("positive": ["all", 0], "negative": ["two", 0], "control_net": ["net", 0],
           "vae": ["vae", 0], "image": ["hint", 0], "strength": 0.5, "start_percent": 0,
           "end_percent": 1)"));
  hold([&](const std::string& hints) { return drawn_of(nodes, hints); }, {"layers", "data", "cfg"},
       {"sequence", "tensor"}, 1000 << 10);
}

// They are blocks of the denoiser, so all is divided and streamed together.
BOOST_AUTO_TEST_CASE(dividing_a_patched_model_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  heddle::test::write_patched_models(folder / "models");
  const auto flow = [&](const std::string& model, const std::string& prefix,
                        const std::string& patched, const std::string& hints) {
    const std::filesystem::path golden = heddle::test::patches_golden();
    std::string whole =
        drawn_of(cat(loaded(model), R"(, "one": )", text(prefix + "one", golden), R"(, "two": )",
                     text(prefix + "two", golden),
                     node("vae", "VAELoader", cat(R"("vae_name": ")", model, R"(.safetensors")")),
                     node("hint", "LoadImage", R"("image": "hint.png")"), patched),
                 hints);
    const std::string from = R"("inputs": {"model": ["model", 0], "seed")";
    return whole.replace(whole.find(from), from.size(),
                         R"("inputs": {"model": ["applied", 0], "seed")");
  };
  // At work in the first step alone. The model is some 2.3 MB, with the patch 3.3 MB.
  hold(
      [&](const std::string& hints) {
        return flow("z", "",
                    heddle::test::patched_by("applied", "beside", "model",
                                             R"("strength": 0.7, "image": ["hint", 0],
                                             "mask": ["hint", 1], "end_percent": 0.5)"),
                    hints);
      },
      {"layers", "data", "cfg"}, {"sequence"}, 3000 << 10);
  hold(
      [&](const std::string& hints) {
        return flow("qwen", "qwen_",
                    heddle::test::patched_by("applied", "qwen_edges", "model",
                                             R"("strength": 0.7, "image": ["hint", 0])"),
                    hints);
      },
      {"layers", "data", "cfg"}, {"sequence", "tensor"}, 900 << 10);
}

BOOST_AUTO_TEST_SUITE_END()
