// heddle/resume.hpp - calls that work in steps, are stopped between two of them, and go on later.
#pragma once

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// What an earlier call of the node has saved, its tensors row-major in host memory; empty: the call
// begins.
inline Value saved_state(Context& ctx) {
  return Value::share(service<heddle_resume_service>().state(ctx.raw()));
}

// Between two steps. `state` makes the state; it is called when it is wanted. Waits while the run
// is paused; throws where the call does not go on.
template <class State>
void at_boundary(Context& ctx, State&& state) {
  if (service<heddle_resume_service>().at_boundary(ctx.raw()) == 0) return;
  check(service<heddle_resume_service>().save(ctx.raw(), Value(state()).release()));
}

}  // namespace heddle
