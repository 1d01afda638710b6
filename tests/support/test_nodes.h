// Node types for tests of the graph floor: plain C descs made by hand, without a plugin.
// test_catalog() mirrors those ComfyUI classes that the FLUX and the simplest SD workflows use,
// port for port, besides a few "test." types for what these do not have.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/catalog.h"
#include "engine/graph/node_type.h"

namespace heddle::test {

inline heddle_status* execute_nothing(void*, heddle_ctx*) { return nullptr; }

inline heddle_widget make_widget(std::int32_t kind, double number = 0, double min = 0,
                                 double max = 0) {
  heddle_widget widget{};
  widget.size = sizeof widget;
  widget.kind = kind;
  widget.number = number;
  widget.min = min;
  widget.max = max;
  return widget;
}
inline heddle_widget int_widget(double number, double min, double max) {
  return make_widget(HEDDLE_WIDGET_INT, number, min, max);
}
inline heddle_widget float_widget(double number, double min, double max, double step = 0,
                                  double round = 0) {
  heddle_widget widget = make_widget(HEDDLE_WIDGET_FLOAT, number, min, max);
  widget.step = step;
  widget.round = round;
  return widget;
}
inline heddle_widget seed_widget() { return make_widget(HEDDLE_WIDGET_SEED); }
inline heddle_widget toggle_widget(bool on) {
  return make_widget(HEDDLE_WIDGET_TOGGLE, on ? 1 : 0);
}
inline heddle_widget text_widget(const char* text = "", const char* extra = nullptr) {
  heddle_widget widget = make_widget(HEDDLE_WIDGET_TEXT);
  widget.text = text;
  widget.extra = extra;
  return widget;
}
inline heddle_widget choice_widget(const char* const* choices, const char* text = nullptr) {
  heddle_widget widget = make_widget(HEDDLE_WIDGET_CHOICE);
  widget.choices = choices;
  widget.text = text;
  return widget;
}
inline heddle_widget source_widget(std::int32_t kind, const char* source,
                                   const char* extra = nullptr) {
  heddle_widget widget = make_widget(kind);
  widget.source = source;
  widget.extra = extra;
  return widget;
}

// A desc under construction. Strings have to be literals. Not to be moved once type() was called.
class TestNode {
 public:
  explicit TestNode(const char* type, std::uint32_t flags = 0) {
    desc.size = sizeof desc;
    desc.version = 1;
    desc.type = type;
    desc.title = type;
    desc.category = "test";
    desc.doc = "";
    desc.flags = flags;
    desc.execute = &execute_nothing;
  }
  TestNode(const TestNode&) = delete;

  TestNode& in(const char* name, const char* type, std::uint32_t flags = 0) {
    ports_.push_back({sizeof(heddle_port), flags, name, type, "", nullptr});
    return add(inputs_, desc.inputs, desc.input_count);
  }
  TestNode& in(const char* name, const char* type, const heddle_widget& widget,
               std::uint32_t flags = 0) {
    widgets_.push_back(widget);
    ports_.push_back({sizeof(heddle_port), flags, name, type, "", &widgets_.back()});
    return add(inputs_, desc.inputs, desc.input_count);
  }
  TestNode& out(const char* type, const char* name = nullptr, std::uint32_t flags = 0) {
    ports_.push_back(
        {sizeof(heddle_port), flags, name == nullptr ? type : name, type, "", nullptr});
    return add(outputs_, desc.outputs, desc.output_count);
  }
  TestNode& titled(const char* title, const char* category) {
    desc.title = title;
    desc.category = category;
    return *this;
  }

  heddle_port& last_port() { return ports_.back(); }

  heddle_node_desc desc{};

 private:
  TestNode& add(std::vector<const heddle_port*>& list, const heddle_port* const*& data,
                std::uint32_t& count) {
    list.push_back(&ports_.back());
    data = list.data();
    count = static_cast<std::uint32_t>(list.size());
    return *this;
  }

