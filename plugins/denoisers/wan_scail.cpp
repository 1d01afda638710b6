#include "wan_scail.h"

#include "patches.h"
#include "wan_scail_blocks.h"

namespace heddle::denoisers {
namespace {

const std::string kPoseFilter = "patch_embedding_pose", kMaskFilter = "patch_embedding_mask";
constexpr std::uint32_t kMayBeShown =
    HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL;

}  // namespace

std::int64_t read_scail_masks(const Checkpoint& file, const WanNames& names) {
  if (names.has(kMaskFilter + ".weight")) return file.size(names.one(kMaskFilter + ".weight"), 1);
  if (names.has(kPoseFilter + ".weight"))
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": this is the first SCAIL, which reads no coloured masks and is "
                    "not supported. Use a file of SCAIL 2.");
  return 0;
}

void add_scail_settings(const WanSizes& s, Blocks& graph) {
  graph.setting("mask_channels", s.animate.masks);
  graph.setting("reference_frame", true);
  graph.setting("reference_stack", true);
  // Beside the latent: which frames are kept.
  graph.setting("concat_kept", true);
  graph.setting("mask_clean", true);
}

WanScail::WanScail(const Checkpoint& file, const WanNames& names, const WanSizes& sizes,
                   Blocks& graph, const Source& x)
    : file_(file),
      names_(names),
      s_(sizes),
      graph_(graph),
      x_(x),
      reference_(graph.input("reference", kMayBeShown)),
      pose_(graph.input("half_pose", kMayBeShown)) {}

std::pair<Source, Source> WanScail::rope() const {
  using B = WanScailRope;
  Block block = graph_.add<B>("embed.rope");
  block.link(B::x, x_).link(B::reference, reference_).link(B::pose, pose_);
  block.link(B::apart, graph_.input("apart", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
  block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
  return {block[B::cos], block[B::sin]};
}

template <class B>
Source WanScail::add_filter(const std::string& path, const std::string& module, const Source& given,
                            std::int64_t channels) const {
  Block block = graph_.add<B>(path);
  if constexpr (requires { B::latent; })
    block.link(B::latent, given);
  else
    block.link(B::masks, given);
  blocks::Slots slots(file_, block, path);
  Part filter{names_.one(module + ".weight")};
  filter.frame = 1;
  slots.fill(B::weight, {filter}, {s_.width, channels, 1, kPatch, kPatch});
  slots.fill(B::bias, names_.one(module + ".bias"), {s_.width});
  return block[B::out];
}

Source WanScail::begin(const Source& hidden) const {
  using B = WanScailJoin;
  const std::int64_t masks = s_.animate.masks;
  const Source shown = add_filter<WanScailIn>("embed.reference", "patch_embedding", reference_,
                                              s_.in_channels),
               posed = add_filter<WanScailIn>("embed.pose", kPoseFilter, pose_, s_.in_channels),
               shown_masks =
                   add_filter<WanScailMasks>("embed.reference_masks", kMaskFilter,
                                             graph_.input("reference_masks", kMayBeShown), masks),
               posed_masks = add_filter<WanScailMasks>(
                   "embed.pose_masks", kMaskFilter, graph_.input("pose_masks", kMayBeShown), masks);
  Block block = graph_.add<B>("embed.join");
  block.link(B::hidden, hidden).link(B::shown, shown).link(B::posed, posed);
  block.link(B::shown_masks, shown_masks).link(B::posed_masks, posed_masks);
  return block[B::out];
}

}  // namespace heddle::denoisers
