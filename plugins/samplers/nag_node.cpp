#include "nag_node.h"

#include "guide.h"

namespace heddle::samplers {

void NAGuidance::execute(Context& ctx) {
  ctx[out] =
      with_nag(ctx[model], {.scale = ctx[nag_scale], .alpha = ctx[nag_alpha], .tau = ctx[nag_tau]});
}

}  // namespace heddle::samplers
