// The catalogue's checks of the ops of abi/row_ops.h. Pure; any thread.
#pragma once

#include "engine/device/examined_call.h"

namespace heddle::engine {

void check_match_rows(const Examined& e);
void check_merge_rows(const Examined& e);

}  // namespace heddle::engine
