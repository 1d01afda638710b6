// Stable Diffusion 3 and 3.5, also with a ControlNet and guided by a model without some blocks, on
// several devices and with little memory.
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/patched_models.h"
#include "tests/support/sd3_models.h"

using heddle::engine::cat;
using heddle::test::FileTensor;
using heddle::test::seeded_tensor;

namespace {

struct PlacedSd3 : heddle::test::PlacedFixture {
  PlacedSd3() {
    input_dir = heddle::test::tests_folder() / "plugins/goldens/control";
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 7, 24}),
                                     seeded_tensor("in.one.pooled_output", {1, 20}),
                                     seeded_tensor("in.two.cross_attn", {1, 9, 24}),
                                     seeded_tensor("in.two.pooled_output", {1, 20})});
  }
  // Of eight heads where norms tell how wide a head is, else of two.
  void add_model(const std::string& kind) const {
    std::vector<FileTensor> tensors = heddle::test::sd3_transformer(kind);
    for (FileTensor& tensor : tensors)
      if (tensor.name.find(".ln_") != std::string::npos)
        tensor = seeded_tensor(tensor.name, {16}, "norm.weight");
    add("diffusion_models/" + kind, tensors);
  }
  // more: nodes behind the loader, of which the sampler reads these.
  std::string flow(const std::string& kind, const std::string& hints, const std::string& more = "",
                   const char* model = "model", const char* positive = "one",
                   const char* negative = "two") const {
    std::string whole = drawn_of(
        cat(loaded(kind), R"(, "one": )", text("one"), R"(, "two": )", text("two"), more), hints);
    const auto put = [&](const std::string& from, const std::string& to) {
      whole.replace(whole.find(from), from.size(), to);
    };
    put(R"("inputs": {"model": ["model", 0], "seed")",
        cat(R"("inputs": {"model": [")", model, R"(", 0], "seed")"));
    put(R"("positive": ["one", 0],
        "negative": ["two", 0], "latent_image")",
        cat(R"("positive": [")", positive, R"(", 0], "negative": [")", negative,
            R"(", 0], "latent_image")"));
    // Of 5 x 3 tokens, an odd number.
    put(R"("width": 48, "height": 32)", R"("width": 72, "height": 40)");
    return whole;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sd3_placed, PlacedSd3)

BOOST_AUTO_TEST_CASE(dividing_the_models_keeps_their_bytes_or_nearly_their_numbers) {
  for (const char* kind : {"first", "large", "medium"}) BOOST_TEST_CONTEXT(kind) {
      add_model(kind);
      hold_tokens([&](const std::string& hints) { return flow(kind, hints); },
                  kind == std::string("first") ? 2 : 4);
    }
  hold([&](const std::string& hints) { return flow("medium", hints); }, {"layers", "data", "cfg"},
       {}, 4 << 20, 2 * 16 * 5 * 9);
}

// A model of its own, without a block, whose tokens are divided as those of the whole one.
BOOST_AUTO_TEST_CASE(skip_layer_guidance_is_divided_with_its_model) {
  add_model("medium");
  const std::string less = heddle::test::node_of(
      "less", "SkipLayerGuidanceSD3",
      R"("model": ["model", 0], "layers": "1", "scale": 3.0, "start_percent": 0.0, "end_percent": 1.0)");
  const auto skipping = [&](const std::string& hints) {
    return flow("medium", hints, less, "less");
  };
  hold_tokens(skipping);
  BOOST_TEST(heddle::test::relative_error(draw(options_for({"cpu:0"}), skipping("")),
                                          draw(options_for({"cpu:0"}), flow("medium", ""))) > 1e-3);
}

// That of 3.5 large has blocks without a text. ControlNets have heads of 64, two of them.
BOOST_AUTO_TEST_CASE(control_nets_are_divided_beside_their_model,
                     *boost::unit_test::label("long")) {
  using heddle::test::node_of;
  add("vae/ae", heddle::test::seeded_model("z_image.vae"));
  for (const auto& [kind, net] : {std::pair{"first", "sd3_first"}, std::pair{"large", "sd3_large"}})
    BOOST_TEST_CONTEXT(net) {
      add_model(kind);
      add(cat("controlnet/", net), heddle::test::seeded_model(net, false, "control"));
      const std::string applied =
          cat(node_of("net", "ControlNetLoader",
                      cat(R"("control_net_name": ")", net, R"(.safetensors")")),
              node_of("vae", "VAELoader", R"("vae_name": "ae.safetensors")"),
              node_of("hint", "LoadImage", R"("image": "hint.png")"),
              node_of("seen", "ControlNetApplySD3",
                      R"("positive": ["one", 0], "negative": ["two", 0], "control_net": ["net", 0],
           "vae": ["vae", 0], "image": ["hint", 0], "strength": 0.05, "start_percent": 0,
           "end_percent": 1)"));
      hold_tokens(
          [&](const std::string& hints) {
            std::string whole = flow(kind, hints, applied, "model", "seen", "seen");
            const std::string from = R"("negative": ["seen", 0])";
            return whole.replace(whole.find(from), from.size(), R"("negative": ["seen", 1])");
          },
          2);
    }
}

BOOST_AUTO_TEST_SUITE_END()
