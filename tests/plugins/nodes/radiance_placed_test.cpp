// Chroma Radiance on several devices and with little memory.
#include "tests/plugins/nodes/placed_fixture.h"

using heddle::engine::cat;

namespace {

struct PlacedRadiance : heddle::test::PlacedFixture {
  PlacedRadiance() {
    using heddle::test::seeded_tensor;
    add("diffusion_models/radiance", heddle::test::seeded_model("filter", false, "radiance"));
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 7, 160}),
                                     seeded_tensor("in.two.cross_attn", {1, 4, 160})});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(radiance_placed, PlacedRadiance)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string nodes =
      cat(loaded("radiance"), R"(, "one": )", text("one"), R"(, "two": )", text("two"));
  const auto flow = [&](const std::string& hints) {
    std::string drawn = drawn_of(nodes, hints);
    const std::string latent = "EmptySD3LatentImage";
    return drawn.replace(drawn.find(latent), latent.size(), "EmptyChromaRadianceLatentImage");
  };
  // Its weights take some 1.04 MB, what a call computes 0.78 MB.
  hold(flow, {"layers", "data", "cfg"}, {"sequence", "tensor"}, 1500 << 10, 2 * 3 * 32 * 48);
}

BOOST_AUTO_TEST_SUITE_END()
