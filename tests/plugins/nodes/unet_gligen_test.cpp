// Boxes with phrases by GLIGEN, out of a checkpoint and a file in the original names, against
// PyTorch (../goldens/make_gligen_goldens.py).
#include "tests/plugins/nodes/unet_patch_fixture.h"
#include "tests/support/gligen_model.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Gligen : PatchedUnet {
  const TensorFile made{tests_folder() / "plugins/goldens/unet/gligen.safetensors"};

  Gligen() {
    write("sd1");
    write_file("gligen/boxes", gligen_model(false));
  }
  // From the conditioning `from` to `to`; in pixels.
  static std::string box(const char* from, const char* to, const char* words,
                         std::array<int, 4> place, const char* clip = R"(["model", 1])") {
    return node(
        to, "GLIGENTextBoxApply",
        cat(R"("conditioning_to": [")", from, R"(", 0], "clip": )", clip,
            R"(, "gligen_textbox_model": ["gligen", 0], "text": ")", words, R"(", "x": )", place[0],
            R"(, "y": )", place[1], R"(, "width": )", place[2], R"(, "height": )", place[3]));
  }
  static std::string gligen_loader(const char* name = "boxes") {
    return node("gligen", "GLIGENLoader", cat(R"("gligen_name": ")", name, R"(.safetensors")"));
  }
  static std::string one(const char* to = "boxed") {
    return box("one", to, "a photo of a cat", {8, 8, 32, 24});
  }
  static std::string flow_of(const std::string& nodes, const char* positive,
                             const char* negative = "two", int items = 1,
                             const std::string& hints = "") {
    return cat("{", loader(), UnetWorkflow::text("one", "a photo of a cat", R"(["model", 1])"),
               UnetWorkflow::text("two", "", R"(["model", 1])"),
               node("empty", "EmptyLatentImage",
                    cat(R"("width": 80, "height": 48, "batch_size": )", items)),
               nodes,
               R"("drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
            "steps": 3, "cfg": 5.0, "sampler_name": "euler", "scheduler": "normal",
            "positive": [")",
               positive, R"(", 0], "negative": [")", negative,
               R"(", 0], "latent_image": ["empty", 0], "denoise": 1.0})", hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  }
  std::vector<float> drawn(const std::string& nodes, const char* positive,
                           const char* negative = "two") {
    const std::vector<float> latent =
        run_whole(flow_of(nodes, positive, negative), {"drawn.LATENT"})
            .floats("drawn.LATENT", "samples");
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    return latent;
  }
  void is(const std::vector<float>& latent, const char* name) {
    const double error = relative_error(latent, made.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  std::string refused(const std::string& nodes, const char* positive) {
    return engine_refusal([&] { drawn(nodes, positive); });
  }
  static void says(const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gligen, Gligen)

BOOST_AUTO_TEST_CASE(boxes_equal_pytorch) {
  is(drawn("", "one"), "plain");
  is(drawn(gligen_loader() + one(), "boxed"), "one");
  BOOST_TEST(relative_error(made.floats("one"), made.floats("plain")) > 100 * kTolerance);
  const std::string several = gligen_loader() + one("first") +
                              box("first", "second", "", {40, 0, 32, 48}) +
                              box("second", "boxed", "a photo of a cat", {64, 32, 32, 32});
  is(drawn(several, "boxed"), "several");
  BOOST_TEST(relative_error(made.floats("one"), made.floats("several")) > 10 * kTolerance);
}

// The second of two positive conditionings has no boxes, the negative one those of the first.
BOOST_AUTO_TEST_CASE(conditionings_with_and_without_boxes_equal_pytorch) {
  const std::string both = gligen_loader() + one() +
                           node("both", "ConditioningCombine",
                                R"("conditioning_1": ["boxed", 0], "conditioning_2": ["two", 0])");
  is(drawn(both, "both"), "mixed");
}

// Of the boxes of two positive conditionings a single negative one gets the last.
BOOST_AUTO_TEST_CASE(the_last_of_several_boxes_is_the_negative_one_s) {
  const std::array<int, 4> later{40, 0, 32, 48};
  const std::string both = gligen_loader() + one() + box("one", "late", "a photo of a dog", later) +
                           node("both", "ConditioningCombine",
                                R"("conditioning_1": ["boxed", 0], "conditioning_2": ["late", 0])");
  const std::vector<float> inherited = drawn(both, "both");
  const auto with_own = [&](const std::array<int, 4>& where, const char* phrase) {
    return drawn(both + box("two", "own", phrase, where), "both", "own");
  };
  BOOST_TEST((inherited == with_own(later, "a photo of a dog")));
  BOOST_TEST(relative_error(inherited, with_own({8, 8, 32, 24}, "a photo of a cat")) > kTolerance);
}

// What the negative conditioning has by itself stays, here the very same.
BOOST_AUTO_TEST_CASE(a_negative_conditioning_keeps_its_boxes) {
  const std::string nodes =
      gligen_loader() + one() + box("two", "other", "a photo of a cat", {8, 8, 32, 24});
  is(drawn(nodes, "boxed", "other"), "one");
  const std::string elsewhere = gligen_loader() + one() + box("two", "other", "", {0, 0, 80, 48});
  BOOST_TEST(relative_error(drawn(elsewhere, "boxed", "other"), made.floats("one")) > kTolerance);
}

// Blocks by the names of diffusers, with other attentions in parts of their own beside them.
BOOST_AUTO_TEST_CASE(files_of_diffusers_are_the_same) {
  write_file("gligen/diffusers", gligen_model(true));
  is(drawn(gligen_loader("diffusers") + one(), "boxed"), "one");
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  std::string many = gligen_loader();
  std::string from = "one";
  for (int i = 0; i < 31; ++i) {
    const std::string to = cat("box", i);
    many += box(from.c_str(), to.c_str(), "", {8 * (i % 8), 0, 8, 8});
    from = to;
  }
  says(refused(many, from.c_str()), "31 boxes, and GLIGEN reads at most 30");

  std::vector<FileTensor> wide = gligen_model(false);
  for (FileTensor& tensor : wide)
    if (tensor.name.find("middle_block.1.transformer_blocks.0.fuser.linear.") != std::string::npos)
      tensor =
          seeded_tensor(tensor.name, tensor.shape.size() == 2 ? std::vector<std::int64_t>{48, 64}
                                                              : std::vector<std::int64_t>{48});
  write_file("gligen/wide", wide);
  const std::string other = refused(gligen_loader("wide") + one(), "boxed");
  says(other, "the GLIGEN model");
  says(other, "middle_block.1.transformer_blocks.0.fuser.linear.weight");

  write_file("gligen/none", {seeded_tensor("something.weight", {4, 4})});
  says(refused(gligen_loader("none") + one(), "boxed"), "none.safetensors");
}

BOOST_AUTO_TEST_CASE(dividing_keeps_the_bytes, *boost::unit_test::label("long")) {
  const std::string nodes = gligen_loader() + one() +
                            node("both", "ConditioningCombine",
                                 R"("conditioning_1": ["boxed", 0], "conditioning_2": ["two", 0])");
  const auto draw_on = [&](heddle::EngineOptions options, const std::string& hints = "") {
    return drawn_with(std::move(options), flow_of(nodes, "both", "two", 2, hints));
  };
  const std::vector<float> alone = draw_on(options_for({"cpu:0"}));
  BOOST_TEST(alone.size() == 2u * 4 * 6 * 10);
  for (const char* mode : {"layers", "data", "cfg"}) {
    const std::string hints = cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
    BOOST_TEST((draw_on(options_for({"fake:0", "fake:1"}), hints) == alone), mode);
  }
  BOOST_TEST((draw_on(options_for({"fake:0"}, 14 << 20)) == alone), "little memory");
}

BOOST_AUTO_TEST_SUITE_END()
