/* heddle/abi/device_ahead.h - what a device does before its first work.
 *
 * A run is planned before any of it is done, and a plan needs no context of a driver, which takes a
 * fifth of a second. So that both take place at the same time, a device that a run is likely to
 * come to is told of it; of a plan that somebody only looks at none is. */
#ifndef HEDDLE_ABI_DEVICE_AHEAD_H
#define HEDDLE_ABI_DEVICE_AHEAD_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Extension of devices. Without it a device prepares at its first work. */
#define HEDDLE_DEVICE_AHEAD "heddle.device.ahead/0"
typedef struct heddle_device_ahead {
  /* The device may make what its first work would, on a thread of its own; returns at once. What
   * fails there is told by that work. [any] */
  void (*expect_work)(heddle_device*);
} heddle_device_ahead;

#ifdef __cplusplus
}
#endif
#endif
