// Pictures that a model is shown beside the one that it draws: FLUX.1 Kontext. Numbers are
// PyTorch's (make_reference_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct ReferenceFixture : NodeFixture {
  heddle::test::TensorFile shown{here() / "reference_goldens.safetensors"};

  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string picture(const std::string& name) {
    return node("picture_" + name, "test.latent",
                cat(R"("path": ")", (here() / "reference_goldens.safetensors").string(),
                    R"(", "name": "in.)", name, "\""));
  }
  // The conditioning "one" with these pictures: "shown".
  static std::string showing(const std::vector<std::string>& pictures,
                             const std::string& method = "") {
    std::string nodes, last = "one";
    for (const std::string& name : pictures) {
      const std::string next = cat("with", nodes.size());
      nodes += node(
          next, "ReferenceLatent",
          cat(R"("conditioning": [")", last, R"(", 0], "latent": ["picture_)", name, "\", 0]"));
      last = next;
    }
    return nodes +
           (method.empty()
                ? node("shown", "ReferenceLatent", cat(R"("conditioning": [")", last, "\", 0]"))
                : node("shown", "FluxKontextMultiReferenceLatentMethod",
                       cat(R"("conditioning": [")", last, R"(", 0], "reference_latents_method": ")",
                           method, "\"")));
  }
  std::vector<float> drawn(const std::string& nodes, const std::string& latent = "empty") {
    const std::string changes = cat(R"("cfg": 1, "steps": 3, "positive": ["shown", 0],
                                       "latent_image": [")",
                                    latent, "\", 0]");
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void check(const std::vector<float>& values, const std::string& golden) {
    const double error = heddle::test::relative_error(values, shown.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(references, ReferenceFixture)

BOOST_AUTO_TEST_CASE(a_model_is_shown_a_picture_of_another_size) {
  check(drawn(picture("first") + showing({"first"})), "one");
}

BOOST_AUTO_TEST_CASE(several_lie_where_the_method_says) {
  const std::string pictures = picture("first") + picture("second");
  const std::vector<std::string> all{"first", "second", "first"};
  check(drawn(pictures + showing(all)), "offset");
  check(drawn(pictures + showing(all, "offset")), "offset");
  check(drawn(pictures + showing(all, "index")), "index");
  check(drawn(pictures + showing(all, "uxo/uno")), "uxo");
}

BOOST_AUTO_TEST_CASE(each_item_of_a_batch_has_its_own) {
  check(drawn(picture("two") + picture("second") + showing({"two", "second"}) +
                  node("pair", "EmptyLatentImage", R"("width": 64, "height": 48, "batch_size": 2)"),
              "pair"),
        "batch");
}

BOOST_AUTO_TEST_CASE(what_the_model_cannot_be_shown_is_refused) {
  const auto said = [&](const std::string& nodes) {
    return heddle::test::engine_refusal([&] { drawn(nodes); });
  };
  const std::string pictures = picture("first");
  std::string text = said(pictures + showing({"first"}, "index_timestep_zero"));
  BOOST_TEST(text.find("lie as 'index_timestep_zero' says") != std::string::npos, text);
  text = said(node("picture_other", "test.latent",
                   cat(R"("path": ")", (here() / "concat_goldens.safetensors").string(),
                       R"(", "name": "in.odd.concat_latent_image")")) +
              showing({"other"}));
  BOOST_TEST(text.find("5 latent channels") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
