// plugins/encoders/log_mel.h - what Whisper reads of a sound: how loud its bands are. Source:
// transformers' WhisperFeatureExtractor (frames of 400 points, every 160, centred, ends mirrored,
// Hann's window, powers, mel bands as of mel_bands.h, base-10 logarithms, of which none lies more
// than 8 below the loudest, moved and scaled). Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include <heddle/host_memory.hpp>

namespace heddle::encoders {

inline constexpr std::int64_t kLogMelHop = 160;

// Of a sound at 16 kHz, cut or completed by zeros to frames * kLogMelHop points: (frames, bands).
// `check`: asked between frames, throws to end the work. REQUIRES: frames at least 2, bands at
// least 1.
void log_mel(std::span<const float> sound, std::int64_t frames, std::int64_t bands,
             std::span<float> out, HostMemory& memory, void (*check)(void*), void* state);

}  // namespace heddle::encoders
