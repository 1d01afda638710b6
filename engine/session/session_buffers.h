// The memory of a session that is set up: where each storage of its plan lies. Used by one thread
// at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/session/session_view.h"

namespace heddle::engine {

class SessionBuffers {
 public:
  explicit SessionBuffers(const SessionView& view) : view_(view) {}

  // Brings the loop-invariant and precomputed inputs to their places, claims room for the weights
  // and takes the arenas. Where weights are streamed or there are several devices, it loads the
  // weights; else load_weights_of() does, so that the device computes with the first ones while
  // others are on their way. Throws cancelled, what loading throws, and out_of_memory; what it has
  // taken by then goes with this object.
  void set_up();
  // Whether all weights that the op reads have been asked for: then they have addresses.
  bool has_weights_of(const PlannedOp& op) const;
  // Enqueues the loading of those that have not. Throws as set_up() does.
  void load_weights_of(const PlannedOp& op);
  // Until here nothing may leave the session that was computed with them. Waits for the devices the
  // first time. Throws what WeightStore::finish() throws: then what was computed is lost.
  void finish_loading();
  // What devices may still read of these inputs is kept until they are done.
  void leave();
  // Where loading has not been finished, as a run has failed or ended: finds out which weights are
  // there, so that whoever wants them next is not told of this run's failure. May wait for devices.
  void abandon_loading() noexcept;

  std::byte* address(const Operand& operand) const;
  // An output where the step left it; the room for a step's input.
  Tensor output(const SessionPlan::Output& output) const;
  Tensor step_input(const SessionStorage& storage, const heddle_tensor_info& info) const;
  // The input of a branch: its items, where the batch is split.
  Tensor branch_input(const heddle_value& record, const SessionStorage& storage) const;

 private:
  struct Arenas {
    std::shared_ptr<DeviceMemory> persistent, scratch, staging_ring;
  };

  void bring_externals();
  std::vector<Reservation> reserve() const;  // by device slot
  void expect_weights();
  void load(std::size_t storage);
  void allocate_arenas();
  std::uint64_t largest_workspace(std::uint32_t device_slot) const;  // of its kernels; bytes

  const SessionView& view_;
  std::vector<Arenas> arenas_;                                // by device slot
  std::vector<std::shared_ptr<const DeviceWeight>> weights_;  // by storage
  std::vector<Tensor> externals_;  // by storage: such inputs, brought to their place
  // Until all weights are loaded.
  std::vector<Reservation> claims_;  // by device slot
  std::vector<Expectation> expected_;
  bool is_loading_ = false;
};

// Tells the host memory of a device slot of the weights that are going to be read, so that they are
// read from disk while others work. `to` gets what holds them there.
void add_expectation(const SessionView& view, std::vector<Expectation>& to,
                     std::uint32_t device_slot, const std::vector<FilePart>& parts, UseOrder order);

}  // namespace heddle::engine
