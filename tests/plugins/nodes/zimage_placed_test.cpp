// Z-Image, also with a model patch, and Lumina 2, whose queries share keys and values, on several
// devices and with little memory.
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/patched_models.h"
#include "tests/support/resized_models.h"

using heddle::engine::cat;

namespace {

struct PlacedZImage : heddle::test::PlacedFixture {
  PlacedZImage() {
    using heddle::test::seeded_tensor;
    heddle::test::write_safetensors(folder / "texts.safetensors",
                                    {seeded_tensor("in.one.cross_attn", {1, 37, 24}),
                                     seeded_tensor("in.two.cross_attn", {1, 5, 24})});
  }
  // Of four heads where it had three.
  void add_wider(const std::string& name, const char* model, const char* golden) const {
    add(name, heddle::test::resized(heddle::test::seeded_model(model, false, golden),
                                    {{48, 64}, {144, 192}, {192, 256}}));
  }
  std::string nodes(const char* file) const {
    return cat(loaded(file), R"(, "one": )", text("one"), R"(, "two": )", text("two"));
  }
  // Of 5 x 3 tokens, an odd number, where none fill them up.
  static std::string odd(std::string flow) {
    const std::string size = R"("width": 48, "height": 32)";
    return flow.replace(flow.find(size), size.size(), R"("width": 72, "height": 40)");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(zimage_placed, PlacedZImage)

BOOST_AUTO_TEST_CASE(tokens_of_z_image_are_divided) {
  add_wider("diffusion_models/z", "z_image.transformer", "workflows");
  hold_tokens([&](const std::string& hints) { return odd(drawn_of(nodes("z"), hints)); });
}

// The patch's tokens are the picture's alone, so devices have others of them than of the model's.
BOOST_AUTO_TEST_CASE(tokens_of_z_image_and_of_a_patch_are_divided_each_by_themselves,
                     *boost::unit_test::label("long")) {
  add_wider("diffusion_models/z", "z_image", "patches");
  add("vae/z", heddle::test::seeded_model("z_image.vae"));
  for (const char* patch : {"alone", "beside", "repeated"})
    add_wider(cat("model_patches/", patch), patch, "patches");
  input_dir = heddle::test::tests_folder() / "plugins/goldens/control";
  for (const char* patch : {"alone", "beside", "repeated"}) BOOST_TEST_CONTEXT(patch)
  hold_tokens([&](const std::string& hints) {
    std::string whole = odd(drawn_of(
        cat(nodes("z"), heddle::test::node_of("vae", "VAELoader", R"("vae_name": "z.safetensors")"),
            heddle::test::node_of("hint", "LoadImage", R"("image": "hint.png")"),
            heddle::test::patched_by("applied", patch, "model",
                                     R"("strength": 0.7, "image": ["hint", 0])")),
        hints));
    const std::string from = R"("inputs": {"model": ["model", 0], "seed")";
    return whole.replace(whole.find(from), from.size(),
                         R"("inputs": {"model": ["applied", 0], "seed")");
  });
}

BOOST_AUTO_TEST_CASE(dividing_lumina_2_keeps_its_bytes_or_nearly_its_numbers) {
  add("diffusion_models/lumina", heddle::test::seeded_model("transformer", false, "lumina2"));
  const auto flow = [&](const std::string& hints) { return drawn_of(nodes("lumina"), hints); };
  hold(flow, {"layers", "data", "cfg"}, {}, 700 << 10);
  hold_tokens([&](const std::string& hints) { return odd(flow(hints)); });
}

BOOST_AUTO_TEST_CASE(more_devices_than_heads_are_refused) {
  add("diffusion_models/z", heddle::test::seeded_model("z_image.transformer"));
  const std::string refusal = heddle::test::engine_refusal([&] {
    draw(options_for({"fake:0", "fake:1", "fake:2", "fake:3"}),
         drawn_of(nodes("z"),
                  R"(, "parallel": "sequence", "device": "fake:0,fake:1,fake:2,fake:3")"));
  });
  BOOST_TEST(refusal.find("3 heads cannot be divided among 4 devices") != std::string::npos,
             refusal);
}

BOOST_AUTO_TEST_SUITE_END()
