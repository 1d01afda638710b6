// Where one thing after another fails or is cancelled: every one of them, under ThreadSanitizer
// every third, where a run takes many times as long. Who goes through them several times begins
// with another one each time, and so meets more of them.
#pragma once

namespace heddle::test {

#if defined(HEDDLE_THREAD_SANITIZER)
inline constexpr int kStride = 3;
#else
inline constexpr int kStride = 1;
#endif

// 1 to kStride, for the time of this number.
constexpr int first_of_stride(int time) { return 1 + time % kStride; }

}  // namespace heddle::test
