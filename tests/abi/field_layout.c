/* The tables of the field are C11, in any order, and their offsets are what plugins were built
 * with. */
#include <heddle/diffusion/module_names.h>
#include <heddle/diffusion/noise_schedules.h>
#include <heddle/diffusion/samplers.h>
#include <heddle/diffusion/tokenizer.h>
#include <heddle/diffusion/values.h>
#include <stddef.h>

#define PINNED(type, last, at)                 \
  _Static_assert(offsetof(type, last) == (at), \
                 #type " has changed: a new revision, or a field at its end")

PINNED(heddle_sampler_term, factor, 8);
PINNED(heddle_sampler_sum, count, 8);
PINNED(heddle_sampler_evaluation, start, 32);
PINNED(heddle_sampler_evaluation, noise_clip, 56);
PINNED(heddle_sampler_option, value, 8);
PINNED(heddle_sampler_run, percent_to_sigma, 56);
PINNED(heddle_sampler_attempt, state, 48);
PINNED(heddle_sampler_desc, name, 8);
PINNED(heddle_sampler_desc, attempt, 48);
PINNED(heddle_noise_levels, percent_to_sigma, 64);
PINNED(heddle_noise_schedule_desc, name, 8);
PINNED(heddle_noise_schedule_desc, make, 24);
PINNED(heddle_token_windows, weights, 20);
PINNED(heddle_token_windows, cancelled_of, 32);
PINNED(heddle_tokenizer, max_length, 32);
PINNED(heddle_tokenizers_desc, name, 8);
PINNED(heddle_tokenizers_desc, open, 24);
PINNED(heddle_module_names_desc, family, 8);
PINNED(heddle_module_names_desc, list, 24);

int heddle_field_as_c(void) { return (int)sizeof(heddle_sampler_desc); }
