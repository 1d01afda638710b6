// PrimitiveCache: what a device keeps of prepared library calls. Owned by the device; thread-safe.
#pragma once

namespace heddle::cpu {

class PrimitiveCache {};

}  // namespace heddle::cpu
