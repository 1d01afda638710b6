#include "ip_adapter_loaders.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <span>
#include <string_view>

#include "model_files.h"
#include "model_roles.h"

namespace heddle::loaders {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTowers = "clip_vision";
constexpr const char* kIpAdapters = "ipadapter";
constexpr std::string_view kAny = ".";  // of a pattern: any character

// What stands in a file's name before its ending: `first`, if any, somewhere, then `last` at the
// end.
struct NamePattern {
  std::string_view first, last;
};

bool is_like(std::string_view text, std::string_view pattern) {
  return text.size() == pattern.size() &&
         std::equal(text.begin(), text.end(), pattern.begin(), [](char one, char wanted) {
           return wanted == kAny.front() || std::tolower(static_cast<unsigned char>(one)) == wanted;
         });
}

bool is_named(std::string_view stem, const NamePattern& pattern) {
  if (stem.size() < pattern.last.size()) return false;
  const std::size_t end = stem.size() - pattern.last.size();
  if (!is_like(stem.substr(end), pattern.last)) return false;
  for (std::size_t at = 0; at + pattern.first.size() <= end; ++at)
    if (is_like(stem.substr(at, pattern.first.size()), pattern.first)) return true;
  return pattern.first.empty();
}

// Files of the published towers and adapters, for Stable Diffusion 1.5 and SDXL: the names by which
// the pack finds them.
constexpr NamePattern kTowersH[] = {
    {"vit.h.14", "s32b.b79k"}, {"ipadapter", "sd15"}, {"sd15", "model"}, {"sd1.5", "model"}};
constexpr NamePattern kTowersG[] = {
    {"vit.bigg.14", "39b.b160k"}, {"ipadapter", "sdxl"}, {"sdxl", "model"}};
struct Preset {
  std::string_view start;                 // of the preset's name
  std::array<std::string_view, 2> first;  // preferred, then else, of Stable Diffusion 1.5
  std::string_view sdxl;                  // none: there is no such file
  bool is_of_g = false;
};
constexpr Preset kPresetFiles[] = {
    {"LIGHT", {"sd15.light.v11", "sd15.light"}, ""},
    {"STANDARD", {"ip.adapter.sd15", ""}, "ip.adapter.sdxl.vit.h"},
    {"VIT-G", {"sd15.vit.g", ""}, "ip.adapter.sdxl", true},
    {"PLUS (", {"ip.adapter.plus.sd15", ""}, "plus.sdxl.vit.h"},
    {"PLUS FACE", {"plus.face.sd15", ""}, "plus.face.sdxl.vit.h"},
    {"FULL FACE", {"full.face.sd15", ""}, ""},
};

const Preset& preset_named(const std::string& name) {
  for (const Preset& preset : kPresetFiles)
    if (name.starts_with(preset.start)) return preset;
  throw Error(HEDDLE_INVALID_ARGUMENT, "preset: '" + name + "' is none that is known.");
}

// The first file of a model folder, by its name, that fits; empty where none does.
fs::path find_like(Context& ctx, const char* folder, std::span<const NamePattern> patterns) {
  constexpr int kDeepest = 8;
  std::vector<std::pair<std::string, fs::path>> found;
  const Value places = places_of(ctx, folder);
  for (std::uint32_t i = 0; i < places.count(); ++i) {
    const fs::path place = places.item(i).as<std::string>();
    std::error_code failed;
    for (fs::recursive_directory_iterator
             entry(place, fs::directory_options::follow_directory_symlink, failed),
         end;
         !failed && entry != end; entry.increment(failed)) {
      if (entry.depth() > kDeepest)
        entry.disable_recursion_pending();  // a link that points upwards must not keep us here
      const fs::path& path = entry->path();
      const std::string ending = path.extension().string();
      if (ending != ".safetensors" && ending != ".bin") continue;
      // By its own name, wherever it is a link to.
      const std::string name = path.lexically_relative(place).generic_string(),
                        stem = name.substr(0, name.size() - ending.size());
      if (std::ranges::any_of(patterns,
                              [&](const NamePattern& one) { return is_named(stem, one); }))
        found.emplace_back(name, path);
    }
  }
  return found.empty() ? fs::path() : std::ranges::min_element(found)->second;
}

fs::path adapter_file(Context& ctx, const Preset& preset, bool is_sdxl) {
  if (is_sdxl) {
    const NamePattern patterns[] = {{"", preset.sdxl}};
    return preset.sdxl.empty() ? fs::path() : find_like(ctx, kIpAdapters, patterns);
  }
  for (const std::string_view name : preset.first) {
    const NamePattern patterns[] = {{"", name}};
    if (name.empty()) continue;
    if (fs::path found = find_like(ctx, kIpAdapters, patterns); !found.empty()) return found;
  }
  return {};
}

fs::path tower_file(Context& ctx, const Preset& preset) {
  return preset.is_of_g ? find_like(ctx, kTowers, kTowersG) : find_like(ctx, kTowers, kTowersH);
}

Value built(Context& ctx, const char* role, const fs::path& path) {
  return build_for(ctx, role, Checkpoint::open(path.string()), Value());
}

}  // namespace

void IPAdapterModelLoader::execute(Context& ctx) {
  const fs::path path = find_file(ctx, kIpAdapters, ctx[ipadapter_file]);
  ctx[ipadapter] = Record().set("model", built(ctx, "ip_adapter", path)).value();
}
std::uint64_t IPAdapterModelLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, ipadapter_file);
}

void IPAdapterUnifiedLoader::execute(Context& ctx) {
  const Value denoiser = ctx[model_in];
  const Preset& wanted = preset_named(ctx[preset]);
  const bool is_sdxl = model_settings(denoiser).has("size_numbers");
  const fs::path adapter = adapter_file(ctx, wanted, is_sdxl), tower = tower_file(ctx, wanted);
  if (is_sdxl && wanted.sdxl.empty())
    throw Error(HEDDLE_UNSUPPORTED, "preset: '" + std::string(ctx[preset]) +
                                        "' is for Stable Diffusion 1.5 alone, and the model is "
                                        "SDXL. Take PLUS or PLUS FACE.");
  if (adapter.empty())
    throw Error(HEDDLE_NOT_FOUND,
                "preset: no file of the folder 'ipadapter' has a name that ends in '" +
                    std::string(is_sdxl ? wanted.sdxl : wanted.first[0]) +
                    "' ('.' stands for any character). Download the IP-Adapter there, under the "
                    "name that it was published by.");
  if (tower.empty())
    throw Error(HEDDLE_NOT_FOUND,
                std::string("preset: no file of the folder 'clip_vision' is the vision tower that "
                            "goes with it. Download ") +
                    (wanted.is_of_g ? "CLIP-ViT-bigG-14-laion2B-39B-b160k.safetensors"
                                    : "CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors") +
                    " there.");
  const Value seen = Record().set("model", built(ctx, "vision_encoder", tower)).value();
  ctx[model] = denoiser;
  ctx[ipadapter] =
      Record().set("model", built(ctx, "ip_adapter", adapter)).set("clip_vision", seen).value();
}

std::uint64_t IPAdapterUnifiedLoader::fingerprint(Context& ctx) {
  if (!ctx.has(preset)) return 0;
  const Preset& wanted = preset_named(ctx[preset]);
  std::vector<fs::path> paths;
  for (const fs::path& path :
       {adapter_file(ctx, wanted, false), adapter_file(ctx, wanted, true), tower_file(ctx, wanted)})
    if (!path.empty()) paths.push_back(path);
  return fingerprint_of(ctx, paths);
}

}  // namespace heddle::loaders
