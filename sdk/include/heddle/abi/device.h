/* heddle/abi/device.h - a device plugin is a plugin like any other.
 *
 * The engine owns policy: pools, budgets, residency, transfer routes, which stream runs what. The
 * device owns mechanism: raw memory, streams, events, copies, kernels. Nothing here blocks but
 * wait(). Every enqueue takes the stream it belongs to; there is no "current device" and no
 * "current stream". */
#ifndef HEDDLE_ABI_DEVICE_H
#define HEDDLE_ABI_DEVICE_H

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_DEVICES "heddle.devices/0" /* heddle_list of heddle_device_desc */
#define HEDDLE_KERNELS \
  "heddle.kernels/0" /* heddle_list of heddle_kernel: for any device kind, from any plugin */

typedef struct heddle_device heddle_device;
typedef struct heddle_stream heddle_stream;
typedef struct heddle_event heddle_event;
typedef struct heddle_captured_graph heddle_captured_graph;

typedef struct heddle_device_info {
  uint32_t size;
  char name[128];        /* "NVIDIA H200": the model, by which measured costs are kept */
  char location[64];     /* UUID or PCI bus id, or "host"                              */
  uint64_t memory_total; /* bytes */
  uint64_t memory_free;  /* bytes */
  uint32_t alignment;    /* of allocations, in bytes                                   */
  int32_t host_visible;  /* the CPU can read device addresses                          */
  heddle_dtype compute;  /* the element type chosen for activations                    */
  uint32_t threads;      /* for information; 0 where it has no meaning                 */
  /* For estimates, until measured costs are there; 0: unknown. */
  double flops_per_second; /* of a large GEMM in the compute type                      */
  double bytes_per_second; /* of the device's own memory, read and written together    */
} heddle_device_info;

/* The way between a device and a peer, or host memory, for estimates and routes. */
typedef struct heddle_link {
  uint32_t size;
  int32_t kind;            /* HEDDLE_LINK_...                      */
  double bytes_per_second; /* one direction; 0: unknown            */
  double latency_seconds;  /* of one copy, however small           */
} heddle_link;
enum {
  HEDDLE_LINK_NONE = 0,   /* no direct way: through host memory     */
  HEDDLE_LINK_SAME = 1,   /* one address space: nothing is copied   */
  HEDDLE_LINK_DIRECT = 2, /* copy() between the two                */
  HEDDLE_LINK_PEER =
      3 /* the same, and kernels of each read the other's memory, about as fast as copies */
};

/* A tensor as kernels see it: no handle, just memory. data == NULL while a kernel is being chosen.
 */
typedef struct heddle_view {
  heddle_tensor_info info; /* strides filled in */
  void* data;
  double scale; /* of a part of a weight: what its elements are multiplied by; 0 means 1. Kernels
                   get 0 */
} heddle_view;

/* An operation as the engine asks for it. attrs is the op's own struct from heddle/abi/ops.h.
 * Absent optional operands are NULL. Valid during the call only: an asynchronous kernel copies what
 * it needs. */
typedef struct heddle_op_call {
  uint32_t size;
  const char* op; /* "linear/1" */
  uint32_t in_count, out_count;
  const heddle_view* const* in;
  const heddle_view* const* out;
  const void* attrs;
  uint32_t attrs_size;
} heddle_op_call;

typedef struct heddle_kernel {
  uint32_t size;
  const char* op;          /* "linear/1" */
  const char* device_kind; /* "cuda"     */
  const char* name;        /* "reference", "onednn": shown in plans and conformance tables */
  /* 0: cannot; the highest answer wins. Depends on shapes, types, strides, layouts and attributes
   * only. [any] */
  int32_t (*fits)(heddle_device*, const heddle_op_call*);
  /* Enqueues on the stream. The memory stays valid until the stream is past it. [call] */
  heddle_status* (*launch)(heddle_device*, heddle_stream*, const heddle_op_call*, void* workspace);
  size_t (*workspace)(heddle_device*,
                      const heddle_op_call*); /* optional: bytes of scratch; NULL: none. [any] */
} heddle_kernel;

/* Whether work is still wanted: the engine's. It turns from 0 to 1 at any moment, once and for
 * good. Counted: who looks at it after the call that gave it to him retains it before, and releases
 * it after. [any] */
typedef struct heddle_cancel {
  uint32_t size;
  int32_t value; /* 1: not wanted any more. To be read with an atomic load                        */
  int32_t
      passed_over; /* set to 1, with an atomic store, by whoever leaves out work because of it */
  int32_t reserved;
  void (*retain)(struct heddle_cancel*);
  void (*release)(struct heddle_cancel*);
} heddle_cancel;

