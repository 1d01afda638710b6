// LoRA files of each family by every style of names that programs write: what ModelSave then has is
// W + strength * alpha / rank * up * down in the rows that a name means, and W everywhere else. How
// diffusers calls modules is told by its own converters (../goldens/make_lora_name_cases.py); the
// styles are those of ComfyUI's comfy/lora.py.
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/krea2_names.h"
#include "tests/support/merged_lora.h"
#include "tests/support/svd_models.h"
#include "tests/support/wan_names.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr float kNamedStrength = 0.5f, kNamedAlpha = 3.0f;
constexpr std::int64_t kNamedRank = 2;

struct LoraStyle {
  const char *name, *before;
  bool is_flat, by_others;
  const char *up, *down;
  bool has_alpha;
  bool is_for_all = false;  // the others differ in what no family is asked for: small models do
};
constexpr const char *kA = ".lora_A.weight", *kB = ".lora_B.weight", *kUp = ".lora_up.weight",
                     *kDown = ".lora_down.weight", *kDefaultA = ".lora_A.default.weight",
                     *kDefaultB = ".lora_B.default.weight";
constexpr LoraStyle kLoraStyles[] = {
    {"lightx2v", "diffusion_model.", false, false, kUp, kDown, true, true},
    {"kohya", "lora_unet_", true, false, kUp, kDown, true, true},
    {"diffusers", "transformer.", false, true, kB, kA, false, true},
    {"onetrainer", "lora_transformer_", true, true, kUp, kDown, true, true},
    {"comfyui", "diffusion_model.", false, false, kB, kA, false},
    {"bare", "", false, false, kDefaultB, kDefaultA, false},
    {"dotted", "", false, false, ".lora.up.weight", ".lora.down.weight", true},
    {"fun", "lora_unet__", true, false, kUp, kDown, true},
    {"peft", "base_model.model.", false, true, kDefaultB, kDefaultA, false},
    {"simpletuner", "lycoris_", true, true, kUp, kDown, true}};
constexpr std::size_t kSmallModel = 1 << 19;  // numbers

struct RowsOf {
  std::string tensor;
  std::int64_t begin = 0, end = -1;  // -1: to the last
};
using NamedModules = std::map<std::string, std::vector<RowsOf>>;

// A family's small model, and its modules by the names that other programs have for them.
struct NamedFamily {
  std::vector<FileTensor> tensors;
  NamedModules others;
};

engine::Json lora_name_cases() {
  const std::filesystem::path file = tests_folder() / "plugins/nodes/lora_names.json";
  return engine::parse_json(read_text(file), file.string());
}

constexpr const char* kSvd = "Stable Video Diffusion";

std::vector<std::string> named_families() {
  std::vector<std::string> names{kSvd};
  const engine::Json all = lora_name_cases();
  for (const auto& member : all.members()) names.emplace_back(member.key);
  return names;
}

