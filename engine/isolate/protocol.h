// What the engine and a worker say to each other. A worker has one control channel, by which the
// engine alone speaks once the worker has described its plugin, and lanes: on each one call at a
// time is under way. Within a call the worker asks, and the engine answers or only listens.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/isolate/bytes.h"

struct heddle_status;

namespace heddle::engine {

// On the control channel.
enum class ControlMessage : std::uint32_t {
  described,   // worker: id, version, descriptions of nodes; or a failure
  lane,        // engine: with the socket of a new lane
  flags,       // engine: with the memory of LaneFlags, behind its lane
  map,         // engine: id, bytes, whether writable; with the memory
  forget,      // engine: id of memory that is no more
  drop,        // engine: DropKind, id, count
  map_device,  // engine: id, heddle_shared_memory; with its descriptor, where it has one
};
enum class DropKind : std::uint8_t { object, instance };

// On a lane. The engine begins with `call`; `result` ends it.
enum class LaneMessage : std::uint32_t {
  call,      // engine
  answer,    // engine, to what asks: a failure, or what was asked for
  result,    // worker
  deferred,  // worker: execute() has returned, the result comes later
  // Nobody answers these.
  progress,
  warn,
  wrote,
  preview,
  picture,
  heard_cancelled,  // the node has asked, and knows that its run is cancelled
  do_not_cache,
  log,
  add_cost,
  host_scratch,
  // These are answered.
  make_host,
  make_device,
  find_file,
  folder_places,
  output_folder,
  identify_file,
  saved_state,
  at_boundary,
  save_state,
  look_up,
  run_op,
  infer_part,
  infer_in,
  infer_out,
  infer_known,
  infer_shares,
  validation_value,
  validation_received,
  validation_has_file,
};

enum class CallKind : std::uint8_t { execute, need, fingerprint, infer, validate };

// Of what crosses by its handle: who has the thing itself.
enum class HandleOwner : std::uint8_t { engine, worker };

// Where the elements of a tensor are: in the message, in shared memory, with the engine, as the
// worker does not look at them, or in shared memory of the device that the call is placed on.
enum class TensorPlace : std::uint8_t { message, shared, engine, device };
// Less than this costs less in the message than in memory of its own.
inline constexpr std::uint64_t kLeastShared = 16 << 10;

// Memory of both ends of a lane: what is asked too often for a message.
struct LaneFlags {
  std::atomic<std::uint32_t> is_cancelled{0};
};

// A failure with its code, or none.
void write_status(BytesWriter& to, const heddle_status* status);
heddle_status* read_status(BytesReader& from);  // nullptr: none
// Throws the failure.
void read_failure(BytesReader& from);

}  // namespace heddle::engine
