// Krea 2 on several devices and with little memory.
#include "tests/plugins/nodes/placed_fixture.h"

namespace {

struct PlacedKrea2 : heddle::test::PlacedFixture {
  PlacedKrea2() {
    using heddle::test::seeded_tensor;
    add("diffusion_models/krea2", heddle::test::seeded_model("transformer", false, "krea2"));
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 7, 288}),
                                     seeded_tensor("in.two.cross_attn", {1, 4, 288})});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(krea2_placed, PlacedKrea2)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::string nodes = heddle::engine::cat(loaded("krea2"), R"(, "one": )", text("one"),
                                                R"(, "two": )", text("two"));
  // Its weights are some 600 kB.
  hold([&](const std::string& hints) { return drawn_of(nodes, hints); }, {"layers", "data", "cfg"},
       {"sequence", "tensor"}, 700 << 10);
}

BOOST_AUTO_TEST_SUITE_END()
