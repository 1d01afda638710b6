/* heddle/abi/picture_files.h - picture files made of picture files, for programs that serve them:
 * smaller copies, one without its alpha, one with the alpha of another. */
#ifndef HEDDLE_ABI_PICTURE_FILES_H
#define HEDDLE_ABI_PICTURE_FILES_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_PICTURE_FILES \
  "heddle.picture_files/0" /* heddle_plugin.provide -> heddle_list of heddle_picture_files */

typedef int32_t heddle_picture_channels;
enum {
  HEDDLE_PICTURE_RGB = 0,   /* without alpha */
  HEDDLE_PICTURE_RGBA = 1,  /* RGB where there is no alpha */
  HEDDLE_PICTURE_ALPHA = 2, /* RGBA, black; alpha is 255 where there was none */
};

typedef struct heddle_picture_file {
  uint32_t size;
  heddle_picture_channels channels; /* of what is written */
  const void* file;                 /* of any format that the plugin reads; the first picture */
  uint64_t bytes;
  const void* alpha_file; /* NULL, or a picture of the same size: its alpha takes the place of the
                           * first one's, 255 where it has none */
  uint64_t alpha_bytes;
  const char* format; /* "png", of HEDDLE_PICTURE_RGBA with the texts (tEXt) of a PNG that it is
                       * made of; "webp", lossy; "jpeg", which has no alpha */
  int32_t quality;    /* 1 to 100, of webp and jpeg */
  /* Called once, with the bytes of the file; they live until it returns. */
  void (*write)(void* user, const void* bytes, uint64_t count);
  void* user;
} heddle_picture_file;

typedef struct heddle_picture_files {
  uint32_t size;
  /* HEDDLE_INVALID_ARGUMENT where a file is no picture, is broken, is larger than the limit of
   * pixels, or two have not the same size; HEDDLE_UNSUPPORTED for formats that this build lacks.
   * [any] */
  heddle_status* (*convert)(const heddle_picture_file*);
} heddle_picture_files;

#ifdef __cplusplus
}
#endif
#endif
