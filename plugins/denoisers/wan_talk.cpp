#include "wan_talk.h"

#include "plugins/blocks/slots.h"
#include "wan_talk_blocks.h"

namespace heddle::denoisers {
namespace {

const std::string kTalkHearing = "audio_proj.", kTalkLook = "blocks.0.audio_cross_attn.";

// Tokens of the sound. prefix: of the patch's tensors.
Source add_talk_in(const Checkpoint& file, const std::string& prefix, const std::string& path,
                   const Source& heard, Blocks& graph) {
  using B = WanTalkIn;
  const std::string at = prefix + kTalkHearing;
  const std::int64_t numbers = file.size(at + "proj1.weight", 1) / kFirstMoments,
                     middle = file.size(at + "proj1.weight", 0),
                     width = file.size(at + "norm.weight", 0);
  if (numbers < 1 || file.size(at + "proj1.weight", 1) != numbers * kFirstMoments)
    throw Error(
        HEDDLE_INVALID_ARGUMENT,
        file.path() + ": '" + at + "proj1.weight' reads " +
            std::to_string(file.size(at + "proj1.weight", 1)) +
            " numbers, which are no five moments. The file is damaged or of another model.");
  Block block = graph.add<B>(path);
  block.link(B::heard, heard);
  blocks::Slots slots(file, block, path);
  const auto linear = [&](const Weight& matrix, const Weight& bias, const char* module,
                          std::int64_t out, std::int64_t in) {
    slots.fill(matrix, at + module + ".weight", {out, in});
    slots.fill(bias, at + module + ".bias", {out});
  };
  linear(B::first, B::first_bias, "proj1", middle, kFirstMoments * numbers);
  linear(B::later, B::later_bias, "proj1_vf", middle, kLaterMoments * numbers);
  linear(B::middle, B::middle_bias, "proj2", middle, middle);
  const std::int64_t all = file.size(at + "proj3.weight", 0);
  if (all % width != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": '" + at + "proj3.weight' makes " +
                                             std::to_string(all) + " numbers, no tokens of " +
                                             std::to_string(width) +
                                             ". The file is damaged or of another model.");
  linear(B::last, B::last_bias, "proj3", all, middle);
  slots.fill(B::norm, at + "norm.weight", {width});
  slots.fill(B::norm_bias, at + "norm.bias", {width});
  return block[B::out];
}

}  // namespace

WanTalk::WanTalk(const Checkpoint& file, const ModelPatch& patch, const WanSizes& sizes,
                 Blocks& graph, const Source& x)
    : file_(file),
      patch_(patch),
      s_(sizes),
      x_(x),
      context_(file.size(patch.prefix + kTalkHearing + "norm.weight", 0)) {
  constexpr std::uint32_t kMaybe = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
  heard_ = add_talk_in(file, patch.prefix, patch.path + ".hint",
                       graph.input(patch.input.c_str(), kMaybe), graph);
  using R = WanTalkRegions;
  const std::string regions = patch.path + ".regions";
  Block block = graph.add<R>(regions);
  block.link(R::regions, graph.input(regions.c_str(), kMaybe));
  block.set(R::heads, s_.heads).set(R::width, s_.width);
  marks_ = block[R::marks], shares_ = block[R::shares];
}

void WanTalk::add_to(Block& block, const std::string& path, int layer) const {
  using B = WanTalkLayer;
  block.link(B::heard, heard_).link(B::marks, marks_).link(B::shares, shares_).link(B::x, x_);
  block.set(B::strength, patch_.strength);
  const std::string at = patch_.prefix + "blocks." + std::to_string(layer) + ".",
                    look = at + "audio_cross_attn.";
  const std::int64_t d = s_.width;
  blocks::Slots slots(file_, block, path);
  slots.fill(B::talk_norm, at + "norm_x.weight", {d});
  slots.fill(B::talk_norm_bias, at + "norm_x.bias", {d});
  slots.fill(B::talk_q, look + "q_linear.weight", {d, d});
  slots.fill(B::talk_q_bias, look + "q_linear.bias", {d});
  slots.fill(B::talk_kv, look + "kv_linear.weight", {2 * d, context_});
  slots.fill(B::talk_kv_bias, look + "kv_linear.bias", {2 * d});
  slots.fill(B::talk_proj, look + "proj.weight", {d, d});
  slots.fill(B::talk_proj_bias, look + "proj.bias", {d});
}

void check_wan_patches(const WanSizes& sizes, const std::vector<ModelPatch>& patches) {
  if (!sizes.takes_patches())
    throw Error(HEDDLE_UNSUPPORTED,
                "the model patch " + patches.front().file +
                    ": this model of Wan has tokens besides those of its video (VACE, Animate, S2V "
                    "or Fun Control), which the patch does not know. Load one of Wan 2.1 for "
                    "pictures or texts.");
  if (patches.size() > 1)
    throw Error(HEDDLE_UNSUPPORTED, "the model patch " + patches[1].file +
                                        ": the model has one already, " + patches[0].file +
                                        ", and hears one sound. Leave out one of the two.");
}

int InfiniteTalk::match(const Checkpoint& file, const Value&) {
  return file.has(kTalkHearing + "proj1.weight") && file.has(kTalkLook + "kv_linear.weight") ? 100
                                                                                             : 0;
}

void InfiniteTalk::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const Source hint = graph.input("hint", HEDDLE_INPUT_LOOP_INVARIANT);
  graph.output("tokens", add_talk_in(file, "", "hint", hint, graph));
  graph.setting("patches", "wan");
  graph.setting("patch_width", file.size(kTalkLook + "proj.weight", 0));
  graph.setting("moment_numbers", file.size(kTalkHearing + "proj1.weight", 1) / kFirstMoments);
}

}  // namespace heddle::denoisers
