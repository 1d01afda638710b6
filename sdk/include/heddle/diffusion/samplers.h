/* heddle/diffusion/samplers.h - samplers as an extension point of the samplers plugin.
 *
 * A sampler gets the noise levels of a run and answers, step by step, with the model evaluations
 * it wants and the linear combinations that lead to the next point. It never sees a tensor: the
 * nodes call the model and add, on whatever device. With x0 the point at the beginning of a step:
 *
 *   for each evaluation e of a step, in order:
 *     D = the clean image the model sees in the present point at level e.sigma; D goes to the
 *         front of the history
 *     next = e.next of the step's start, the history, earlier slopes, noise
 *     start = next, when e.after moves it; or e.start, when it corrects it
 *     point = next
 *   after a step: the slope (x0 - its first D) / sigma goes to the front of the slopes
 *
 * A sampler that chooses its steps as it goes answers with attempts instead, see below.
 *
 * The choice widgets of KSampler, KSamplerAdvanced and KSamplerSelect list every desc of this kind,
 * in load order. */
#ifndef HEDDLE_DIFFUSION_SAMPLERS_H
#define HEDDLE_DIFFUSION_SAMPLERS_H

#include <string.h>

#include "../abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_SAMPLERS \
  "heddle.field.samplers/0" /* heddle_plugin.provide -> heddle_list of heddle_sampler_desc */

typedef struct heddle_sampler_term {
  int32_t of;   /* HEDDLE_SAMPLER_START ... */
  uint32_t age; /* 0 is the newest of its kind */
  double factor;
} heddle_sampler_term;
enum {
  HEDDLE_SAMPLER_START = 0,    /* the step's start */
  HEDDLE_SAMPLER_DENOISED = 1, /* D; age 0: of this evaluation */
  /* What the model sees without the positive conditioning, D of a cfg of 0; zeros when there is no
   * negative conditioning. Needs HEDDLE_SAMPLER_LOOKS_TWICE. */
  HEDDLE_SAMPLER_UNCONDITIONED = 2,
  HEDDLE_SAMPLER_SLOPE = 3, /* age 0: of the step before this one */
  HEDDLE_SAMPLER_UNCONDITIONED_SLOPE =
      4, /* the same with what is UNCONDITIONED in the place of D */
  /* A standard normal draw. Age 0: drawn for this evaluation, when it has such a term, be its
   * factor 0; 1: the last one drawn before. */
  HEDDLE_SAMPLER_NOISE = 5
};

/* The sum of `count` terms, added in this order. Borrowed until emit() returns. */
typedef struct heddle_sampler_sum {
  const heddle_sampler_term* terms;
  uint32_t count;
} heddle_sampler_sum;

typedef struct heddle_sampler_evaluation {
  uint32_t size;
  int32_t after;
  double sigma; /* level at which the model sees the present point */
  heddle_sampler_sum next;
  heddle_sampler_sum start; /* read when after corrects the start */
  /* Optional. Of the draw of this evaluation: the levels it leads between, with
   * HEDDLE_SAMPLER_BROWNIAN (both 0: those of the step), and the greatest size of a value, in
   * standard deviations of the draw (0: any). */
  float noise_from, noise_to;
  double noise_clip;
} heddle_sampler_evaluation;
enum {
  HEDDLE_SAMPLER_KEEP_START = 0, /* another evaluation of this step follows, from the same start */
  HEDDLE_SAMPLER_MOVE_START = 1,
  HEDDLE_SAMPLER_CORRECT_START = 2
};

typedef struct heddle_sampler_option {
  const char* name;
  double value;
} heddle_sampler_option;

/* An option that a sampler knows. */
typedef struct heddle_sampler_option_desc {
  uint32_t size;
  const char* name;
  const char* doc;
  double least, most; /* both are allowed, infinities too */
} heddle_sampler_option_desc;

