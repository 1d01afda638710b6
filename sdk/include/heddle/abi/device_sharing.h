/* heddle/abi/device_sharing.h - memory of a device that several processes of one machine use.
 *
 * One process allocates and shares it, others map it: engines give the nodes of isolated plugins
 * their tensors so. Nothing here orders work: whoever hands memory to another process waits before
 * until its own work on it is done. */
#ifndef HEDDLE_ABI_DEVICE_SHARING_H
#define HEDDLE_ABI_DEVICE_SHARING_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What another process needs to map a piece of memory. It comes from that process, which may be
 * broken: whoever maps checks all of it before anything is done. */
typedef struct heddle_shared_memory {
  uint32_t size;
  int32_t descriptor;   /* a file descriptor that goes with it; below 0: none            */
  uint64_t bytes;       /* of the memory, as many as can be used                         */
  uint32_t token_bytes; /* of token, that mean something; at most sizeof token           */
  uint32_t reserved;
  uint8_t token[128]; /* the plugin's own, the same for all processes of the machine   */
} heddle_shared_memory;

/* Extension of devices. Without it, and where is_possible() says 0, values reach other processes by
 * host memory. */
#define HEDDLE_DEVICE_SHARING "heddle.device.sharing/0"
typedef struct heddle_device_sharing {
  /* 1: this device can, as far as its driver tells. [any] */
  int32_t (*is_possible)(heddle_device*);
  /* As alloc() of the desc, of memory that share() takes; at least `bytes`, rounded up as the
   * driver needs it. It goes by free() of the desc; other processes that have mapped it keep its
   * bytes until they unmap it. OUT_OF_MEMORY; UNSUPPORTED. [any] */
  heddle_status* (*alloc)(heddle_device*, size_t bytes, void** out);
  /* Of memory that alloc() above gave, its begin. The descriptor is the caller's to close.
   * INVALID_ARGUMENT for other memory. [any] */
  heddle_status* (*share)(heddle_device*, const void* memory, heddle_shared_memory* out);
  /* Maps what share() told, of a device with the same UUID, perhaps in another process, which need
   * not be there any more. The descriptor stays the caller's. writable 0: the caller does not write
   * there; a device may hold him to it. INVALID_ARGUMENT for what no share() has told. [any] */
  heddle_status* (*map)(heddle_device*, const heddle_shared_memory*, int32_t writable, void** out);
  /* After the work that uses it is done. The memory stays with whoever has it. [any] */
  void (*unmap)(heddle_device*, void* mapped);
  /* What alloc() of so many bytes takes of the device's memory: as many, or more. [any] */
  uint64_t (*taken)(heddle_device*, uint64_t bytes);
} heddle_device_sharing;

#ifdef __cplusplus
}
#endif
#endif
