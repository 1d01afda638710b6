#include "plugins/vae/vae_modules.h"

#include <functional>

#include "plugins/vae/autoencoder_kl_names.h"

namespace heddle::vae {
namespace {

// A module by its original name and by that of this file. Of attention's matrices the original
// files have 1x1 filters.
struct NamedModule {
  std::string original, here;
  bool is_filter = false;
  bool is_whole = false;  // the name of a tensor, without ".weight" and ".bias"
};

std::vector<NamedModule> modules_of(const Checkpoint& file, const VaeNames& here) {
  const VaeNames original = here.original();
  std::vector<NamedModule> all{{original.conv_in(), here.conv_in()},
                               {original.conv_out(), here.conv_out()},
                               {original.norm_out(), here.norm_out()},
                               {original.quant_conv(), here.quant_conv()}};
  const auto add_resnet = [&](const std::string& to, const std::string& from) {
    for (const char* part : {".norm1", ".conv1", ".norm2", ".conv2"})
      all.push_back({to + part, from + part});
    all.push_back({original.shortcut(to), here.shortcut(from)});
    if (!here.mixes_frames()) return;
    const VaeNames::Frames frames_to = original.frames(to), frames_from = here.frames(from);
    for (const auto part : {&VaeNames::Frames::norm1, &VaeNames::Frames::conv1,
                            &VaeNames::Frames::norm2, &VaeNames::Frames::conv2})
      all.push_back({frames_to.*part, frames_from.*part});
    all.push_back({frames_to.mix, frames_from.mix, false, true});
  };
  if (here.mixes_frames()) all.push_back({original.frames_out(), here.frames_out()});
  for (int level = 0; level < here.levels(); ++level) {
    for (int i = 0; i < here.depth(file, level); ++i)
      add_resnet(original.resnet(level, i), here.resnet(level, i));
    all.push_back({original.resample(level), here.resample(level)});
  }
  for (const int i : {0, 1}) add_resnet(original.mid_resnet(i), here.mid_resnet(i));
  const VaeNames::Attention to = original.mid_attention(file), from = here.mid_attention(file);
  all.push_back({to.norm, from.norm});
  for (const auto part : {&VaeNames::Attention::q, &VaeNames::Attention::k, &VaeNames::Attention::v,
                          &VaeNames::Attention::proj})
    all.push_back({to.*part, from.*part, true});
  return all;
}

// `visit` gets the original module, "weight" or "bias", this file's tensor, and whether it is a
// filter. Of a whole tensor it gets its name and "".
using VisitVae = std::function<void(const std::string& module, const char* kind,
                                    const std::string& tensor, bool is_filter)>;
void each_vae_module(const heddle_checkpoint* raw, const VisitVae& visit) {
  const Checkpoint file = Checkpoint::share(raw);
  for (const VaeSide side : {VaeSide::decoder, VaeSide::encoder})
    if (const std::optional<VaeNames> names = VaeNames::find(file, side))
      for (const NamedModule& module : modules_of(file, *names)) {
        if (module.is_whole && file.has(module.here))
          visit(module.original, "", module.here, false);
        for (const char* kind : {"weight", "bias"})
          if (const std::string tensor = module.here + "." + kind; file.has(tensor))
            visit(module.original, kind, tensor,
                  module.is_filter && kind == std::string_view("weight"));
      }
}

heddle_status* list_vae_modules(const heddle_host*, const heddle_checkpoint* raw,
                                heddle_module_found found, void* to) {
  return guard([&] {
    each_vae_module(
        raw, [&](const std::string& module, const char* kind, const std::string& tensor, bool) {
          if (kind == std::string_view()) return;
          const std::vector<Part> whole{{tensor}};
          const RawParts parts(whole);
          found(to, module.c_str(), kind, parts.size(), parts.data());
        });
  });
}

heddle_status* list_vae_originals(const heddle_host*, const heddle_checkpoint* raw,
                                  heddle_original_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    each_vae_module(raw, [&](const std::string& module, const char* kind, const std::string& tensor,
                             bool is_filter) {
      const std::vector<Part> whole{{tensor}};
      const RawParts parts(whole);
      const heddle_tensor_info& info = file.info(tensor);
      const std::int64_t filter[] = {info.shape[0], info.rank > 1 ? info.shape[1] : 1, 1, 1};
      const bool is_matrix = is_filter && info.rank == 2;
      const std::string name = kind == std::string_view() ? module : module + "." + kind;
      found(to, name.c_str(), parts.size(), parts.data(), is_matrix ? 4 : 0,
            is_matrix ? filter : nullptr);
    });
    const std::optional<VaeNames> names = VaeNames::find(file, VaeSide::decoder);
    for (const char* kind : {"mean", "var"})
      if (names && file.has(names->statistic(kind))) {
        const std::vector<Part> whole{{names->statistic(kind)}};
        const RawParts parts(whole);
        found(to, names->original().statistic(kind).c_str(), parts.size(), parts.data(), 0,
              nullptr);
      }
  });
}

constexpr heddle_module_names_desc kAutoencoderKl{sizeof(heddle_module_names_desc),
                                                  "autoencoder_kl", "by the original names",
                                                  &list_vae_modules, &list_vae_originals};

}  // namespace

const heddle_list* VaeModules::list() { return descs<kAutoencoderKl>(); }

}  // namespace heddle::vae
