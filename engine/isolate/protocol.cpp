#include "engine/isolate/protocol.h"

#include "engine/device/device.h"
#include "engine/device/status.h"

namespace heddle::engine {

void write_status(BytesWriter& to, const heddle_status* status) {
  to.flag(status != nullptr);
  if (status == nullptr) return;
  to.number(std::int32_t(status->error.code()));
  to.text(status->error.what());
  to.number(std::uint32_t(status->error.trail().size()));
  for (const std::string& frame : status->error.trail()) to.text(frame);
}

heddle_status* read_status(BytesReader& from) {
  if (!from.flag()) return nullptr;
  const auto code = from.number<std::int32_t>();
  const bool is_code = code >= HEDDLE_INVALID_ARGUMENT && code <= HEDDLE_INTERNAL;
  Error error(is_code ? Code(code) : Code::internal, std::string(from.text()));
  std::vector<std::string> trail;
  for (std::uint32_t left = from.count(); left > 0; --left) trail.emplace_back(from.text());
  while (!trail.empty()) {
    error.at(trail.back());
    trail.pop_back();
  }
  return make_status(error);
}

void read_failure(BytesReader& from) { throw_status(read_status(from), ""); }

}  // namespace heddle::engine
