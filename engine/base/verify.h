// Whether the passes that make plans are followed by verifiers, which hold what was made against
// rules of their own: in debug and sanitizer builds, or where CMake is told HEDDLE_VERIFY=ON.
#pragma once

namespace heddle::engine {

#ifdef HEDDLE_VERIFY
inline constexpr bool kVerify = true;
#else
inline constexpr bool kVerify = false;
#endif

}  // namespace heddle::engine
