// Chroma on several devices and with little memory, and its guided attention.
#include "tests/plugins/nodes/placed_fixture.h"

using heddle::Engine;
using heddle::engine::cat;

namespace {

struct PlacedChroma : heddle::test::PlacedFixture {
  PlacedChroma() {
    using heddle::test::seeded_tensor;
    add("diffusion_models/chroma", heddle::test::seeded_model("transformer", false, "chroma"));
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 7, 160}),
                                     seeded_tensor("in.two.cross_attn", {1, 4, 160}),
                                     seeded_tensor("in.three.cross_attn", {1, 7, 160})});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chroma_placed, PlacedChroma)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::string nodes =
      cat(loaded("chroma"), R"(, "one": )", text("one"), R"(, "two": )", text("two"));
  // Its weights are some 760 kB.
  hold([&](const std::string& hints) { return drawn_of(nodes, hints); }, {"layers", "data", "cfg"},
       {"sequence", "tensor"}, 700 << 10);
}

BOOST_AUTO_TEST_CASE(attention_is_guided_by_a_text_of_as_many_tokens) {
  Engine engine(options_for({"cpu:0"}));
  const auto drawn = [&](const char* alpha) {
    const std::string model = alpha[0] == '\0' ? "model" : "nag";
    return engine
        .start(
            engine.parse(cat(
                "{", loaded("chroma"),
                R"(, "nag": {"class_type": "NAGuidance", "inputs": {"model": ["model", 0], "nag_scale": 5, "nag_tau": 1.5, "nag_alpha": )",
                alpha[0] == '\0' ? "0" : alpha, R"(}}, "one": )", text("one"), R"(, "three": )",
                text("three"),
                R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": )",
                ksampler(R"("steps": 2, "negative": ["three", 0], "model": [")" + model +
                         R"(", 0])"),
                R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})")),
            {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  };
  const std::vector<float> plain = drawn("");
  const double none = heddle::test::relative_error(drawn("0"), plain),
               some = heddle::test::relative_error(drawn("0.5"), plain);
  BOOST_TEST(none < kTolerance, "relative error " << none);
  BOOST_TEST(some > 100 * kTolerance, "it changed " << some);
}

BOOST_AUTO_TEST_SUITE_END()