/* A run, as a sampler sees it. */
typedef struct heddle_sampler_run {
  uint32_t size;
  int32_t flow;        /* 1: x = (1 - sigma) image + sigma noise; 0: x = image + sigma noise */
  double eta;          /* fresh noise of samplers that draw some; 1 unless a node says otherwise */
  double noise_factor; /* of the fresh noise ("s_noise") */
  uint32_t sigma_count;
  uint32_t option_count;
  const float* sigmas;                  /* falling levels, at least two */
  const heddle_sampler_option* options; /* what the sampler's own node was given, by name */
  /* The noise level after a part of the way from noise to image: 0 is the noisiest. */
  const void* levels;
  double (*percent_to_sigma)(const void* levels, double percent); /* [any] */
} heddle_sampler_run;

/* The run's option of this name; `otherwise` where it has none. */
static inline double heddle_sampler_option_of(const heddle_sampler_run* run, const char* name,
                                              double otherwise) {
  uint32_t i;
  for (i = 0; i < run->option_count; ++i)
    if (strcmp(run->options[i].name, name) == 0) return run->options[i].value;
  return otherwise;
}

/* A sampler that chooses its steps as it goes makes attempts. Each is one list of evaluations; the
 * last gives two results, e.next (the one to go on from) and e.start (one of lower order, to
 * compare with). The nodes measure
 *   error = |next - start| / max(absolute, relative * max(|start|, |start of the last accepted|))
 * as the root of the mean of squares over all values, and ask for the next attempt. */
typedef struct heddle_sampler_attempt {
  uint32_t size;
  int32_t accepted; /* out: go on from the results of the attempt before; 0: from where it began */
  double error;     /* in: of the attempt before; negative before the first */
  double noise;     /* out: when accepted, factor of a fresh draw that is added */
  double progress;  /* out: 0 to 1 */
  double absolute, relative; /* out: for the error of this attempt */
  double state[8];           /* the sampler's own, zeros at first */
} heddle_sampler_attempt;

typedef struct heddle_sampler_desc {
  uint32_t size;
  const char* name; /* as workflows write it: "euler" */
  const char* doc;
  uint32_t flags;

  /* The evaluations of step `index` (from sigmas[index] to sigmas[index + 1]), each handed to
   * emit(to, ...), which copies it. None: the sampler does nothing in this step. [any] */
  heddle_status* (*step)(const heddle_host*, const struct heddle_sampler_desc* self,
                         const heddle_sampler_run*, uint32_t index,
                         void (*emit)(void* to, const heddle_sampler_evaluation*), void* to);
  /* Optional. The level at which a run really ends. NULL: the last of the sigmas. [any] */
  double (*final_sigma)(const struct heddle_sampler_desc* self, const heddle_sampler_run*);
  /* Optional; in the place of step. The evaluations of the next attempt, none at the end. [any] */
  heddle_status* (*attempt)(const heddle_host*, const struct heddle_sampler_desc* self,
                            const heddle_sampler_run*, heddle_sampler_attempt*,
                            void (*emit)(void* to, const heddle_sampler_evaluation*), void* to);
  /* Optional. The options that the sampler knows, with NULL behind the last. A run that gives it
   * another, or a value out of its range, is refused by the option's name before it begins. NULL,
   * and a desc that ends before: nobody checks what is given. */
  const heddle_sampler_option_desc* const* options;
} heddle_sampler_desc;
enum {
  HEDDLE_SAMPLER_DRAWS_NOISE = 1u << 0,
  HEDDLE_SAMPLER_DISCARDS_PENULTIMATE =
      1u << 1, /* KSampler asks for one level more and drops the last but one  */
  HEDDLE_SAMPLER_FINITE_FIRST_LEVEL =
      1u << 2, /* in flows, a first level of 1 is replaced by one just below it */
  HEDDLE_SAMPLER_BROWNIAN =
      1u << 3, /* draws are increments of one Brownian path, that of the seed over all levels */
  HEDDLE_SAMPLER_LOOKS_TWICE =
      1u << 4, /* the model sees each point without the positive conditioning, too, at any cfg */
  HEDDLE_SAMPLER_NEW_MASK_NOISE =
      1u << 5 /* what a noise mask keeps is noised with a draw of seed + 1, not the initial one */
};

#ifdef __cplusplus
}
#endif
#endif
