// Runs of small UNets with ControlNets, over models whose weights follow from their names.
#pragma once

#include <string>

#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/unet_controls.h"

namespace heddle::test {

struct UnetControlWorkflow : UnetWorkflow {
  UnetControlWorkflow() {
    expected = TensorFile(tests_folder() / "plugins/goldens/unet_control/expected.safetensors");
    write_safetensors(folder / "picture.safetensors", {given_tensor("picture", {2, 30, 44, 3})});
  }
  void add_control(const std::string& name) const {
    write_file("controlnet/" + name, unet_control(name));
  }
  std::string picture() const {
    return node("hint", "test.image",
                engine::cat(R"("path": ")", (folder / "picture.safetensors").string(),
                            R"(", "name": "picture")"));
  }
  void told_whole(const std::string& nodes) const {
    EngineOptions again = engine_options();
    again.model_dirs = {folder / "models"};
    Engine::Data data{again};
    check_inference(data, "{" + nodes + "}");
  }
  // One that is known before a run.
  static std::string grey() {
    return node("hint", "EmptyImage",
                R"("width": 44, "height": 30, "batch_size": 2, "color": 8421504)");
  }
  static std::string net(const std::string& name, const std::string& as = "net") {
    return node(as, "ControlNetLoader",
                engine::cat(R"("control_net_name": ")", name, R"(.safetensors")"));
  }
  static std::string applied(const std::string& name, const std::string& from,
                             const std::string& numbers, const std::string& hint = "hint") {
    const bool is_text = from == "text";
    return node(
        name, "ControlNetApplyAdvanced",
        engine::cat(R"("positive": [")", is_text ? "one" : from, R"(", 0], "negative": [")",
                    is_text ? "two" : from, R"(", )", is_text ? 0 : 1,
                    R"(], "control_net": ["net", 0], "image": [")", hint, R"(", 0], )", numbers));
  }
  static constexpr const char* kFromApplied =
      R"(, "positive": ["applied", 0], "negative": ["applied", 1])";
  // Two hints at once, one of them half the way, three items.
  std::string two_hints(const std::string& hint) const {
    return loader() + texts() + net("sd1") + hint +
           node("turned", "ImageFlip",
                R"("image": ["hint", 0], "flip_method": "y-axis: horizontally")") +
           node("three", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 3)") +
           applied("once", "text", R"("strength": 0.3, "start_percent": 0, "end_percent": 1)") +
           applied("applied", "once", R"("strength": 0.2, "start_percent": 0, "end_percent": 0.5)",
                   "turned") +
           drawing(sampler("7.0", "euler", "normal") + kFromApplied +
                   R"(, "latent_image": ["three", 0])");
  }
};

}  // namespace heddle::test
