#include "unet_patches.h"

namespace heddle::denoisers {
namespace {

FreeUPatch free_u_of(const Value& told) {
  return {.by_mean = told.get<bool>("by_mean", false),
          .b1 = told.get<double>("b1", 1.0),
          .b2 = told.get<double>("b2", 1.0),
          .s1 = told.get<double>("s1", 1.0),
          .s2 = told.get<double>("s2", 1.0)};
}

TilesPatch tiles_of(const Value& told) {
  return {.tile = told.get<std::int64_t>("tile", 0),
          .swap = told.get<std::int64_t>("swap", 1),
          .depth = told.get<std::int64_t>("depth", 0),
          .deepens = told.get<bool>("deepens", false)};
}

// Outside of what PatchModelAddDownscale takes, a picture would have more cells than any memory.
double shrink_factor(const Value& told) {
  constexpr double kLeast = 0.1, kMost = 9.0;
  const auto factor = told.get<double>("factor", 1.0);
  if (factor >= kLeast && factor <= kMost) return factor;
  throw Error(HEDDLE_INVALID_ARGUMENT, "PatchModelAddDownscale: downscale_factor is " +
                                           std::to_string(factor) + ", expected from 0.1 to 9.");
}

ShrinkPatch shrink_of(const Value& told) {
  return {.stage = told.get<std::int64_t>("stage", 0),
          .factor = shrink_factor(told),
          .is_behind = told.get<bool>("is_behind", true),
          .down = told.get<std::string>("down", "bicubic"),
          .up = told.get<std::string>("up", "bicubic")};
}

HyperPatch hypernetwork_of(const Value& told) {
  return {.prefix = told.get<std::string>("prefix", ""),
          .file = told.get<std::string>("file", ""),
          .function = told.get<std::string>("function", "linear"),
          .strength = told.get<double>("strength", 1.0),
          .has_norms = told.get<bool>("has_norms", false),
          .ends_in_function = told.get<bool>("ends_in_function", false)};
}

}  // namespace

UnetPatches UnetPatches::of(const Value& config) {
  UnetPatches patches;
  if (!config.is(HEDDLE_KIND_RECORD)) return patches;
  const Value list = config.field("unet_patches");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    const auto kind = told.get<std::string>("kind", "");
    if (kind == "free_u") {
      patches.free_u.push_back(free_u_of(told));
      if (patches.shrinks.empty()) ++patches.free_u_before_fit;
    } else if (kind == "tiles") {
      if (patches.tiles.tile > 0)
        throw Error(HEDDLE_UNSUPPORTED,
                    "the model's attention is in tiles already. Leave out one HyperTile.");
      patches.tiles = tiles_of(told);
    } else if (kind == "hypernetwork") {
      patches.hypernetworks.push_back(hypernetwork_of(told));
    } else if (kind == "shrink") {
      patches.shrinks.push_back(shrink_of(told));
    } else if (kind == "merged") {
      // As in ComfyUI the one that comes last would merge what is merged.
      if (patches.merged > 0)
        throw Error(HEDDLE_UNSUPPORTED,
                    "the model's tokens are merged already. Leave out one TomePatchModel.");
      patches.merged = told.get<double>("ratio", 0);
    } else if (kind == "attended") {
      patches.tells_attended = true;
    } else {
      throw Error(HEDDLE_UNSUPPORTED, "there is no patch '" + kind + "' of UNets.");
    }
  }
  if (patches.merged > 0 && (patches.tiles.tile > 0 || !patches.hypernetworks.empty()))
    throw Error(HEDDLE_UNSUPPORTED,
                "TomePatchModel does not go together with HyperTile and hypernetworks. Leave out "
                "one of them.");
  return patches;
}

std::int64_t draw_of(const std::string& path) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return std::int64_t(hash >> 1);
}

}  // namespace heddle::denoisers