/* How a weight stands on a device. info.layout != 0 when packed. */
typedef struct heddle_weight_layout {
  uint32_t size;
  heddle_tensor_info info;
  uint64_t bytes;
} heddle_weight_layout;

/* Which device of its kind, from 0. */
typedef uint32_t heddle_device_index;

typedef struct heddle_device_desc {
  uint32_t size;
  uint32_t version;
  const char* kind;        /* "cpu", "cuda" */
  uint32_t (*count)(void); /* [any] how many there are to open by default */
  /* options: a record ({"threads": 4, "compute": "bf16"}) or NULL. [load] */
  heddle_status* (*open)(const heddle_host*, heddle_device_index, const heddle_value* options,
                         heddle_device**);
  void (*close)(heddle_device*);                               /* [load] */
  heddle_status* (*info)(heddle_device*, heddle_device_info*); /* [any] */

  /* Memory. The engine calls these rarely: it pools. [any] */
  heddle_status* (*alloc)(heddle_device*, size_t bytes, void** out);
  void (*free)(heddle_device*, void*); /* after the work that uses it is done */

  /* Order. A stream runs what it is given in order; an event is one point in it. [any] */
  heddle_status* (*stream_make)(heddle_device*, heddle_stream**);
  void (*stream_free)(heddle_stream*); /* after the work in it is done */
  heddle_status* (*event_make)(heddle_device*, heddle_event**);
  void (*event_free)(heddle_event*);
  heddle_status* (*record)(heddle_stream*, heddle_event*);
  heddle_status* (*wait_on_stream)(heddle_stream*, heddle_event*); /* device-side, does not block */
  heddle_status* (*wait)(heddle_event*); /* host-side, blocks; the first failure of the stream so
                                            far: "NAME OF ITS DEVICE: ..." */
  int32_t (*done)(heddle_event*);        /* does not block        */

  /* Copies. peer, to or from is NULL for host memory. can_copy answers for a direct path only; the
   * engine stages through pinned memory when there is none. [any] / [call] */
  int32_t (*can_copy)(heddle_device*, heddle_device* peer);
  heddle_status* (*copy)(heddle_stream*, heddle_device* to, void* dst, heddle_device* from,
                         const void* src, size_t bytes);

  /* Weights. weight_layout says what make_weight will write for a slot whose logical shape and file
   * type is info; the answer depends on its arguments only. make_weight casts, joins and packs the
   * parts (row-major, in host memory, rows along axis 0; each of a type of its own, with a scale of
   * its own) into dst. [any] / [call] */
  heddle_status* (*weight_layout)(heddle_device*, heddle_use, const heddle_tensor_info* info,
                                  heddle_weight_layout* out);
  heddle_status* (*make_weight)(heddle_device*, heddle_stream*, heddle_use,
                                const heddle_weight_layout*, uint32_t part_count,
                                const heddle_view* const* parts, void* dst);

  /* All above is required: an engine refuses a kind that lacks one of them, and names it. From here
   * on members are optional: NULL where there is nothing, or where the desc ends before them. */

  const heddle_kernel* const* kernels; /* NULL-terminated; others come with HEDDLE_KERNELS */
  /* A table of one of the extensions below, by its name; NULL: devices of this kind have no such
   * thing. [any] */
  const void* (*extension)(const char* name);
} heddle_device_desc;

/* ---- extensions: what a kind of device may have besides ----
 *
 * One subject each, found by name and revision. A table has no optional function, is the same for
 * all devices of its kind, and lives as long as the plugin. Without an extension the engine does
 * without what it is for. */

/* Host memory that copies to and from the device go fastest from. Without it the engine copies from
 * plain memory. */
#define HEDDLE_DEVICE_PINNED "heddle.device.pinned/0"
typedef struct heddle_device_pinned {
  heddle_status* (*alloc)(heddle_device*, size_t bytes,
                          void** out); /* [any] rarely: the engine pools */
  void (*free)(heddle_device*, void*); /* [any]                          */
} heddle_device_pinned;

/* The handle that libraries of this kind of device take. Without it a node's stream is NULL. */
#define HEDDLE_DEVICE_NATIVE "heddle.device.native/0"
typedef struct heddle_device_native {
  void* (*stream)(heddle_stream*); /* [any] borrowed: cudaStream_t */
} heddle_device_native;

