// Models that read a picture, or a picture and where it is drawn anew, beside the point: FLUX.1's
// Canny, Depth and Fill. Numbers are PyTorch's (make_concat_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;
using heddle::test::TensorFile;

namespace {

struct ConcatFixture : NodeFixture {
  TensorFile concat{here() / "concat_goldens.safetensors"};

  ConcatFixture() {
    write_wider_model("canny");
    write_wider_model("fill");
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string model(const std::string& name) {
    return node("wider", "UNETLoader",
                cat(R"("unet_name": ")", name, R"(.safetensors", "weight_dtype": "default")"));
  }
  static std::string shown(const std::string& name) {
    return node("shown", "test.conditioning",
                cat(R"("path": ")", (here() / "concat_goldens.safetensors").string(),
                    R"(", "prefix": "in.)", name, R"(", "option": "")"));
  }
  std::vector<float> drawn(const std::string& nodes, const std::string& positive,
                           const std::string& latent = R"(["empty", 0])") {
    const std::string changes = cat(R"("cfg": 1, "model": ["wider", 0], "positive": )", positive,
                                    R"(, "negative": ["one", 0], "latent_image": )", latent);
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void check(const std::vector<float>& values, const std::string& golden) {
    const double error = heddle::test::relative_error(values, concat.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
};

constexpr const char* kShownImage = R"(["shown", 0])";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(concat, ConcatFixture)

BOOST_AUTO_TEST_CASE(a_model_that_draws_by_a_picture_reads_it) {
  check(drawn(model("canny") + shown("image"), kShownImage), "canny");
  check(
      drawn(model("canny") + shown("other") +
                node("two_of", "EmptyLatentImage", R"("width": 64, "height": 48, "batch_size": 2)"),
            kShownImage, R"(["two_of", 0])"),
      "canny.resized");
}

BOOST_AUTO_TEST_CASE(pictures_are_spread_over_another_number_of_items) {
  const auto some = [](const std::string& count) {
    return node("some", "EmptyLatentImage", R"("width": 64, "height": 48, "batch_size": )" + count);
  };
  check(drawn(model("canny") + shown("other") + some("4"), kShownImage, R"(["some", 0])"),
        "canny.more");
  check(drawn(model("canny") + shown("three") + some("2"), kShownImage, R"(["some", 0])"),
        "canny.fewer");
}

BOOST_AUTO_TEST_CASE(a_model_that_fills_reads_the_picture_and_the_mask) {
  check(drawn(model("fill") + shown("masked"), kShownImage), "fill");
}

BOOST_AUTO_TEST_CASE(without_a_picture_all_is_drawn_anew) {
  check(drawn(model("fill") + shown("none"), kShownImage), "fill.none");
}

BOOST_AUTO_TEST_CASE(in_an_area_it_reads_what_lies_there) {
  check(drawn(model("fill") + shown("masked") +
                  node("area", "ConditioningSetAreaPercentage",
                       R"("conditioning": ["shown", 0], "width": 0.5, "height": 0.67, "x": 0.5,
                          "y": 0.33, "strength": 1.0)"),
              R"(["area", 0])"),
        "fill.area");
}

BOOST_AUTO_TEST_CASE(others_leave_it) {
  const auto plain = [&](const char* entry) {
    return drawn(node("wider", "UNETLoader",
                      R"("unet_name": "plain.safetensors", "weight_dtype": "default")") +
                     shown(entry),
                 kShownImage);
  };
  BOOST_TEST((plain("masked") == plain("none")));
}

BOOST_AUTO_TEST_CASE(a_picture_of_another_autoencoder_is_refused) {
  const std::string said = heddle::test::engine_refusal([&] {
    drawn(model("fill") + node("shown", "test.conditioning",
                               cat(R"("path": ")", (here() / "concat_goldens.safetensors").string(),
                                   R"(", "prefix": "in.odd", "option": "")")),
          kShownImage);
  });
  BOOST_TEST(said.find("5 latent channels; the model reads 4") != std::string::npos, said);
}

// From a picture to what is drawn by it, as plans tell and as it runs.
BOOST_AUTO_TEST_CASE(nodes_give_pictures_to_these_models) {
  const std::string picture =
      node("pipe", "DiffusersLoader", R"("model_path": "random")") +
      node("picture", "EmptyImage",
           R"("width": 17, "height": 12, "batch_size": 1, "color": 16744448)");
  const std::string by = R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["pipe", 2],
                            "pixels": ["picture", 0])";
  const auto results =
      run(picture + node("by", "InstructPixToPixConditioning", by) +
              node("first", "test.first", R"("list": ["by", 0])") +
              node("look", "test.look", R"("value": ["first", 0])") +
              node("plain", "VAEEncode", R"("pixels": ["picture", 0], "vae": ["pipe", 2])") +
              node("look_plain", "test.look", R"("value": ["plain", 0])") +
              R"("look_latent": {"class_type": "test.look", "inputs": {"value": ["by", 2]}})",
          {"plain.LATENT", "first.value", "by.latent"});
  const std::vector<float> encoded = results.floats("plain.LATENT", "samples");
  BOOST_TEST(scaled(results.floats("first.value", "concat_latent_image")) == encoded);
  BOOST_TEST(results.floats("by.latent", "samples") == std::vector<float>(encoded.size(), 0.0f));
  const auto drawn_by = [&](const char* name, const std::string& type, const std::string& inputs) {
    return drawn(model(name) + picture + node("by", type, by + inputs), R"(["by", 0])",
                 R"(["by", 2])");
  };
  BOOST_TEST(drawn_by("canny", "InstructPixToPixConditioning", "").size() == encoded.size());
  BOOST_TEST(
      drawn_by("fill", "InpaintModelConditioning", R"(, "mask": ["mask", 0], "noise_mask": true)")
          .size() == encoded.size());
}

BOOST_AUTO_TEST_SUITE_END()
