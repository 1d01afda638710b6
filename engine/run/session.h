// A model opened for a loop on a device. The plan is made at the first step, when the shapes are known; from then on a
// step enqueues a fixed list of kernel launches on fixed addresses. Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/model.h"
#include "engine/memory/weights.h"
#include "engine/plan/session_plan.h"
#include "engine/tensor/call.h"

namespace heddle::core {

struct SessionPlace {
  DeviceState* state = nullptr;
  WeightStore* weights = nullptr;
};

class Session final : public SessionHandle {
 public:
  // `cancelled` is asked between blocks; the session then throws cancelled. `observe` is told of each block as it is enqueued.
  Session(SessionPlace place, SessionRequest request, std::function<bool()> cancelled);
  ~Session() override;

  std::vector<Value> step(std::uint32_t index, std::span<const heddle_value* const> sets) override;

  const SessionPlan* plan() const { return plan_ ? &*plan_ : nullptr; }

 private:
  // A launch with its addresses filled in.
  struct Launch {
    const heddle_kernel* kernel = nullptr;
    NodeIndex node = 0;
    std::vector<heddle_view> views;
    std::vector<const heddle_view*> pointers;
    heddle_op_call call{};
    void* workspace = nullptr;
  };

  void prepare(std::span<const heddle_value* const> sets);
  std::byte* address(const Operand& operand) const;
  Launch make_launch(const PlannedOp& op) const;
  void run(const std::vector<Launch>& launches);
  void launch(const Launch& launch);
  const heddle_value* input_value(SessionStorage::Kind kind, std::uint32_t set, const std::string& name,
                                  std::span<const heddle_value* const> sets) const;

  SessionPlace place_;
  SessionRequest request_;
  std::function<bool()> cancelled_;
  std::shared_ptr<const Model> model_;
  std::optional<SessionPlan> plan_;
  std::shared_ptr<DeviceMemory> persistent_, scratch_;
  std::vector<std::shared_ptr<const DeviceWeight>> weights_;  // by storage
  std::vector<Tensor> externals_;                             // by storage: constants and schedules, brought here
  std::vector<Launch> step_launches_;
  struct Slice {
    Launch launch;
    std::byte* base = nullptr;
    std::int64_t row_bytes = 0;
  };
  std::vector<Slice> slices_;
  std::vector<std::unique_ptr<Event>> step_done_;  // a ring of two
};

// The weights of a node's slots, looked up in the model's checkpoint; empty where a slot is not given.
std::vector<std::optional<WeightSource>> weight_sources(const Model& model, const Node& node);

}  // namespace heddle::core
