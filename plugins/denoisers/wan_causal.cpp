#include "wan_causal.h"

#include "plugins/blocks/config_inside.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kCausal = "causal_ar";

std::string name_of_kept(int number) { return "kept." + std::to_string(number); }

}  // namespace

WanCausal::WanCausal(const WanSizes& sizes, Blocks& graph, const Source& x) : graph_(graph) {
  using R = WanCausalRope;
  for (int number = 0; number < sizes.layers; ++number)
    graph_.input(name_of_kept(number).c_str(),
                 HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL);
  const std::string first = name_of_kept(0);
  Block block = graph_.add<R>("embed.rope");
  block.link(R::x, x).link(R::kept, {HEDDLE_GRAPH_ITSELF, first.c_str()});
  block.set(R::axis_0, sizes.axes[0]).set(R::axis_1, sizes.axes[1]).set(R::axis_2, sizes.axes[2]);
  rope_ = {block[R::cos], block[R::sin]};
}

void WanCausal::add_to(Block& block, int number) const {
  const std::string name = name_of_kept(number);
  block.link(WanCausalLayer::kept, {HEDDLE_GRAPH_ITSELF, name.c_str()});
  graph_.output(name.c_str(), block[WanCausalLayer::kept_out]);
}

bool is_causal_wan(const Checkpoint& file, const Value& config, const WanSizes& sizes) {
  const Value inside = blocks::config_inside(file).field("transformer");
  if (!config.get<bool>(kCausal, inside.get<bool>(kCausal, false))) return false;
  if (!sizes.takes_patches() || sizes.sees_pictures() || sizes.fun.camera > 0 ||
      sizes.in_channels > sizes.channels || sizes.tells_frames())
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": its config says '" + kCausal +
                    "', and it is no Wan 2.1 of texts alone, of which such models are known.");
  return true;
}

void add_causal_settings(const WanSizes& s, Blocks& graph) {
  graph.setting("keeps_frames", true);
  graph.setting("kept_width", 2 * s.width);
}

}  // namespace heddle::denoisers
