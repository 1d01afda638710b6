// heddle/fidelity.hpp - what dividing a model over devices may change. Part of heddle/engine.hpp.
#pragma once

namespace heddle {

// How models may be divided over devices where nobody says how. exact: only in ways that give the
// same bytes as one device of the kind. rounding: also in such that add up in another order
// (sequence, tensor), and over devices of several kinds, where they are faster; results are then
// those of the plan and its devices.
enum class Fidelity { exact, rounding };

}  // namespace heddle
