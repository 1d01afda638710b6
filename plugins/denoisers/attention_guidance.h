// plugins/denoisers/attention_guidance.h - Normalized Attention Guidance: what the picture attends
// to by the positive conditioning, led away from what it attends to by the negative one. Source:
// Chen et al., 2025, arXiv 2505.21179, as ComfyUI's NAGuidance computes it.
//
// A model with an input "nag" (heddle/diffusion/values.h) is then given both conditionings in one
// call, and its blocks compute pairs: item 2 i of their 2 N is picture i by the positive
// conditioning, item 2 i + 1 by the negative one. Items of the call stay independent, so that it
// may be divided as any other. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// Changes the positive rows of z (2 N, tokens, W) where they lie; the negative ones stay. W: of the
// heads of this device; the norms are of the heads of all.
//   guided = scale p + (1 - scale) n,  r = |guided| / |p|  (L1 norms over W, at least 1e-6)
//   p becomes alpha min(r, tau) / r guided + (1 - alpha) p
// nag: (5) f32: scale, 1 - scale, tau, alpha, 1 - alpha.
void guide_attention(Context& ctx, const Tensor& nag, const Tensor& z);

// x (N, ...) as (2 N, ...): each item twice, one after the other.
Tensor twice(Context& ctx, const Tensor& x);

// (N, 2 k, ...), the positive's part before the negative's, as (2 N, k, ...), without copying.
Tensor as_pairs(const Tensor& x);

}  // namespace heddle::denoisers
