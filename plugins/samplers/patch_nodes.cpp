#include "patch_nodes.h"

#include "guide.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// A record of the settings that says when evaluations may be left out.
template <class Node>
Value with_cache(Context& ctx, const char* key) {
  const Value model = ctx[Node::model];
  const Value record = Record()
                           .set("threshold", value_of(ctx[Node::reuse_threshold]))
                           .set("start_percent", value_of(ctx[Node::start_percent]))
                           .set("end_percent", value_of(ctx[Node::end_percent]))
                           .value();
  return with_settings(model, Record(model_settings(model)).set(key, record).value());
}

}  // namespace

void RescaleCFG::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "rescale_cfg", {{{"multiplier", ctx[multiplier]}}, {}});
}

void RenormCFG::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "renorm_cfg",
                        {{{"cfg_trunc", ctx[cfg_trunc]}, {"renorm_cfg", ctx[renorm_cfg]}}, {}});
}

void PerpNeg::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "perp_neg", {{{"neg_scale", ctx[neg_scale]}}, {}},
                        ctx[empty_conditioning]);
}

// With the shapes of the third conditioning in its place; not without them, for that would tell of
// fewer predictions than there will be.
void PerpNeg::infer(Infer& question) {
  const Value known = question.part(model, "");
  const std::vector<EntryShapes> third = entry_shapes(question, empty_conditioning);
  if (known && !third.empty())
    question.known(out, "", with_patch(known, "perp_neg", {}, told_shapes(third)));
}

void APG::execute(Context& ctx) {
  ctx[out] = with_patch(
      ctx[model], "apg",
      {{{"eta", ctx[eta]}, {"norm_threshold", ctx[norm_threshold]}, {"momentum", ctx[momentum]}},
       {}});
}

void FreSca::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "fresca",
                        {{{"scale_low", ctx[scale_low]},
                          {"scale_high", ctx[scale_high]},
                          {"freq_cutoff", double(ctx[freq_cutoff])}},
                         {}});
}

void ScaleROPE::execute(Context& ctx) {
  const Value from = ctx[model];
  std::vector<Value> positions;
  for (const double number :
       {ctx[scale_t], ctx[scale_y], ctx[scale_x], ctx[shift_t], ctx[shift_y], ctx[shift_x]})
    positions.push_back(value_of(number));
  ctx[out] = with_settings(
      from, Record(model_settings(from)).set("positions", list_of(positions)).value());
}

void CFGNorm::execute(Context& ctx) {
  const bool of_noise = ctx.has(pre_cfg) && ctx[pre_cfg];
  ctx[out] = with_patch(ctx[model], of_noise ? "cfg_norm_noise" : "cfg_norm",
                        {{{"strength", ctx[strength]}}, {}});
}

void CFGZeroStar::execute(Context& ctx) { ctx[out] = with_patch(ctx[model], "cfg_zero_star", {}); }

void TCFG::execute(Context& ctx) { ctx[out] = with_patch(ctx[model], "tcfg", {}); }

void Mahiro::execute(Context& ctx) { ctx[out] = with_patch(ctx[model], "mahiro", {}); }

void EpsilonScaling::execute(Context& ctx) {
  ctx[out] =
      with_patch(ctx[model], "epsilon_scaling", {{{"scaling_factor", ctx[scaling_factor]}}, {}});
}

void TemporalScoreRescaling::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "temporal_score_rescaling",
                        {{{"tsr_k", ctx[tsr_k]}, {"tsr_sigma", ctx[tsr_sigma]}}, {}});
}

void VideoLinearCFGGuidance::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "video_linear_cfg", {{{"min_cfg", ctx[min_cfg]}}, {}});
}

void VideoTriangleCFGGuidance::execute(Context& ctx) {
  ctx[out] = with_patch(ctx[model], "video_triangle_cfg", {{{"min_cfg", ctx[min_cfg]}}, {}});
}

void CFGOverride::execute(Context& ctx) {
  ctx[out] = with_cfg_override(ctx[model], ctx[cfg], ctx[start_percent], ctx[end_percent]);
}

void DifferentialDiffusion::execute(Context& ctx) {
  const Value from = ctx[model];
  const double mixed = ctx.has(strength) ? ctx[strength] : 1.0;
  ctx[out] =
      with_settings(from, Record(model_settings(from))
                              .set("mask_steps", Record().set("strength", value_of(mixed)).value())
                              .value());
}

void EasyCache::execute(Context& ctx) { ctx[out] = with_cache<EasyCache>(ctx, "easy_cache"); }

void LazyCache::execute(Context& ctx) { ctx[out] = with_cache<LazyCache>(ctx, "lazy_cache"); }

}  // namespace heddle::samplers
