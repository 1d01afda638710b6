// plugins/blocks/no_room.h - tries what may find no room. Any thread.
#pragma once

#include <heddle/node.hpp>

#include <string>

namespace heddle::blocks {

// Why there was no room; empty: there was, and `made` has the result. Other faults are thrown on.
template <class Make>
std::string no_room(Make&& make, Tensor& made) {
  try {
    made = make();
    return {};
  } catch (const Failed& failed) {
    const heddle_host& host = *services.host;
    if (host.status_code(failed.status) != HEDDLE_OUT_OF_MEMORY) throw;
    const std::string why = host.status_message(failed.status);
    host.status_free(failed.status);
    return why;
  } catch (const Error& error) {
    if (error.code != HEDDLE_OUT_OF_MEMORY) throw;
    return error.what();
  }
}

}  // namespace heddle::blocks
