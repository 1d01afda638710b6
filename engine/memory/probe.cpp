#include "engine/memory/probe.h"

#include <array>
#include <memory>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

void probe(const Device& device) {
  std::array<std::uint32_t, 64> sent{}, got{};
  std::uint32_t word = 1;
  for (std::uint32_t& each : sent) each = word = word * 1664525u + 1013904223u;
  const auto give_back = [&](void* memory) { device.free(memory); };
  const std::unique_ptr<void, decltype(give_back)> memory(device.allocate(sizeof sent), give_back);
  Stream stream(device);
  device.copy(stream, &device, memory.get(), nullptr, sent.data(), sizeof sent);
  device.copy(stream, nullptr, got.data(), &device, memory.get(), sizeof got);
  stream.synchronize();
  if (got != sent)
    throw Error(Code::io, cat(device.name(), ": a probe of ", sizeof sent,
                              " bytes came back with other contents"));
}

}  // namespace heddle::engine