  std::deque<heddle_widget> widgets_;  // deques keep addresses
  std::deque<heddle_port> ports_;
  std::vector<const heddle_port*> inputs_, outputs_;
};

inline engine::NodeTypeRef type_of(std::shared_ptr<TestNode> node,
                                   const std::string& plugin = "org.heddle.test") {
  const heddle_node_desc* desc = &node->desc;
  return std::make_shared<engine::NodeType>(desc, plugin, std::move(node));
}

inline constexpr const char* kSamplers[] = {"euler", "heun", "dpmpp_2m", nullptr};
inline constexpr const char* kSchedules[] = {"simple", "sgm_uniform", "karras", "normal", nullptr};
inline constexpr const char* kWeightTypes[] = {"default", "fp8_e4m3fn", "fp8_e5m2", nullptr};
inline constexpr const char* kClipTypes[] = {"sdxl", "sd3", "flux", nullptr};
inline constexpr const char* kClipDevices[] = {"default", "cpu", nullptr};

// Adds node types to a catalog one by one: add("KSampler").in(...).out(...). Each is registered
// when the next one begins, or by the destructor.
class CatalogBuilder {
 public:
  explicit CatalogBuilder(engine::Catalog& catalog) : catalog_(catalog) {}
  ~CatalogBuilder() { finish(); }
  TestNode& add(const char* type, std::uint32_t flags = 0) {
    finish();
    node_ = std::make_shared<TestNode>(type, flags);
    return *node_;
  }