bool is_matrix(const FileTensor& tensor) {
  return tensor.shape.size() > 1 && tensor.name.ends_with(".weight");
}
std::string without_kind(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

NamedFamily svd_family() {
  NamedFamily family{svd_model("unet"), {}};
  const std::vector<FileTensor> by_diffusers = family.tensors;
  name_svd_as_original(family.tensors);
  for (std::size_t i = 0; i < by_diffusers.size(); ++i)
    if (is_matrix(by_diffusers[i]))
      family.others[without_kind(by_diffusers[i].name)] = {{family.tensors[i].name}};
  return family;
}

// Tensors of the names and shapes of a golden file.
std::vector<FileTensor> file_model(const std::string& folder, const std::string& file) {
  std::vector<FileTensor> tensors;
  const TensorFile golden(tests_folder() / "plugins/goldens" / folder / file);
  for (const auto& [tensor, entry] : golden.entries())
    tensors.push_back(seeded_tensor(tensor, entry.shape));
  return tensors;
}

NamedFamily named_family(const std::string& name) {
  if (name == kSvd) return svd_family();
  const engine::Json all = lora_name_cases();
  const engine::Json& told = all.at(name);
  const std::string model(told.at("model").as_string());
  const std::string folder(told.at("goldens").as_string());
  NamedFamily family{model.ends_with(".safetensors") ? file_model(folder, model)
                                                     : seeded_model(model, false, folder),
                     {}};
  if (const auto* layers = told.find("layers"))
    name_unet_as_original(family.tensors, int(layers->as_int64()));
  for (FileTensor& tensor : family.tensors)  // some files hold several models
    if (tensor.name.starts_with(model + ".")) tensor.name.erase(0, model.size() + 1);
  for (const auto& member : told.at("others").members()) {
    std::vector<RowsOf>& rows = family.others[std::string(member.key)];
    if (!member.value.is_array()) {
      rows.push_back({std::string(member.value.as_string())});
      continue;
    }
    for (const engine::Json& part : member.value.as_array())
      rows.push_back(
          {std::string(part.at(0).as_string()), part.at(1).as_int64(), part.at(2).as_int64()});
  }
  return family;
}

struct LoraNames : NodeFixture {
  std::mutex guard;
  std::vector<std::string> logged;
  std::filesystem::path out = folder / "saved";

  // A tensor's values as they are to be.
  struct Values {
    std::vector<std::int64_t> shape;
    std::vector<float> floats;
    bool is_named = false;
  };
  using Model = std::map<std::string, Values>;

  EngineOptions logging_options() {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.output_dir = out;
    options.log = [this](int, std::string_view message) {
      const std::lock_guard lock(guard);
      logged.emplace_back(message);
    };
    return options;
  }
  LoraNames() { std::filesystem::create_directories(folder / "models/loras/names"); }

  void write_model(const std::vector<FileTensor>& tensors) const {
    write_safetensors(folder / "models/diffusion_models/model.safetensors", tensors);
  }
  static Model model_of(const std::vector<FileTensor>& tensors) {
    Model model;
    for (const FileTensor& tensor : tensors)
      model[tensor.name] = {tensor.shape, floats_of(tensor), false};
    return model;
  }
  // Saves the model with each of these LoRAs as "NAME_00001_.safetensors".
  void save_with(const std::vector<std::string>& loras) {
    std::string flow =
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "model.safetensors", "weight_dtype": "default"}})";
    for (const std::string& name : loras)
      flow += cat(
          ", \"", name,
          R"(": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "strength_model": 0.5, "lora_name": "names/)",
          name, R"(.safetensors"}}, "save )", name,
          R"(": {"class_type": "ModelSave", "inputs": {"model": [")", name,
          R"(", 0], "filename_prefix": ")", name, R"("}})");
    Engine logging(logging_options());
    logging.start(logging.parse(flow + "}")).wait();
  }
  // Adds `factor` times the changes, rows one after another, to what a name means.
  static void add(Model& model, const std::vector<RowsOf>& named, const std::vector<float>& changes,
                  float factor) {
    std::size_t at = 0;
    for (const RowsOf& rows : named) {
      Values& values = model.at(rows.tensor);
      const std::size_t all = std::size_t(values.shape[0]), width = values.floats.size() / all,
                        end = rows.end < 0 ? all : std::size_t(rows.end);
      for (std::size_t i = std::size_t(rows.begin) * width; i < end * width; ++i)
        values.floats[i] += factor * changes[at++];
      values.is_named = true;
    }
    BOOST_TEST(at == changes.size());
  }
  // A LoRA of these modules in this style, added to the model on the way.
  static std::vector<FileTensor> factors_of(const NamedModules& modules, const LoraStyle& style,
                                            Model& model) {
    std::vector<FileTensor> factors;
    for (const auto& [module, named] : modules) {
      std::string key = style.before + module;
      if (style.is_flat) std::ranges::replace(key, '.', '_');
      std::int64_t count = 0;
      for (const RowsOf& rows : named)
        count += (rows.end < 0 ? model.at(rows.tensor).shape[0] : rows.end) - rows.begin;
      std::vector<std::int64_t> shape = model.at(named.front().tensor).shape;
      shape[0] = kNamedRank;
      const FileTensor down = seeded_tensor(key + style.down, shape);
      std::ranges::fill(shape, 1);
      shape[0] = count, shape[1] = kNamedRank;
      const FileTensor up = seeded_tensor(key + style.up, shape);
      add(model, named, product_of(up, down),
          kNamedStrength * (style.has_alpha ? kNamedAlpha / float(kNamedRank) : 1.0f));
      factors.push_back(up), factors.push_back(down);
      if (style.has_alpha)
        factors.push_back({key + ".alpha", "F32", {}, bytes_of_floats({kNamedAlpha})});
    }
    return factors;
  }
  static std::vector<float> product_of(const FileTensor& up, const FileTensor& down) {
    const std::vector<float> u = floats_of(up), d = floats_of(down);
    const std::size_t rank = std::size_t(kNamedRank), width = d.size() / rank;
    std::vector<float> product(u.size() / rank * width);
    for (std::size_t i = 0; i < product.size(); ++i)
      for (std::size_t k = 0; k < rank; ++k)
        product[i] += u[i / width * rank + k] * d[k * width + i % width];
    return product;
  }
  void write_lora(const std::string& name, const std::vector<FileTensor>& tensors) const {
    write_safetensors(folder / ("models/loras/names/" + name + ".safetensors"), tensors);
  }
  // The file's model with a LoRA of each style.
  void check_styles(const NamedFamily& family) {
    const Model plain = model_of(family.tensors);
    NamedModules own;
    for (const FileTensor& tensor : family.tensors)
      if (is_matrix(tensor)) own[without_kind(tensor.name)] = {{tensor.name}};
    std::size_t numbers = 0;
    for (const auto& [tensor, values] : plain) numbers += values.floats.size();
    std::map<std::string, Model> wanted;
    std::vector<std::string> loras;
    for (const LoraStyle& style : kLoraStyles) {
      const NamedModules& modules = style.by_others ? family.others : own;
      if (modules.empty() || (!style.is_for_all && numbers > kSmallModel)) continue;
      Model& model = wanted[style.name] = plain;
      write_lora(style.name, factors_of(modules, style, model));
      loras.emplace_back(style.name);
    }
    std::filesystem::remove_all(out);
    save_with(loras);
    for (const std::string& message : logged)
      BOOST_TEST(message.find("left out") == std::string::npos, message);
    for (const auto& [lora, model] : wanted) compare(lora, plain, model);
  }
  // What was saved with a LoRA, name for name.
  void compare(const std::string& lora, const Model& before, const Model& wanted) const {
    const engine::Checkpoint saved = engine::open_checkpoint(out / (lora + "_00001_.safetensors"));
    constexpr std::string_view kPrefix = "model.diffusion_model.";
    for (const auto& [name, values] : wanted) {
      const engine::TensorView& tensor = saved.at(std::string(kPrefix) + name);
      BOOST_TEST((tensor.shape == values.shape), lora << ": " << name);
      std::vector<float> floats(values.floats.size());
      BOOST_TEST_REQUIRE(tensor.data.size() == floats.size() * sizeof(float));
      std::memcpy(floats.data(), tensor.data.data(), tensor.data.size());
      if (!values.is_named) {
        BOOST_TEST((floats == before.at(name).floats), lora << " changed " << name);
        continue;
      }
      const double error = relative_error(floats, values.floats),
                   moved = relative_error(values.floats, before.at(name).floats);
      BOOST_TEST(error < 1e-6, lora << ": " << name << ": relative error " << error);
      BOOST_TEST(moved > 1e-3, lora << " moves " << name << " by " << moved);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lora_names, LoraNames)

BOOST_DATA_TEST_CASE_F(LoraNames, every_style_of_names_means_the_same_weights, named_families(),
                       name) {
  BOOST_TEST_MESSAGE(name);
  const NamedFamily family = named_family(name);
  write_model(family.tensors);
  check_styles(family);
}

BOOST_AUTO_TEST_CASE(files_with_the_names_of_diffusers_take_the_same) {
  write_model(svd_model("unet"));
  check_styles(named_family(kSvd));
  for (const auto& [name, rename] :
       {std::pair("Krea 2", &name_krea2_as_diffusers), {"Wan 2.1", &name_wan_as_diffusers}}) {
    BOOST_TEST_MESSAGE(name);
    const NamedFamily family = named_family(name);
    std::vector<FileTensor> renamed = family.tensors;
    rename(renamed);
    write_model(renamed);
    check_styles(family);
  }
}

// ".diff_m", which older files of lightx2v have of each block, is nothing that ComfyUI applies.
BOOST_DATA_TEST_CASE_F(LoraNames, every_tensor_takes_a_difference_and_what_fits_none_is_told,
                       named_families(), name) {
  BOOST_TEST_MESSAGE(name);
  const NamedFamily family = named_family(name);
  write_model(family.tensors);
  const Model plain = model_of(family.tensors);
  Model wanted = plain;
  std::vector<FileTensor> lora;
  for (const FileTensor& tensor : family.tensors) {
    const bool is_bias = tensor.name.ends_with(".bias"),
               has_kind = is_bias || tensor.name.ends_with(".weight");
    const std::string key =
        cat("diffusion_model.", has_kind ? without_kind(tensor.name) : tensor.name,
            is_bias ? ".diff_b" : ".diff");
    lora.push_back(seeded_tensor(key, tensor.shape));
    add(wanted, {{tensor.name}}, floats_of(lora.back()), kNamedStrength);
  }
  const std::vector<std::string> strangers{"diffusion_model.blocks.0.diff_m",
                                           "diffusion_model.blocks.99.nowhere.lora_up.weight",
                                           "diffusion_model.blocks.99.nowhere.lora_down.weight"};
  for (const std::string& key : strangers) lora.push_back(seeded_tensor(key, {2, 2}));
  write_lora("differences", lora);
  save_with({"differences"});
  const auto told = std::ranges::find_if(logged, [](const std::string& message) {
    return message.find("left out") != std::string::npos;
  });
  BOOST_TEST_REQUIRE((told != logged.end()));
  BOOST_TEST(told->find(cat("3 of its ", lora.size(), " keys")) != std::string::npos, *told);
  for (const std::string& key : strangers) BOOST_TEST(told->find(key) != std::string::npos, *told);
  compare("differences", plain, wanted);
}

// FLUX.1 by the names of the processors that USO's file has instead of its attentions, and by those
// that ComfyUI gives them.
BOOST_AUTO_TEST_CASE(processors_of_attentions_are_what_they_replace) {
  const std::vector<FileTensor> tensors = file_model("random", "flux_original.safetensors");
  write_model(tensors);
  const Model plain = model_of(tensors);
  const std::int64_t qkv = 3 * plain.at("single_blocks.0.linear2.weight").shape[0];
  const NamedModules by_processor{
      {"double_blocks.0.processor.qkv_lora1", {{"double_blocks.0.img_attn.qkv.weight"}}},
      {"double_blocks.1.processor.proj_lora1", {{"double_blocks.1.img_attn.proj.weight"}}},
      {"double_blocks.0.processor.qkv_lora2", {{"double_blocks.0.txt_attn.qkv.weight"}}},
      {"double_blocks.1.processor.proj_lora2", {{"double_blocks.1.txt_attn.proj.weight"}}},
      {"single_blocks.1.processor.qkv_lora", {{"single_blocks.1.linear1.weight", 0, qkv}}},
      {"single_blocks.0.processor.proj_lora", {{"single_blocks.0.linear2.weight"}}}},
      by_comfyui{{"single_blocks.0.linear1_qkv", {{"single_blocks.0.linear1.weight", 0, qkv}}}};
  Model wanted = plain;
  const LoraStyle uso{"uso", "", false, false, ".up.weight", ".down.weight", false};
  std::vector<FileTensor> lora = factors_of(by_processor, uso, wanted);
  std::ranges::move(factors_of(by_comfyui, kLoraStyles[0], wanted), std::back_inserter(lora));
  write_lora("uso", lora);
  save_with({"uso"});
  for (const std::string& message : logged)
    BOOST_TEST(message.find("left out") == std::string::npos, message);
  compare("uso", plain, wanted);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
