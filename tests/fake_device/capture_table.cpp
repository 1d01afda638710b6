// The extension by which a fake device keeps launches to run them again.
#include <memory>
#include <utility>

#include "captured_graph.h"
#include "control.h"
#include "device.h"
#include "heddle/device.hpp"
#include "index_state.h"
#include "stream.h"

namespace heddle::fake {

namespace {

Stream& as_stream(heddle_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

template <class Work>
heddle_status* guard(const Device& device, Work&& work) {
  return device::guard(device.host(), device.name(), std::forward<Work>(work));
}

CapturedGraph& as_captured_graph(heddle_captured_graph* captured_graph) {
  return **reinterpret_cast<std::shared_ptr<CapturedGraph>*>(captured_graph);
}

heddle_status* capture_begin(heddle_stream* stream) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] {
    self.device().require_alive();
    self.begin_capture();
  });
}

heddle_status* capture_end(heddle_stream* stream, heddle_captured_graph** out) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] {
    *out = reinterpret_cast<heddle_captured_graph*>(
        new std::shared_ptr<CapturedGraph>(self.take_captured_graph()));
  });
}

heddle_status* replay(heddle_stream* stream, heddle_captured_graph* captured_graph) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] {
    ++index_state(self.device().index()).replays;
    as_captured_graph(captured_graph).replay(self);
  });
}

void captured_graph_free(heddle_captured_graph* captured_graph) {
  delete reinterpret_cast<std::shared_ptr<CapturedGraph>*>(captured_graph);
}

std::uint64_t captured_graph_bytes(heddle_captured_graph* captured_graph) {
  return as_captured_graph(captured_graph).bytes();
}

constinit heddle_device_capture capture_table = {.begin = capture_begin,
                                                 .end = capture_end,
                                                 .replay = replay,
                                                 .free = captured_graph_free,
                                                 .bytes = captured_graph_bytes,
                                                 .keeps_other_streams = 0,
                                                 .reserved = 0};

}  // namespace

const heddle_device_capture& capture_extension() { return capture_table; }
bool keeps_other_streams() { return capture_table.keeps_other_streams != 0; }
void keep_other_streams(bool keeps) { capture_table.keeps_other_streams = keeps ? 1 : 0; }

}  // namespace heddle::fake