 private:
  void finish() {
    if (node_ != nullptr)
      catalog_.add(type_of(std::move(node_)), engine::Catalog::Duplicate::refuse);
    node_ = nullptr;
  }
  engine::Catalog& catalog_;
  std::shared_ptr<TestNode> node_;
};

inline void add_loaders(CatalogBuilder& b) {
  b.add("CheckpointLoaderSimple", HEDDLE_NODE_DESCRIBES)
      .in("ckpt_name", "STRING", source_widget(HEDDLE_WIDGET_FILE, "checkpoints"))
      .out("MODEL")
      .out("CLIP")
      .out("VAE");
  b.add("UNETLoader", HEDDLE_NODE_DESCRIBES)
      .in("unet_name", "STRING", source_widget(HEDDLE_WIDGET_FILE, "diffusion_models"))
      .in("weight_dtype", "STRING", choice_widget(kWeightTypes))
      .out("MODEL");
  b.add("DualCLIPLoader", HEDDLE_NODE_DESCRIBES)
      .in("clip_name1", "STRING", source_widget(HEDDLE_WIDGET_FILE, "text_encoders"))
      .in("clip_name2", "STRING", source_widget(HEDDLE_WIDGET_FILE, "text_encoders"))
      .in("type", "STRING", choice_widget(kClipTypes))
      .in("device", "STRING", choice_widget(kClipDevices), HEDDLE_PORT_OPTIONAL)
      .out("CLIP");
  b.add("VAELoader", HEDDLE_NODE_DESCRIBES)
      .in("vae_name", "STRING", source_widget(HEDDLE_WIDGET_FILE, "vae"))
      .out("VAE");
  b.add("LoadImage", HEDDLE_NODE_HOST)
      .titled("Load Image", "image")
      .in("image", "STRING", source_widget(HEDDLE_WIDGET_FILE, "input", "{\"image_upload\": true}"))
      .out("IMAGE")
      .out("MASK");
}

inline void add_sampling(CatalogBuilder& b) {
  b.add("KSampler")
      .titled("KSampler", "sampling")
      .in("model", "MODEL")
      .in("seed", "INT", seed_widget())
      .in("steps", "INT", int_widget(20, 1, 10000))
      .in("cfg", "FLOAT", float_widget(8, 0, 100, 0.1, 0.01))
      .in("sampler_name", "STRING", choice_widget(kSamplers))
      .in("scheduler", "STRING", choice_widget(kSchedules))
      .in("positive", "CONDITIONING")
      .in("negative", "CONDITIONING")
      .in("latent_image", "LATENT")
      .in("denoise", "FLOAT", float_widget(1, 0, 1, 0.01))
      .out("LATENT");
  b.add("KSamplerSelect").in("sampler_name", "STRING", choice_widget(kSamplers)).out("SAMPLER");
  b.add("BasicScheduler")
      .in("model", "MODEL")
      .in("scheduler", "STRING", choice_widget(kSchedules))
      .in("steps", "INT", int_widget(20, 1, 10000))
      .in("denoise", "FLOAT", float_widget(1, 0, 1, 0.01))
      .out("SIGMAS");
  b.add("RandomNoise").in("noise_seed", "INT", seed_widget()).out("NOISE");
  b.add("BasicGuider").in("model", "MODEL").in("conditioning", "CONDITIONING").out("GUIDER");
  b.add("SamplerCustomAdvanced")
      .in("noise", "NOISE")
      .in("guider", "GUIDER")
      .in("sampler", "SAMPLER")
      .in("sigmas", "SIGMAS")
      .in("latent_image", "LATENT")
      .out("LATENT", "output")
      .out("LATENT", "denoised_output");
  b.add("ModelSamplingFlux")
      .in("model", "MODEL")
      .in("max_shift", "FLOAT", float_widget(1.15, 0, 100, 0.01))
      .in("base_shift", "FLOAT", float_widget(0.5, 0, 100, 0.01))
      .in("width", "INT", int_widget(1024, 16, 16384))
      .in("height", "INT", int_widget(1024, 16, 16384))
      .out("MODEL");
}

inline void add_conditioning_and_pictures(CatalogBuilder& b) {
  b.add("CLIPTextEncode")
      .titled("CLIP Text Encode (Prompt)", "conditioning")
      .in("text", "STRING", text_widget("", "{\"multiline\": true, \"dynamicPrompts\": true}"))
      .in("clip", "CLIP")
      .out("CONDITIONING");
  b.add("FluxGuidance")
      .in("conditioning", "CONDITIONING")
      .in("guidance", "FLOAT", float_widget(3.5, 0, 100, 0.1))
      .out("CONDITIONING");
  for (const char* type : {"EmptyLatentImage", "EmptySD3LatentImage"}) {
    b.add(type)
        .in("width", "INT", int_widget(512, 16, 16384))
        .in("height", "INT", int_widget(512, 16, 16384))
        .in("batch_size", "INT", int_widget(1, 1, 4096))
        .out("LATENT");
  }
  b.add("VAEDecode").in("samples", "LATENT").in("vae", "VAE").out("IMAGE");
  b.add("VAEEncode").in("pixels", "IMAGE").in("vae", "VAE").out("LATENT");
  b.add("SaveImage", HEDDLE_NODE_SINK | HEDDLE_NODE_HOST)
      .titled("Save Image", "image")
      .in("images", "IMAGE")
      .in("filename_prefix", "STRING", text_widget("ComfyUI"))
      .in("prompt", "PROMPT", HEDDLE_PORT_HIDDEN)
      .in("extra_pnginfo", "EXTRA_PNGINFO", HEDDLE_PORT_HIDDEN);
}

inline void add_test_types(CatalogBuilder& b) {
  b.add("test.values")
      .in("int", "INT", int_widget(3, -100, 100))
      .in("float", "FLOAT", float_widget(0.5, 0, 0))
      .in("text", "STRING", text_widget("abc"))
      .in("toggle", "BOOLEAN", toggle_widget(true))
      .in("seed", "INT", seed_widget())
      .in("any", "*", HEDDLE_PORT_OPTIONAL)
      .in("number", "INT,FLOAT", HEDDLE_PORT_OPTIONAL)
      .in("whole", "INT", HEDDLE_PORT_OPTIONAL)
      .out("INT")
      .out("FLOAT")
      .out("STRING")
      .out("*", "ANY")
      .out("INT,STRING", "UNION");
  b.add("test.show", HEDDLE_NODE_SINK)
      .in("any", "*")
      .in("text", "STRING", text_widget(), HEDDLE_PORT_OPTIONAL);
  b.add("test.pass")
      .in("value", "IMAGE", HEDDLE_PORT_OPTIONAL)
      .in("lazy", "IMAGE", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_LAZY)
      .out("IMAGE");
  b.add("test.many", HEDDLE_NODE_ANY_INPUT).in("first", "*", HEDDLE_PORT_OPTIONAL).out("IMAGE");
  b.add("test.block", HEDDLE_NODE_BLOCK).in("x", "TENSOR").out("TENSOR", "out");
}

// A catalog of its own at every call, for tests that change it.
inline engine::Catalog test_catalog() {
  engine::Catalog catalog;
  {
    CatalogBuilder b(catalog);
    add_loaders(b);
    add_sampling(b);
    add_conditioning_and_pictures(b);
    add_test_types(b);
  }
  return catalog;
}

// The files that the sample workflows name.
inline std::vector<std::string> sample_files(std::string_view folder) {
  if (folder == "checkpoints")
    return {"flux1-dev-fp8.safetensors", "flux1-schnell-fp8.safetensors", "sd15.safetensors"};
  if (folder == "diffusion_models") return {"flux1-dev.safetensors", "flux1-schnell.safetensors"};
  if (folder == "text_encoders")
    return {"clip_l.safetensors", "t5xxl_fp16.safetensors", "t5xxl_fp8_e4m3fn.safetensors"};
  if (folder == "vae") return {"ae.safetensors"};
  if (folder == "input") return {"example.png"};
  return {};
}

inline void list_sample_files(engine::Catalog& catalog) {
  catalog.set_file_lister(
      [](std::string_view folder, std::int32_t) { return sample_files(folder); },
      [](std::string_view folder) {
        return std::vector<std::string>{"models/" + std::string(folder)};
      });
}

}  // namespace heddle::test
