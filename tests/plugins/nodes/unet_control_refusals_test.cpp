// ControlNets that do not go with a UNet, and texts that they cannot read: refused while a run is
// planned.
#include <tuple>

#include "tests/plugins/nodes/unet_control_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

BOOST_FIXTURE_TEST_SUITE(unet_control_refusals, UnetControlWorkflow)

BOOST_AUTO_TEST_CASE(a_text_that_a_control_net_cannot_read_is_refused_before_anything_runs) {
  write("sdxl");
  add_control("sdxl");
  write_file("text_encoders/clip_g", unet_model("clip_g"));
  const auto worded = [](const char* from, const char* to) {
    return node(to, "CLIPTextEncodeControlnet",
                cat(R"("clip": ["own", 0], "text": "", "conditioning": [")", from, R"(", 0])"));
  };
  const auto planned = [&](const char* negative) {
    const std::string flow =
        "{" + loader() + texts() + net("sdxl") + grey() +
        node(
            "own", "CLIPLoader",
            R"("clip_name": "clip_g.safetensors", "type": "stable_diffusion", "device": "default")") +
        worded("one", "worded") +
        node("applied", "ControlNetApplyAdvanced",
             cat(R"("positive": ["one", 0], "negative": [")", negative, R"(", 0],
                "control_net": ["net", 0], "image": ["hint", 0], "strength": 0.3,
                "start_percent": 0, "end_percent": 1)")) +
        drawing(sampler("7.0", "euler", "normal") + kFromApplied) + "}";
    engine.plan(engine.parse(flow));
  };
  planned("two");
  const std::string said = engine_refusal([&] { planned("worded"); });
  for (const char* part :
       {"'cross_attn_controlnet'", "is 64 wide", "(unet-control) reads 128", "Encode it with"})
    BOOST_TEST(said.find(part) != std::string::npos, "'" << part << "' is not in: " << said);
}

BOOST_AUTO_TEST_CASE(a_control_net_of_another_unet_is_refused_before_anything_runs) {
  write("sdxl");
  for (const char* kind : {"sd1", "sd2", "sdxl"}) add_control(kind);
  const auto refusal = [&](const std::string& kind) {
    const std::string flow =
        "{" + loader() + texts() + net(kind) + grey() +
        applied("applied", "text", R"("strength": 1, "start_percent": 0, "end_percent": 1)") +
        drawing(sampler("6.0", "euler", "normal") + kFromApplied) + "}";
    return engine_refusal([&] { engine.plan(engine.parse(flow)); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(refusal("sd1"), {"texts of width 64", "those of width 128", "made for this model"});
  // Of other sizes, with texts of the same width.
  std::vector<FileTensor> other = unet_control("sd1");
  for (FileTensor& tensor : other)
    if (tensor.name.ends_with("attn2.to_k.weight") || tensor.name.ends_with("attn2.to_v.weight"))
      tensor = seeded_tensor(tensor.name, {tensor.shape[0], 128});
  write_file("controlnet/other", other);
  says(refusal("other"), {"'control.output.2' has 32 channels at 1/1", "takes 32 channels at 1/2",
                          "made for this model"});
  // What is no ControlNet, and a ControlNet in the place of a model.
  write_file("controlnet/whole", unet_model("sdxl"));
  says(refusal("whole"),
       {"whole.safetensors", "a diffusion model (unet), not a ControlNet", "UNETLoader"});
  for (const auto& [tensor, what, advice] :
       {std::tuple("lora_unet_x.lora_down.weight", "a LoRA, not a ControlNet", "LoraLoader"),
        std::tuple("ip_adapter.1.to_k_ip.weight", "a part of an IP-Adapter",
                   "IPAdapterModelLoader"),
        std::tuple("position_net.linears.0.weight", "a part of a GLIGEN model", "GLIGENLoader")}) {
    write_file("controlnet/other", {seeded_tensor(tensor, {4, 4})});
    says(refusal("other"), {"other.safetensors", what, advice});
  }
  write_file("diffusion_models/net", unet_control("sdxl"));
  says(engine_refusal([&] {
         engine.plan(engine.parse(
             "{" +
             node("unet", "UNETLoader",
                  R"("unet_name": "net.safetensors", "weight_dtype": "default")") +
             R"("look": {"class_type": "test.look", "inputs": {"value": ["unet", 0]}}})"));
       }),
       {"a ControlNet (unet-control), not a diffusion model", "ControlNetLoader"});
}

BOOST_AUTO_TEST_SUITE_END()
