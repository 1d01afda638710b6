/* heddle/diffusion/tokenizer.h - tokenizers: an object that turns texts into ids, and the registry
 * kind that makes it from files.
 *
 * A CLIP value carries, for every encoder, an object of interface HEDDLE_TOKENIZER. Loaders make it
 * through a desc of kind HEDDLE_TOKENIZERS, so that they need not know who reads which file. All
 * functions may be called on any thread. */
#ifndef HEDDLE_DIFFUSION_TOKENIZER_H
#define HEDDLE_DIFFUSION_TOKENIZER_H

#include "../abi/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_TOKENIZER "heddle.tokenizer/0" /* interface id of the object */
#define HEDDLE_TOKENIZERS \
  "heddle.field.tokenizers/0" /* provide -> heddle_list of heddle_tokenizers_desc */

/* How a prompt is packed into windows. */
typedef struct heddle_token_windows {
  uint32_t size;
  uint32_t style;
  uint32_t length;       /* most ids of a window, with start and end; 0: no limit       */
  uint32_t least_length; /* the last window is filled up to this with padding */
  int32_t padding;       /* id; negative: the tokenizer's own       */
  int32_t weights;       /* 1: "(a:1.2)" weighs, as ComfyUI reads it; 0: every weight is 1       */
  /* Asked now and then: not 0 ends the call with HEDDLE_CANCELLED. NULL: nobody cancels. */
  int32_t (*cancelled)(void* cancelled_of);
  void* cancelled_of;
  /* Of an embedding that the prompt names ("embedding:NAME", without commas behind it): how many
   * vectors it has, each of which takes the place of a token, and the id that stands for the first;
   * the others count on from it. 0: there is none. NULL: there are none. What there is none of is
   * left out. */
  uint32_t (*embedding)(void* embedding_of, heddle_str name, int32_t* first_id);
  void* embedding_of;
} heddle_token_windows;
enum {
  HEDDLE_WINDOWS_CLIP = 0, /* start, ids, end, padding up to length; short segments are not cut */
  HEDDLE_WINDOWS_OPEN = 1  /* ids, end, padding up to least_length; cut exactly at length  */
};

typedef struct heddle_tokenizer {
  uint32_t size;
  /* The ids of a text, one by one; no start, end or padding. */
  heddle_status* (*encode)(void* self, heddle_str text, void (*push)(void* to, int32_t id),
                           void* to);
  /* The windows of a prompt, at least one, id by id; `window` counts from 0. */
  heddle_status* (*windows)(void* self, heddle_str prompt, const heddle_token_windows*,
                            void (*push)(void* to, uint32_t window, int32_t id, double weight),
                            void* to);
  /* The id after the text of a window; negative: there is none. */
  heddle_status* (*end_id)(void* self, int32_t* id);
  /* What the tokenizer's files give as the longest text in ids; 0: they do not say. */
  heddle_status* (*max_length)(void* self, uint32_t* length);
  /* Optional. The text of ids, in one piece of UTF-8 that is borrowed while `push` is called. What
   * stands for no text of its own (the end of a turn) is left out. */
  heddle_status* (*decode)(void* self, uint32_t count, const int32_t* ids,
                           void (*push)(void* to, heddle_str text), void* to);
} heddle_tokenizer;

typedef struct heddle_tokenizers_desc {
  uint32_t size;
  const char* name; /* "files" */
  const char* doc;
  /* The tokenizer whose files lie in a folder; *out stays NULL when none of them is there. Big
   * files may be read at the first use. The object is yours. */
  heddle_status* (*open)(const heddle_host*, const char* folder, heddle_value** out);

  /* Optional. The tokenizer that a model's file carries beside its weights; *out stays NULL when
   * there is none. The object is yours. */
  heddle_status* (*open_inside)(const heddle_host*, const heddle_checkpoint*, heddle_value** out);
  /* Optional. The tokenizer that encoders of this name ("clip_l", "clip_h", "clip_g", "t5xxl",
   * "qwen2.5") were published with, where the model's table of tokens has so many rows; *out stays
   * NULL when none is known. The object is yours. */
  heddle_status* (*open_published)(const heddle_host*, const char* encoder, int64_t rows,
                                   heddle_value** out);
} heddle_tokenizers_desc;

#ifdef __cplusplus
}
#endif
#endif
