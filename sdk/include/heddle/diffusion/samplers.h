/* heddle/diffusion/samplers.h - samplers as an extension point of the samplers plugin.
 *
 * A sampler gets the noise levels of a run and answers, step by step, with the model evaluations
 * it wants and the linear combinations that lead to the next point. It never sees a tensor: the
 * nodes call the model and add, on whatever device. With x0 the point at the beginning of a step:
 *
 *   for each evaluation e of a step, in order:
 *     D = the clean image the model sees in the present point at level e.sigma; D goes to the
 *         front of the history
 *     next = e.next of the step's start, the history, earlier slopes, fresh noise
 *     start = next, when e.after moves it; or e.start, when it corrects it
 *     point = next
 *   after a step: the slope (x0 - its first D) / sigma goes to the front of the slopes
 *
 * The choice widgets of KSampler, KSamplerAdvanced and KSamplerSelect list every desc of this kind,
 * in load order. */
#ifndef HEDDLE_DIFFUSION_SAMPLERS_H
#define HEDDLE_DIFFUSION_SAMPLERS_H

#include "../abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_SAMPLERS \
  "heddle.field.samplers/0" /* heddle_plugin.provide -> heddle_list of heddle_sampler_desc */

enum { HEDDLE_SAMPLER_DENOISED = 4, HEDDLE_SAMPLER_SLOPES = 3 };

/* x * start + sum denoised[k] * D_k + sum slopes[k] * d_k + noise * (a fresh standard normal draw).
 * [0] is the newest. */
typedef struct heddle_sampler_sum {
  double x;
  double denoised[HEDDLE_SAMPLER_DENOISED];
  double slopes[HEDDLE_SAMPLER_SLOPES];
  double noise; /* 0: nothing is drawn */
} heddle_sampler_sum;

typedef struct heddle_sampler_evaluation {
  uint32_t size;
  int32_t after;
  double sigma; /* level at which the model sees the present point */
  heddle_sampler_sum next;
  heddle_sampler_sum start; /* read when after corrects the start */
} heddle_sampler_evaluation;
enum {
  HEDDLE_SAMPLER_KEEP_START = 0, /* another evaluation of this step follows, from the same start */
  HEDDLE_SAMPLER_MOVE_START = 1,
  HEDDLE_SAMPLER_CORRECT_START = 2
};

/* A run, as a sampler sees it. */
typedef struct heddle_sampler_run {
  uint32_t size;
  int32_t flow;        /* 1: x = (1 - sigma) picture + sigma noise; 0: x = picture + sigma noise */
  double eta;          /* fresh noise of samplers that draw some; 1 unless a node says otherwise */
  double noise_factor; /* of the fresh noise ("s_noise") */
  uint32_t sigma_count;
  const float* sigmas; /* falling levels, at least two */
} heddle_sampler_run;

typedef struct heddle_sampler_desc {
  uint32_t size;
  const char* name; /* as workflows write it: "euler" */
  const char* doc;
  uint32_t flags;
  uint32_t
      denoised_history; /* evaluations to keep, the newest included: 1 to HEDDLE_SAMPLER_DENOISED */
  uint32_t slope_history; /* slopes of earlier steps to keep: 0 to HEDDLE_SAMPLER_SLOPES */

  /* The evaluations of step `index` (from sigmas[index] to sigmas[index + 1]), each handed to
   * emit(to, ...), which copies it. None: the sampler does nothing in this step. [any] */
  heddle_status* (*step)(const heddle_host*, const struct heddle_sampler_desc* self,
                         const heddle_sampler_run*, uint32_t index,
                         void (*emit)(void* to, const heddle_sampler_evaluation*), void* to);
  /* The level at which a run really ends. NULL: the last of the sigmas. [any] */
  double (*final_sigma)(const struct heddle_sampler_desc* self, const heddle_sampler_run*);
} heddle_sampler_desc;
enum {
  HEDDLE_SAMPLER_DRAWS_NOISE = 1u << 0,
  HEDDLE_SAMPLER_DISCARDS_PENULTIMATE =
      1u << 1, /* KSampler asks for one level more and drops the last but one  */
  HEDDLE_SAMPLER_FINITE_FIRST_LEVEL =
      1u << 2 /* in flows, a first level of 1 is replaced by one just below it */
};

#ifdef __cplusplus
}
#endif
#endif
