#include "unet_vector.h"

#include "unet_blocks.h"
#include "unet_filler.h"

namespace heddle::denoisers {

Source add_vector(const UnetVectorPlace& place, const Source& timestep,
                  const std::optional<Source>& more, Blocks& graph) {
  using B = UnetVector;
  // Frames are no batch.
  const std::uint32_t constant =
      HEDDLE_INPUT_LOOP_INVARIANT |
      (place.names.mixes_frames() ? 0u : std::uint32_t(HEDDLE_INPUT_BATCH));
  const UnetSizes& d = place.sizes;
  Block block = graph.add<B>("embed.vector");
  block.link(B::timestep, timestep);
  if (more) block.link(B::more, *more);
  UnetFiller fill{place.names, nullptr, blocks::Slots(place.file, block, "embed.vector")};
  fill.both(B::time_in, B::time_in_bias, "time_embed.0", {d.vector, d.waves});
  fill.both(B::time_out, B::time_out_bias, "time_embed.2", {d.vector, d.vector});
  if (d.numbers > 0)
    block.link(B::sizes, graph.input("sizes", constant)).set(B::size_waves, kUnetSizeWaves);
  if (d.label > 0) {
    if (d.label > d.numbers * kUnetSizeWaves) block.link(B::y, graph.input("y", constant));
    fill.both(B::label_in, B::label_in_bias, "label_emb.0.0", {d.vector, d.label});
    fill.both(B::label_out, B::label_out_bias, "label_emb.0.2", {d.vector, d.vector});
  }
  if (d.levels > 0) {
    block.link(B::level, graph.input("level", constant));
    fill.matrix(B::levels, {"label_emb"}, {d.levels, d.vector});
  }
  return block[B::out];
}

}  // namespace heddle::denoisers
