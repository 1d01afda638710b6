/* heddle/testing/fake_control.h - what a test can ask of the fake devices and do to them. The
 * plugin `fake` gives one table of the kind "test.fake_control/0". C11; every function may be
 * called on any thread. Devices are named by their index ("fake:3" is 3); what is set or counted
 * for an index lasts until reset(), whether a device of that index is open or not. An index from
 * HEDDLE_FAKE_MOST on is taken for the last one. */
#ifndef HEDDLE_TESTING_FAKE_CONTROL_H
#define HEDDLE_TESTING_FAKE_CONTROL_H

#include <stdint.h>

#define HEDDLE_FAKE_CONTROL "test.fake_control/0"

enum { HEDDLE_FAKE_MOST = 1024 };             /* devices there can be                     */
#define HEDDLE_FAKE_HOST UINT32_C(0xffffffff) /* host memory, as an end of a link     */

typedef struct heddle_fake_control {
  uint32_t size;

  /* Counters to zero, faults forgotten, every simulated time (streams, links, threads, events) to
   * zero. Dead devices stay dead. REQUIRES: nothing is being enqueued meanwhile. */
  void (*reset)(void);

  /* ---- the simulated clock, in seconds since reset() ---- */

  /* Where the furthest stream of the device is. Depends on what was enqueued, on which stream,
   * after which events: not on real time, nor on which thread was faster. Asking fixes what
   * happened so far: work enqueued afterwards never gets a link before work that was enqueued
   * before the question. */
  double (*now)(uint32_t device);
  double (*thread_now)(void); /* of the calling thread: the latest event that it has waited for */
  /* Seconds that copies have kept a link busy in this direction. */
  double (*link_busy)(uint32_t from, uint32_t to);
  void (*set_link)(uint32_t device, uint32_t from, uint32_t to, double bytes_per_second,
                   double latency_seconds); /* device: on whose streams */
  void (*set_op_seconds)(
      uint32_t device, const char* op,
      double seconds); /* "linear/1", "linear", "*"; negative: as flops and bytes say */

  /* ---- counters ---- */

  uint64_t (*bytes_copied)(uint32_t from,
                           uint32_t to); /* weights that are made count as copied from the host */
  uint64_t (*copies)(uint32_t device);   /* enqueued on its streams; weights are not among them */
  uint64_t (*weights)(uint32_t device);  /* make_weight calls                                   */
  uint64_t (*allocations)(uint32_t device); /* that succeeded */
  uint64_t (*launches)(uint32_t device,
                       const char* op); /* op NULL: all. Since reset(), of devices of this index */
  uint64_t (*used_bytes)(uint32_t device);
  uint64_t (*peak_bytes)(uint32_t device);
  /* Allocations that were freed while work enqueued before still referred to them: a fault of
   * whoever freed them. */
  uint64_t (*freed_in_use)(uint32_t device);

  /* ---- faults ---- */

  void (*fail_alloc)(uint32_t device,
                     uint64_t nth); /* the nth from now (1: the next) is out of memory; 0: none */
  void (*fail_copy)(uint32_t device,
                    uint64_t nth); /* the nth enqueued from now fails when it runs; 0: none       */
  void (*fail_launch)(
      uint32_t device,
      uint64_t nth); /* the nth kernel enqueued from now fails when it runs; 0: none */
  /* Until revive(): every call fails, what is enqueued is dropped, waiting for its events gives the
   * failure. */
  void (*kill)(uint32_t device);
  void (*revive)(
      uint32_t device); /* its memory holds NaN again, as after a reset; addresses stay valid */
  /* Memory taken by a program that is not ours: less is free, from now on. */
  void (*set_foreign_bytes)(uint32_t device, uint64_t bytes);

  /* ---- pinned host memory ---- */

  uint64_t (*pinned_bytes)(uint32_t device); /* now, of the devices of this index that are open */
  uint64_t (*pinned_peak_bytes)(uint32_t device); /* of one device */
  void (*fail_pinned)(uint32_t device,
                      uint64_t nth); /* the nth allocation from now is out of memory; 0: none */

  /* ---- more faults ---- */

  void (*fail_allocs)(uint32_t device, uint64_t nth,
                      uint64_t times); /* the nth from now and those after it, `times` in all */
  void (*fail_weight)(uint32_t device,
                      uint64_t nth); /* the nth make_weight from now fails when it runs; 0: none */
  void (*refuse)(uint32_t device, uint64_t nth); /* the nth copy, weight or kernel from now is not
                                                    even enqueued; 0: none */
  uint64_t (*faults)(uint32_t device);           /* that have struck since reset() */

  uint64_t (*replays)(uint32_t device); /* of captured graphs; their launches count as launches */

  uint64_t (*pinned_allocations)(uint32_t device); /* that succeeded */

  /* ---- work that nobody wants any more ---- */

  uint64_t (*launches_run)(uint32_t device); /* that were done; replays and failures apart */
  /* The nth kernel from now (1: the next) calls this when it begins, on its stream's thread; 0:
   * none does. */
  void (*call_at_launch)(uint32_t device, uint64_t nth, void (*call)(void*), void* user);

  /* The nth make_weight from now (1: the next) and all behind it call this, on the thread that asks
   * for the weight; 0: none do. */
  void (*call_at_weights)(uint32_t device, uint64_t nth, void (*call)(void*), void* user);

  /* How often kernels were asked whether they fit an op, since reset(). */
  uint64_t (*questions)(uint32_t device);

  /* ---- what a device holds of its driver ---- */

  /* Devices of this index that have a context now; it is made by their first allocation, stream or
   * event. */
  uint64_t (*contexts)(uint32_t device);
  uint64_t (*contexts_made)(uint32_t device); /* since reset() */
  uint64_t (*handles)(uint32_t device);       /* streams and events that there are now */

  /* Whether captured graphs keep what other streams launch (heddle_device_capture), until reset().
   * A replay runs a lane as far ahead of the others as it may. No device may work meanwhile. */
  void (*keep_other_streams)(int32_t keeps);
} heddle_fake_control;

#endif
