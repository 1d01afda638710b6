// An instance of a node type, for one call of one node; destroyed with its holder.
#pragma once

#include <utility>

#include "engine/device/device.h"
#include "engine/graph/node_type.h"

namespace heddle::engine {

class Instance {
 public:
  Instance() = default;
  // Throws what the plugin says.
  Instance(const NodeType& type, const heddle_host* host) : desc_(&type.desc()) {
    if (desc_->create != nullptr) throw_status(desc_->create(host, &self_), "");
  }
  Instance(Instance&& other) noexcept
      : desc_(other.desc_), self_(std::exchange(other.self_, nullptr)) {}
  Instance& operator=(Instance&& other) noexcept {
    std::swap(desc_, other.desc_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~Instance() {
    if (self_ != nullptr && desc_->destroy != nullptr) desc_->destroy(self_);
  }
  void* self() const { return self_; }

 private:
  const heddle_node_desc* desc_ = nullptr;
  void* self_ = nullptr;
};

}  // namespace heddle::engine