/* Kernels that are launched between begin and end are kept instead of run, with the addresses they
 * were given. What is kept is replayed any number of times, on any stream of its device, one replay
 * after the other. What cannot be kept is refused as UNSUPPORTED, by the launch or by end; the
 * capture is then over, and the stream as it was before. [call] */
#define HEDDLE_DEVICE_CAPTURE "heddle.device.capture/0"
typedef struct heddle_device_capture {
  heddle_status* (*begin)(heddle_stream*);
  heddle_status* (*end)(heddle_stream*,
                        heddle_captured_graph** out); /* always called after begin; yours */
  heddle_status* (*replay)(heddle_stream*, heddle_captured_graph*);
  void (*free)(heddle_captured_graph*);      /* after the replays are done */
  uint64_t (*bytes)(heddle_captured_graph*); /* [any] of the device's memory that it takes, about */
  /* Not 0: what another stream of the device launches behind an event of the recorded one is kept,
   * too, and replays run it beside the other launches. The recorded stream has to wait for an event
   * of the other one before end. */
  int32_t keeps_other_streams;
  int32_t reserved;
} heddle_device_capture;

/* The ways to other devices of the kind, and to host memory (peer NULL). Without it they follow
 * from can_copy and host_visible, and their speed is unknown. */
#define HEDDLE_DEVICE_LINKS "heddle.device.links/0"
typedef struct heddle_device_links {
  heddle_status* (*link)(heddle_device*, heddle_device* peer, heddle_link* out); /* [any] */
} heddle_device_links;

/* Seconds from one event to another of the same device, both reached; on devices with a simulated
 * clock, by that clock. Without it the engine measures on the host. */
#define HEDDLE_DEVICE_TIMING "heddle.device.timing/0"
typedef struct heddle_device_timing {
  heddle_status* (*elapsed)(heddle_event* begin, heddle_event* end, double* seconds); /* [any] */
} heddle_device_timing;

/* What is enqueued on the stream from now on is wanted only as long as the flag is 0; NULL: in any
 * case, as at first. When it has turned to 1 the stream gets past such work as fast as it can: what
 * has not begun is left out, and what runs stops at its next row or tile. Nobody knows then what it
 * has written. That is no failure; events and order are as ever. Without it a device finishes what
 * was enqueued. */
#define HEDDLE_DEVICE_CANCEL "heddle.device.cancel/0"
typedef struct heddle_device_cancel {
  void (*set)(heddle_stream*, heddle_cancel*); /* [call] */
} heddle_device_cancel;

/* Who a device is: told before it is opened, without a context on it. People name devices by it.
 * Without it a device has its ordinal only. */
#define HEDDLE_DEVICE_IDENTITY "heddle.device.identity/0"
typedef struct heddle_device_identity_info {
  uint32_t size;
  int32_t integrated;    /* 1: it is part of the host's processor, and its memory is host memory */
  char uuid[64];         /* "GPU-00112233-4455-6677-8899-aabbccddeeff"; empty: none      */
  char pci_address[32];  /* "0000:1b:00.0": domain, bus, device, function; empty: none   */
  char architecture[64]; /* "compute capability 9.0"; empty: nothing is to be said       */
  char fallbacks[512];   /* what it lacks and what is done instead, a line each, for people */
} heddle_device_identity_info;
typedef struct heddle_device_identity {
  heddle_status* (*identify)(const heddle_host*, heddle_device_index,
                             heddle_device_identity_info* out); /* [any] */
} heddle_device_identity;

/* What a device makes at its first work and keeps from then on: a context of its driver, handles of
 * libraries. Everything that needs none answers without making one: info, links, can_copy, weight
 * layouts. With it a drained device can be rid of that, too. */
#define HEDDLE_DEVICE_CONTEXT "heddle.device.context/0"
typedef struct heddle_device_context {
  int32_t (*is_made)(heddle_device*); /* [any] 1: there is one now */
  /* Gives it back; the next work makes it again. REQUIRES: no memory, pinned memory, stream, event
   * or captured graph of the device is left. [load] */
  heddle_status* (*release)(heddle_device*);
} heddle_device_context;

/* The uses of weights that the plugin knows beyond HEDDLE_USE_LINEAR_FP8. Without it, or of a
 * later one, a device is told HEDDLE_USE_VECTOR. */
#define HEDDLE_DEVICE_USES "heddle.device.uses/0"
typedef struct heddle_device_uses {
  heddle_use last;
  int32_t reserved;
} heddle_device_uses;

#ifdef __cplusplus
}
#endif
#endif
