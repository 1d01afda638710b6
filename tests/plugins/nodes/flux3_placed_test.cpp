// FLUX 3 on several devices and with little memory, of a text and of a picture besides.
#include "tests/plugins/nodes/placed_fixture.h"

namespace {

struct PlacedFlux3 : heddle::test::PlacedFixture {
  PlacedFlux3() {
    using heddle::test::seeded_tensor;
    add("diffusion_models/flux3", heddle::test::seeded_model("distilled", false, "flux3"));
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 7, 192}),
                                     seeded_tensor("in.two.cross_attn", {1, 4, 192}),
                                     seeded_tensor("in.picture", {1, 16, 2, 3})});
  }
  std::string of_text() const {
    return heddle::engine::cat(loaded("flux3"), R"(, "one": )", text("one"), R"(, "two": )",
                               text("two"));
  }
  std::string of_picture() const {
    return heddle::engine::cat(
        loaded("flux3"), R"(, "text": )", text("one"), R"(, "two": )", text("two"),
        R"(, "picture": {"class_type": "test.latent", "inputs": {"path": ")",
        (folder / "texts.safetensors").string(), R"(", "name": "in.picture"}},
      "one": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["text", 0], "latent": ["picture", 0]}})");
  }
  // Its weights are some 1.3 MB.
  void hold_all(const std::string& nodes) const {
    hold([&](const std::string& hints) { return drawn_of(nodes, hints); },
         {"layers", "data", "cfg"}, {"sequence", "tensor"}, 900 << 10, 2 * 16 * 2 * 3);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux3_placed, PlacedFlux3)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  hold_all(of_text());
}

BOOST_AUTO_TEST_CASE(a_picture_that_is_shown_is_divided_with_it, *boost::unit_test::label("long")) {
  hold_all(of_picture());
}

BOOST_AUTO_TEST_SUITE_END()
