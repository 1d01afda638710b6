// Functions of the C ABI for nodes that are elsewhere. The ABI's functions of a node are not told
// whose they are, so each proxy takes one of a fixed number of slots, which have functions of their
// own.
#pragma once

#include <cstdint>
#include <memory>

#include "heddle/abi/node.h"

namespace heddle::engine {

// What a node's functions do; see heddle_node_desc. Any thread.
class NodeProxy {
 public:
  virtual ~NodeProxy() = default;
  virtual heddle_status* execute(void* self, heddle_ctx* ctx) = 0;
  virtual heddle_status* create(void** self) = 0;
  virtual void destroy(void* self) = 0;
  virtual heddle_status* need(void* self, heddle_ctx* ctx) = 0;
  virtual heddle_status* fingerprint(void* self, heddle_ctx* ctx, std::uint64_t* hash) = 0;
  virtual heddle_status* infer(heddle_infer* question) = 0;
  virtual heddle_status* validate(heddle_validation* question) = 0;
};

inline constexpr std::size_t kNodeSlots = 1024;

// A slot, as long as it is held. Throws unsupported when all are taken.
class NodeSlot {
 public:
  explicit NodeSlot(NodeProxy& proxy);
  ~NodeSlot();
  NodeSlot(const NodeSlot&) = delete;
  // Sets all functions of `desc` and `validator` to those of the slot.
  void set_functions(heddle_node_desc& desc, heddle_validator& validator) const;

 private:
  const std::size_t number_;
};

}  // namespace heddle::engine
