#include "engine/serve/run_progress.h"

#include <algorithm>

namespace heddle::engine {

void RunProgress::take(const heddle::Event& event) {
  using Kind = heddle::Event::Kind;
  const std::lock_guard lock(mutex_);
  if (event.kind == Kind::run_waiting) {
    waits_for_ = event.device;
    waits_why_ = event.text;
    waits_bytes_ = event.bytes;
    return;
  }
  const std::string id(event.node);
  switch (event.kind) {
    case Kind::node_started:
      nodes_[id] = {id, std::string(event.class_type), std::string(event.device), 0};
      break;
    case Kind::node_progress:  // a late one begins nothing
      if (const auto node = nodes_.find(id); node != nodes_.end())
        node->second.fraction = std::clamp(event.fraction, 0.0, 1.0);
      break;
    case Kind::preview:
      keep(*event.preview);
      break;
    case Kind::node_done:
      node_seconds_ += event.seconds;
      [[fallthrough]];
    case Kind::node_cached:
      nodes_.erase(id);
      done_.insert(id);
      break;
    default:
      return;
  }
  waits_for_.clear();  // it has begun
}

void RunProgress::keep(const heddle::Preview& picture) {
  preview_.width = picture.width;
  preview_.height = picture.height;
  const std::size_t bytes = std::size_t(picture.width) * picture.height * 3;
  preview_.pixels.assign(picture.pixels, picture.pixels + bytes);
  ++previews_;
}

double RunProgress::node_seconds() const {
  const std::lock_guard lock(mutex_);
  return node_seconds_;
}

std::optional<RgbPicture> RunProgress::preview() const {
  const std::lock_guard lock(mutex_);
  return previews_ == 0 ? std::nullopt : std::optional(preview_);
}

RunSnapshot RunProgress::snapshot() const {
  const std::lock_guard lock(mutex_);
  RunSnapshot told;
  for (const auto& [id, node] : nodes_) told.nodes.push_back(node);
  told.nodes_done = done_.size();
  told.previews = previews_;
  told.waits_for = waits_for_;
  if (waits_for_.empty()) return told;
  told.waits_why = waits_why_;
  told.waits_bytes = waits_bytes_;
  return told;
}

}  // namespace heddle::engine
