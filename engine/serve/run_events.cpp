#include "engine/serve/run_events.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

// Null where a plugin has written no JSON.
Json read_shown(std::string_view text) {
  try {
    return parse_json(text, "shown");
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void RunEvents::publish(std::string_view type, Json data) {
  Json whole = Json::object();
  whole.set("job", job_);
  for (const Json::Member& member : data.members()) whole.set(member.key, member.value);
  events_.publish(type, {job_, user_}, whole);
}

void RunEvents::take(const heddle::Event& event) {
  using Kind = heddle::Event::Kind;
  Json data = Json::object();
  data.set("node", text_or_null(std::string(event.node)));
  switch (event.kind) {
    case Kind::node_started:
      data.set("class_type", event.class_type);
      return publish("node_started", data.set("device", text_or_null(std::string(event.device))));
    case Kind::node_progress:
      return publish("node_progress", data.set("fraction", std::clamp(event.fraction, 0.0, 1.0)));
    case Kind::node_done:
      return publish("node_done", data.set("seconds", event.seconds));
    case Kind::node_cached:
      return publish("node_cached", std::move(data));
    case Kind::node_shows:
      return publish("node_shows", data.set("shown", read_shown(event.text)));
    case Kind::node_blocked:
      return publish("node_blocked", data.set("message", event.text));
    case Kind::warning:
      return publish("warning", data.set("message", event.text));
    case Kind::preview:
      data.set("step", event.preview->step).set("steps", event.preview->step_count);
      return publish("preview", std::move(data));
    case Kind::run_waiting: {
      Json waiting = Json::object();
      waiting.set("device", event.device).set("bytes", event.bytes);
      return publish("run_waiting", waiting.set("message", event.text));
    }
    default:
      return;  // of files of this machine
  }
}

}  // namespace heddle::engine
