// heddle/send.hpp - pictures that a node sends to whoever follows the run, instead of files.
#pragma once

#include <cstddef>
#include <span>

#include "abi/send.h"
#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_send_service> = HEDDLE_SERVICE_SEND;

// The bytes of a PNG file; in the order of the calls. Throws HEDDLE_INVALID_ARGUMENT for what is no
// PNG. Any thread.
inline void send_picture(Context& ctx, std::span<const std::byte> png) {
  check(service<heddle_send_service>().picture(ctx.raw(), png.data(), png.size()));
}

}  // namespace heddle
