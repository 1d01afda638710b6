// The table behind fake_control.h.
#pragma once

#include "heddle/abi/device_sharing.h"
#include "heddle/testing/fake_control.h"

namespace heddle::fake {

extern const heddle_fake_control kControl;

// How launches are kept (capture_table.cpp).
const heddle_device_capture& capture_extension();

// How memory is shared with other processes (sharing_table.cpp).
const heddle_device_sharing& sharing_extension();

// What heddle_device_capture says of other streams; off, unless a test says otherwise. REQUIRES of
// the second: no device works meanwhile.
bool keeps_other_streams();
void keep_other_streams(bool keeps);

}  // namespace heddle::fake
