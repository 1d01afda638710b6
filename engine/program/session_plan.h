// A model's block graph, planned for a loop: every op of every block for every branch, on the
// device where placement wants it, with kernels chosen, transfers put in and memory laid out, so
// that a step is nothing but enqueueing. Three phases:
//   loop_invariant  what reads only constants runs once;
//   precomputed     what reads only constants and precomputed inputs runs once, for all steps at
//                   the same time;
//   per_step        the rest; the branches of a step run block by block, and each step's rows of
//                   the precomputed values are copied to a fixed place first, so that the same
//                   captured graph serves every step.
// A branch is what is computed by itself: one set of inputs (guidance has two), or some items of
// its batch. A value; making it asks devices nothing but what their answers depend on alone (kernel
// choice, weight layouts).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/program/call_placement.h"
#include "engine/program/infer.h"
#include "engine/program/paging.h"
#include "engine/program/program.h"

namespace heddle::engine {

inline constexpr std::uint32_t kWholeWeight = 0xffffffff;
inline constexpr std::uint64_t kNoLimit = ~std::uint64_t(0);

enum class Phase { loop_invariant = 0, precomputed = 1, per_step = 2 };

Phase input_phase(const GraphInput& input);
// For each node of the graph, how often it runs. Ports that read shapes only do not count.
std::vector<Phase> node_phases(const Graph& graph);

struct SessionSpec {
  using Infos = CallSpec::Infos;
  using Set = CallSpec::Set;
  std::vector<Set> sets;
  Infos schedule;  // (steps, ...)
  std::uint32_t step_count = 1;

  // The devices that take part: those of the placement, in its order, then home when it is none of
  // them.
  struct DeviceSlot {
    std::string name;  // "cpu:0"
    heddle_dtype compute = HEDDLE_F32;
    std::uint32_t memory = 0;         // device slots with an equal number share their memory
    std::uint64_t budget = kNoLimit;  // bytes that the session may use here; less than all weights
                                      // take: some are streamed
    DeviceRates rates;
    std::uint32_t peers =
        0;  // kernels of device slots with an equal number, other than 0, read each other's memory
    bool captures_other_streams = false;  // two lanes of branches can run at the same time
  };
  std::vector<DeviceSlot> device_slots{{"device", HEDDLE_F32, 0}};
  std::uint32_t home =
      0;  // device slot of the caller: step inputs are given there, outputs wanted there
  CallPlacement placement;  // its devices are the first device slots

  // The weight in a slot, or with `has_factors` of a number of weight_slot.h, in a device slot's
  // layout; nothing: not given. `rank`: of the group that divides it, or kWholeWeight. Empty: no
  // node has weights.
  std::function<std::optional<heddle_tensor_info>(std::uint32_t device_slot, NodeIndex node,
                                                  std::uint32_t slot, std::uint32_t rank)>
      weight;
  bool has_factors = false;    // something stands beside some weights
  bool is_scaled_fp8 = false;  // matrices of f8_e4m3 are scaled fp8 (Checkpoint::scale_to_fp8())
  // The bytes of that layout; empty: as its elements take.
  std::function<std::uint64_t(std::uint32_t device_slot, NodeIndex node, std::uint32_t slot,
                              std::uint32_t rank)>
      weight_bytes;
  // What a pinned copy of the weight's file takes; 0: it is put together in host memory, and so
  // never pinned. Empty: as the layout.
  std::function<std::uint64_t(NodeIndex node, std::uint32_t slot, std::uint32_t rank)> file_bytes;

