/* heddle/abi/files.h - where files are, and what is in them. Paths are UTF-8; results are str
 * values, yours. */
#ifndef HEDDLE_ABI_FILES_H
#define HEDDLE_ABI_FILES_H

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The files of a call: where they are, and which ones. [any], but for identify */
#define HEDDLE_SERVICE_FOLDERS "heddle.folders/0"
typedef struct heddle_folders_service {
  /* folder as in a FILE widget; fails with the places that were searched. */
  heddle_status* (*find)(heddle_ctx*, const char* folder, const char* name, heddle_value** path);
  /* A new file's place under the output folder ("output") or its "temp": refuses names that leave
   * it. */
  heddle_status* (*output)(heddle_ctx*, const char* kind, heddle_value** folder);
  /* For fingerprint(): what tells a file from every other. Its content, where the answer outlives
   * the process; else its place, size and date, which is quick. Add the file's name below what the
   * node was given, not its path. [call] */
  heddle_status* (*identify)(heddle_ctx*, const char* path, uint64_t* hash);
  /* Where find() looks for files of a folder, in this order, whether the places are there or not: a
   * list of strs. */
  heddle_status* (*places)(heddle_ctx*, const char* folder, heddle_value** list);
} heddle_folders_service;

/* Bytes of files. [any] */
#define HEDDLE_SERVICE_FILES "heddle.files/0"
typedef struct heddle_files_service {
  /* The whole of a regular file, its bytes as they are. Refuses folders, devices and pipes, and
   * what has more than most_bytes bytes; what: the kind of file, for errors ("a tokenizer"). */
  heddle_status* (*read)(const heddle_host*, const char* path, uint64_t most_bytes,
                         const char* what, heddle_value** content);
  /* A new file with this content, whole or not at all, and on the disk when this returns. Never in
   * the place of another: created is 0 where the name is taken. */
  heddle_status* (*create)(const heddle_host*, const char* path, heddle_str content,
                           int32_t* created);
} heddle_files_service;

#ifdef __cplusplus
}
#endif
#endif
