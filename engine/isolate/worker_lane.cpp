#include "engine/isolate/worker_lane.h"

#include <unistd.h>

#include "engine/base/text.h"

namespace heddle::engine {

void end_without_engine() { ::_exit(0); }

void WorkerLane::tell(LaneMessage message, const BytesWriter& body) {
  try {
    channel_.send(std::uint32_t(message), body.bytes());
  } catch (const ChannelClosed&) {
    end_without_engine();
  }
}

Message WorkerLane::receive() {
  try {
    return channel_.receive();
  } catch (const ChannelClosed&) {
    return {};
  }
}

std::string WorkerLane::ask(LaneMessage question, const BytesWriter& body) {
  const MutexLock lock(asking_);
  tell(question, body);
  Message answer = receive();
  if (LaneMessage(answer.kind) != LaneMessage::answer) end_without_engine();
  BytesReader from(answer.body);
  read_failure(from);
  return answer.body.substr(answer.body.size() - from.rest().size());
}

}  // namespace heddle::engine
