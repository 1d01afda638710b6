#include "vision_input.h"

#include "conditioning.h"

namespace heddle::samplers {

Tensor vision_states(Context& ctx, const Value& seen, const Value& settings, std::int64_t items) {
  // Of SigLIP the states behind the last norm.
  const bool is_last = settings.get<std::string>("vision_states", "") == "last_hidden";
  const char* const states_of = is_last ? "last_hidden" : "penultimate";
  const char* const tower = is_last ? "sigclip_vision_patch14_384" : "of Wan clip_vision_h";
  if (is_last && !seen.has(states_of))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'clip_vision_output' has no states behind the tower's last "
                "layer, which the model reads. See the picture with sigclip_vision_patch14_384.");
  if (!seen.has(states_of))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'clip_vision_output' has no states before the tower's last "
                "layer, which the model reads. See the picture with the tower of CLIP that belongs "
                "to the model: of Wan clip_vision_h.");
  const Tensor states = seen.field(states_of).as<Tensor>();
  const auto wanted = settings.get<std::int64_t>("vision_width", 0);
  if (states.rank() != 3 || states.size(2) != wanted)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning's 'clip_vision_output' is " +
                                             std::to_string(states.size(-1)) +
                                             " wide, the model reads " + std::to_string(wanted) +
                                             ". See the picture with the vision tower that "
                                             "belongs to the model: " +
                                             tower + ".");
  return fit_batch(ctx, states, items);
}

}  // namespace heddle::samplers
