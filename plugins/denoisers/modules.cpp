#include "modules.h"

#include "flux3_names.h"
#include "flux_names.h"
#include "hunyuan_names.h"
#include "krea2_names.h"
#include "ltxv_names.h"
#include "minimax_names.h"
#include "qwen21_names.h"
#include "qwen_names.h"
#include "sd3_names.h"
#include "unet_names.h"
#include "wan_names.h"
#include "zimage_names.h"

namespace heddle::denoisers {
namespace {

template <class Names>
heddle_status* list_modules(const heddle_host*, const heddle_checkpoint* raw,
                            heddle_module_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    const auto names = Names::find(file);
    if (!names)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of the family");
    names->each_module(
        [&](const std::string& module, const char* kind, const std::vector<Part>& parts) {
          const RawParts raw_parts(parts);
          found(to, module.c_str(), kind, raw_parts.size(), raw_parts.data());
        });
  });
}

template <class Names>
heddle_status* list_originals(const heddle_host*, const heddle_checkpoint* raw,
                              heddle_original_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    const auto names = Names::find(file);
    if (!names)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of the family");
    names->each_original([&](const std::string& tensor, const std::vector<Part>& parts) {
      const RawParts raw_parts(parts);
      std::vector<std::int64_t> shape;  // empty: as the rows are
      if constexpr (requires { names->original_shape(tensor, parts); })
        shape = names->original_shape(tensor, parts);
      found(to, tensor.c_str(), raw_parts.size(), raw_parts.data(), std::uint32_t(shape.size()),
            shape.empty() ? nullptr : shape.data());
    });
  });
}

constexpr heddle_module_names_desc kFlux{sizeof(heddle_module_names_desc), "flux",
                                         "by the original names and by those of diffusers",
                                         &list_modules<FluxNames>, &list_originals<FluxNames>};
constexpr heddle_module_names_desc kFlux2{sizeof(heddle_module_names_desc), "flux2",
                                          "by the original names and by those of diffusers",
                                          &list_modules<Flux2Names>, &list_originals<Flux2Names>};
constexpr heddle_module_names_desc kFlux3{sizeof(heddle_module_names_desc), "flux3",
                                          "by the original names and by those of diffusers",
                                          &list_modules<Flux3Names>, &list_originals<Flux3Names>};
constexpr heddle_module_names_desc kChroma{
    sizeof(heddle_module_names_desc), "chroma", "by the original names and by those of diffusers",
    &list_modules<ChromaNames>, &list_originals<ChromaNames>};
constexpr heddle_module_names_desc kQwen{sizeof(heddle_module_names_desc), "qwen-image",
                                         "by the names of diffusers", &list_modules<QwenNames>,
                                         nullptr};

constexpr heddle_module_names_desc kQwen21{sizeof(heddle_module_names_desc), "qwen-image-2.1",
                                           "by the names of diffusers", &list_modules<Qwen21Names>,
                                           nullptr};

constexpr heddle_module_names_desc kZImage{
    sizeof(heddle_module_names_desc), "z-image", "by the original names and by those of diffusers",
    &list_modules<ZImageNames>, &list_originals<ZImageNames>};

constexpr heddle_module_names_desc kLumina2{
    sizeof(heddle_module_names_desc), "lumina2", "by the original names and by those of diffusers",
    &list_modules<ZImageNames>, &list_originals<ZImageNames>};

constexpr heddle_module_names_desc kSd3{sizeof(heddle_module_names_desc), "sd3",
                                        "by the original names and by those of diffusers",
                                        &list_modules<Sd3Names>, &list_originals<Sd3Names>};

constexpr heddle_module_names_desc kKrea2{sizeof(heddle_module_names_desc), "krea2",
                                          "by the original names and by those of diffusers",
                                          &list_modules<Krea2Names>, &list_originals<Krea2Names>};

constexpr heddle_module_names_desc kUnet{sizeof(heddle_module_names_desc), "unet",
                                         "by the original names and by those of diffusers",
                                         &list_modules<UnetNames>, &list_originals<UnetNames>};

constexpr heddle_module_names_desc kSvd{sizeof(heddle_module_names_desc), "svd",
                                        "by the original names and by those of diffusers",
                                        &list_modules<UnetNames>, &list_originals<UnetNames>};

constexpr heddle_module_names_desc kWan{sizeof(heddle_module_names_desc), "wan",
                                        "by the original names and by those of diffusers",
                                        &list_modules<WanNames>, &list_originals<WanNames>};

constexpr heddle_module_names_desc kLtxv{sizeof(heddle_module_names_desc), "ltxv",
                                         "by the original names and by those of diffusers",
                                         &list_modules<LtxvNames>, &list_originals<LtxvNames>};

constexpr heddle_module_names_desc kLtx2{sizeof(heddle_module_names_desc), "ltx2",
                                         "by the original names and by those of diffusers",
                                         &list_modules<LtxvNames>, &list_originals<LtxvNames>};

constexpr heddle_module_names_desc kMinimax{
    sizeof(heddle_module_names_desc), "minimax-h3",
    "by the names of single files and by those of diffusers", &list_modules<MinimaxNames>,
    &list_originals<MinimaxNames>};

constexpr heddle_module_names_desc kHunyuan{
    sizeof(heddle_module_names_desc), "hunyuan-video",
    "by ComfyUI's names, the publisher's and those of diffusers", &list_modules<HunyuanNames>,
    &list_originals<HunyuanNames>};

}  // namespace

const heddle_list* Modules::list() {
  return descs<kFlux, kFlux2, kFlux3, kChroma, kQwen, kZImage, kLumina2, kSd3, kKrea2, kQwen21,
               kUnet, kSvd, kWan, kLtxv, kLtx2, kMinimax, kHunyuan>();
}

}  // namespace heddle::denoisers
