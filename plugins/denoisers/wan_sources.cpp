#include "wan_sources.h"

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "wan_sources_blocks.h"

namespace heddle::denoisers {

std::pair<Source, Source> WanSources::rope() const {
  using B = WanSourcesRope;
  Block block = graph_.add<B>("embed.rope");
  block.link(WanRope::x, x_)
      .link(B::places,
            graph_.input("source_places", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
  block.set(WanRope::axis_0, s_.axes[0])
      .set(WanRope::axis_1, s_.axes[1])
      .set(WanRope::axis_2, s_.axes[2]);
  return {block[WanRope::cos], block[WanRope::sin]};
}

Source WanSources::begin(const Source& hidden) const {
  using B = WanSourcesIn;
  Block block = graph_.add<B>("embed.sources");
  block.link(B::sources, graph_.input("sources", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH |
                                                     HEDDLE_INPUT_OPTIONAL));
  blocks::Slots slots(file_, block, "embed.sources");
  Part filter{names_.one("patch_embedding.weight")};
  filter.frame = 1;
  slots.fill(B::weight, {filter}, {s_.width, s_.in_channels, 1, kPatch, kPatch});
  slots.fill(B::bias, names_.one("patch_embedding.bias"), {s_.width});
  Block join = graph_.add<WanSourcesJoin>("embed.join");
  join.link(WanSourcesJoin::hidden, hidden).link(WanSourcesJoin::shown, block[B::out]);
  return join[WanSourcesJoin::out];
}

}  // namespace heddle::denoisers
