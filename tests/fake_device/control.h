// The table behind fake_control.h.
#pragma once

#include "fake_control.h"

namespace heddle::fake {

extern const heddle_fake_control kControl;

}  // namespace heddle::fake
