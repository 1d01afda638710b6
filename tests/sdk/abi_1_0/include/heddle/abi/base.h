/* heddle/abi/base.h - the words every other ABI header uses. C11, no dependencies.
 *
 * Rules of the ABI (sdk/README.md explains them):
 *   1. A table of functions is an extension: it has one subject, and is found by a name with a
 *      revision. The engine's are "services" (heddle_host.service), a device's are in device.h.
 *      Every function of a table is required. A released table never changes: a change is a new
 *      name, "heddle.io/0" -> "heddle.io/1". What ABI 1.0 has of revision 0 is released.
 *   2. A record that the plugin fills (a "desc") starts with its own size. Its required members
 *      come first, its optional ones last. It grows only at the end, by optional members: what was
 *      added after the plugin was built reads as zero. Records are passed in arrays of POINTERS, so
 *      that growth never changes a stride.
 *   3. No C++ object, exception, or malloc'ed block crosses the border. Handles do.
 *   4. Strings are UTF-8 and NUL-terminated unless they come as heddle_str.
 *   5. Every function names the thread it may be called on: [load] [call] [any].
 *        [load]  one thread, while plugins are loaded or unloaded
 *        [call]  never two threads at once for one call of a node, or for one stream; the OS
 *                thread may change
 *        [any]   any thread, concurrently
 *   6. get/find/input return borrowed handles, valid until the call that gave them returns or as
 *      long as what holds them; make/open return handles that are yours; set_... takes your
 *      reference. */
#ifndef HEDDLE_ABI_BASE_H
#define HEDDLE_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#define HEDDLE_ABI_MAJOR 1 /* bumped when old plugins can no longer load  */
#define HEDDLE_ABI_MINOR 0 /* bumped when something was added             */

#if defined(_WIN32)
#define HEDDLE_EXPORT __declspec(dllexport)
#else
#define HEDDLE_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_str {
  const char* data; /* may be NULL when size is 0 */
  size_t size;      /* bytes                      */
} heddle_str;

/* Why something failed. Enums cross the border as int32_t: a C enum has no fixed width. */
typedef int32_t heddle_code;
enum {
  HEDDLE_INVALID_ARGUMENT = 1, /* the caller can fix this: bad value, bad type, bad file   */
  HEDDLE_NOT_FOUND = 2,
  HEDDLE_UNSUPPORTED = 3,   /* a valid request that this build or device cannot serve     */
  HEDDLE_OUT_OF_MEMORY = 4, /* the planner may retry with a smaller resident set          */
  HEDDLE_CANCELLED = 5,
  HEDDLE_IO = 6,
  HEDDLE_INTERNAL = 7 /* a bug in the plugin or the engine                               */
};

/* NULL is success. Anything else is owned by whoever receives it; the engine frees what reaches it.
 */
typedef struct heddle_status heddle_status;

typedef int32_t heddle_level;
enum { HEDDLE_DEBUG = 0, HEDDLE_INFO = 1, HEDDLE_WARN = 2, HEDDLE_ERROR = 3 };

typedef struct heddle_host heddle_host;

/* What the engine offers to a plugin at load time. Valid until deinit() returns. */
struct heddle_host {
  uint32_t size;
  uint32_t abi_major, abi_minor;
  const char* name;    /* "heddle" */
  const char* version; /* "0.1.0"  */

  /* Looks up a service by its name and revision, such as "heddle.io/0"; NULL when this engine does
   * not have it. The table lives until deinit() returns. [any] */
  const void* (*service)(const heddle_host*, const char* name);

  /* Makes a status; the message is copied. Never fails: gives a static status when memory is out.
   * [any] */
  heddle_status* (*fail)(const heddle_host*, heddle_code, const char* message);
  heddle_code (*status_code)(const heddle_status*);    /* [any] */
  const char* (*status_message)(const heddle_status*); /* [any] lives as long as the status */
  void (*status_free)(heddle_status*);                 /* [any] NULL is fine */

  void (*log)(const heddle_host*, heddle_level, const char* message); /* [any] */
};

/* The one symbol a plugin exports. It is data, so the engine reads the versions, and may refuse the
 * plugin with a clear message, before any plugin code has run. */
typedef struct heddle_plugin {
  uint32_t size;
  uint32_t abi_major, abi_minor; /* what the plugin was built against */
  const char* id;                /* "org.example.hello" */
  const char* version;

  /* Returns what the plugin has of a kind ("heddle.nodes/0", "heddle.devices/0", or any other kind
   * that plugins agree on), or NULL. The table lives as long as the plugin. [any] */
  const struct heddle_list* (*provide)(const char* kind);

  /* Optional: NULL where there is nothing to do. */
  heddle_status* (*init)(
      const heddle_host*); /* [load] fast; no device work. Looks up the services that the plugin
                            * uses, and fails where one that it needs is not there            */
  void (*deinit)(void);    /* [load] all threads joined                                       */
} heddle_plugin;

typedef struct heddle_list {
  uint32_t count;
  const void* const* items; /* descs of the asked kind; each begins with its uint32_t size */
} heddle_list;

HEDDLE_EXPORT extern const heddle_plugin heddle_entry;

/* What all loaded plugins provide of a kind, in load order. */
#define HEDDLE_SERVICE_REGISTRY "heddle.registry/0"
typedef struct heddle_registry_service {
  uint32_t (*count)(const heddle_host*, const char* kind);                   /* [any] */
  const void* (*item)(const heddle_host*, const char* kind, uint32_t index); /* [any] NULL: none */
  const char* (*plugin)(const heddle_host*, const char* kind,
                        uint32_t index); /* [any] id of its plugin */
} heddle_registry_service;

#ifdef __cplusplus
}
#endif
#endif