  std::vector<Donor> donors;
  std::uint64_t pinned_bytes =
      0;  // of what all device slots stream in every step may be pinned in host memory
};

struct ChosenKernel {
  const heddle_kernel* kernel = nullptr;
  std::uint64_t workspace_bytes = 0;
};
using ChooseKernel = std::function<ChosenKernel(std::uint32_t device_slot, const heddle_op_call&)>;

// Branches that a device computes at the same time are divided among so many lanes.
inline constexpr std::uint32_t kLanes = 2;
constexpr std::uint32_t lane_of(std::uint32_t branch) { return branch % kLanes; }

struct SessionBranch {
  std::uint32_t set = 0;
  std::int64_t begin = 0, count = 0;  // items of the batch; count 0: all of them, as they come
  std::uint32_t device_slot = 0;      // where its blocks run: the first of its group
};

struct SessionStorage {
  enum class Kind {
    persistent,
    scratch,
    weight,
    page,
    loop_invariant,
    precomputed,
    step_input
  } kind = Kind::scratch;  // page: a streamed weight
  std::uint32_t device_slot = 0;
  std::uint64_t bytes = 0;  // of weights: where a budget was asked about
  std::uint64_t offset =
      0;  // in its arena: step inputs lie in the persistent one, pages in the staging ring
  std::uint32_t branch = 0;           // of inputs
  std::uint32_t node = 0, slot = 0;   // of weights and pages
  std::string input;                  // of inputs: the name
  std::uint32_t rank = kWholeWeight;  // of weights and pages: whose part
};

struct PlannedOp {
  NodeIndex node = 0;
  std::uint32_t branch = 0, device_slot = 0;
  ProgramOp op;  // operands name the plan's storages
  const heddle_kernel* kernel = nullptr;
  std::int32_t workspace = -1;  // storage
};

// One value to one device slot. Its source stays untouched until the end of the step, and so does
// what arrives; in a collective, until the next one is over.
struct PlannedTransfer {
  Source value;
  std::uint32_t branch = 0, from = 0, to = 0;  // device slots
  Operand source, dest;     // equal where memory is shared: then only the order crosses
  std::uint64_t bytes = 0;  // that cross
  // copy: all bytes from the first element to the last. Between peers, kernels of `to` work on what
  // lies on `from`: kernel copies the elements, beside what `to` does otherwise; read leaves them
  // where they are, for the one that wants them: dest is the source.
  enum class Way { copy, kernel, read } way = Way::copy;
  const heddle_kernel* kernel = nullptr;  // of copy/1, where one was chosen
  std::int32_t workspace = -1;            // its storage
};

// At the beginning of a step: row `step` of a precomputed value goes to a fixed place.
struct SliceCopy {
  Operand from;  // row 0; the distance of rows is info.stride[0] elements
  PlannedOp copy;
};

struct SessionAction {
  enum class Kind {
    block,     // here a block begins: index of blocks
    launch,    // index of ops
    transfer,  // index of transfers: may start when what was enqueued so far on `from` is done
    await,     // index of transfers: what `to` does from here on waits for its arrival
    page_in,  // index of pages: may start when what was enqueued so far on its device slot is done,
              // and the page-ins before it are
    await_page  // index of pages: what its device slot does from here on waits for its arrival
  } kind = Kind::launch;
  std::uint32_t index = 0;
  bool for_next_step = false;  // of page_in: left out in the last step
};

// A streamed weight on its way into the staging ring of its device slot, once in every step, or
// once before them.
struct PlannedPage {
  std::int32_t weight = -1;  // storage
  std::uint32_t device_slot = 0;
  std::uint64_t bytes = 0;  // that are copied
  std::int32_t donor = -1;  // of the spec: where it comes from; -1: host memory
};

// What the ranks of a group exchange at one point of a block.
struct PlannedCollective {
  NodeIndex node = 0;
  std::uint32_t branch = 0;
  std::uint32_t op = 0;  // op_id: all_gather, all_reduce, all_to_all
  std::vector<std::uint32_t>
      transfers;  // that carry it; one that serves two collectives is among both
};

struct SessionPlan {
  std::vector<SessionBranch> branches;
  std::vector<SessionStorage> storages;
  std::vector<PlannedOp> ops;
  std::vector<PlannedTransfer> transfers;
  std::vector<PlannedCollective> collectives;
  struct Block {
    NodeIndex node = 0;
    std::uint32_t branch = 0, device_slot = 0;
  };
  std::vector<Block> blocks;
  std::array<std::vector<SessionAction>, 3> phases;
  std::vector<PlannedPage> pages;          // in the order of copying on each device slot
  std::vector<std::uint32_t> first_pages;  // of pages: those that a step expects of the one before;
                                           // brought before the first one
  std::vector<SliceCopy> slices;
  struct Output {
    std::uint32_t branch = 0;
    std::string name;
    Operand value;  // on home
    Phase phase = Phase::per_step;
  };
  std::vector<Output> outputs;
  struct Arenas {
    std::uint64_t persistent_bytes = 0, scratch_bytes = 0, staging_ring_bytes = 0;
    bool has_lanes = false;        // branches of two lanes (lane_of()) share no scratch memory
    std::uint64_t lane_bytes = 0;  // of scratch_bytes: what that takes, and what it can do without
  };
  std::vector<Arenas> arenas;  // by device slot
  // By device slot, where there is a budget.
  struct Needs {
    std::uint64_t inputs = 0, outputs = 0;  // bytes that lie outside of the arenas
    std::uint64_t resident_weights = 0;     // bytes
    std::uint64_t small_weights = 0,
                  min_staging_ring = 0;  // bytes: of the fewest with which it runs at all
    std::uint64_t step_page_bytes = 0,
                  once_page_bytes =
                      0;  // copied from host memory: in every step, before the first one
    std::uint64_t donor_page_bytes = 0;  // of those of a step: copied from donors instead
    std::uint64_t unpinned_page_bytes =
        0;  // or from memory that is not pinned, though the device slot's could be
    double step_seconds = 0;  // of the device slot's own work, its page-ins considered
  };
  std::vector<Needs> needs;
  std::uint64_t need_bytes(std::uint32_t device_slot) const {
    const Needs& n = needs[device_slot];
    const Arenas& a = arenas[device_slot];
    return n.inputs + n.outputs + n.resident_weights + a.persistent_bytes + a.scratch_bytes +
           a.staging_ring_bytes;
  }
  // With less than this it does not run.
  std::uint64_t min_bytes(std::uint32_t device_slot) const {
    const Needs& n = needs[device_slot];
    const Arenas& a = arenas[device_slot];
    return n.inputs + n.outputs + n.small_weights + n.min_staging_ring + a.persistent_bytes +
           a.scratch_bytes - a.lane_bytes;
  }
  std::vector<OpCost> node_cost;  // by node: of one step (or of the whole phase), all branches
};

// Throws with the block's name for what blocks refuse, and for inputs that are missing or unknown;
// out_of_memory, with the least that would do and what it consists of, for a budget that not even
// streaming can keep.
SessionPlan plan_session(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose);

// The branches that a placement makes of the sets. REQUIRES: `items`, the size of the batch, when
// the batch is split.
std::vector<SessionBranch> session_branches(const CallPlacement& placement, std::uint32_t sets,
                                            std::int64_t items);

}  // namespace heddle::engine
