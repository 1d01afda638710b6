/* heddle/diffusion/noise_schedules.h - noise schedules as an extension point of the samplers
 * plugin.
 *
 * A noise schedule picks, from the noise levels a model was trained on, those that a run visits.
 * The `scheduler` widgets of KSampler, KSamplerAdvanced and BasicScheduler list every desc of this
 * kind, in load order. */
#ifndef HEDDLE_DIFFUSION_NOISE_SCHEDULES_H
#define HEDDLE_DIFFUSION_NOISE_SCHEDULES_H

#include "../abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_NOISE_SCHEDULES \
  "heddle.field.noise_schedules/0" /* provide -> heddle_list of heddle_noise_schedule_desc */

/* The noise levels of a model: as a recipe, as a table, and as functions. Borrowed for one call. */
typedef struct heddle_noise_levels {
  uint32_t size;
  uint32_t level_count;
  const char* table; /* the recipe: "discrete_flow" (shift), "flux" (shift is mu), "discrete";
                        others may come */
  double shift;
  double multiplier;                                /* timestep of a level, for "discrete_flow" */
  const float* levels;                              /* never falling */
  const void* self;                                 /* first argument of the functions */
  float (*timestep)(const void* self, float sigma); /* [any] */
  float (*sigma)(const void* self, float timestep); /* [any] */
  double (*percent_to_sigma)(const void* self,
                             double percent); /* [any] 0: the noisiest, 1: no noise */
} heddle_noise_levels;

typedef struct heddle_noise_schedule_desc {
  uint32_t size;
  const char* name; /* as workflows write it: "karras" */
  const char* doc;
  /* Hands the levels of a run of `steps` steps (1 or more) to push(to, ...), from noisy to clean,
   * the last usually 0. [any] */
  heddle_status* (*make)(const heddle_host*, const struct heddle_noise_schedule_desc* self,
                         const heddle_noise_levels*, uint32_t steps,
                         void (*push)(void* to, float sigma), void* to);
} heddle_noise_schedule_desc;

#ifdef __cplusplus
}
#endif
#endif
