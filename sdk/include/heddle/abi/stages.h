/* heddle/abi/stages.h - calls of models that follow each other in rounds: devices that work at them
 * side by side, each at a stage of its own. */
#ifndef HEDDLE_ABI_STAGES_H
#define HEDDLE_ABI_STAGES_H

#include "call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Optional: without it one device does all stages of a round, and then the next round.
 * A causal autoencoder takes a video by chunks. A round is a chunk: the same stages one after
 * another, each a call of a model that reads what the stage before has made, and what it kept of
 * the round before. So while a device is at the last stages of a round, another one may be at the
 * first ones of the next.
 *
 * A model says by two settings that it is a stage: HEDDLE_ROUND_STAGE, which one of its round, from
 * 0 and one more with each call; HEDDLE_ROUND_INPUT, the name of the input that the stage before
 * has made, or the node for stage 0. All its other inputs it has made itself, or the node gives all
 * rounds alike. Where all calls that infer() tells of are of such models, and each round goes on to
 * the last stage, they are placed as rounds. The first round has all stages. A later one may begin
 * at any: where a stage has made more than the next one takes at a time, this one reads the rest of
 * it then.
 * What is kept between calls infer() tells as scratch, as for one device.
 * Where all models of the rounds say HEDDLE_ROUND_INDEPENDENT, no round reads what another one has
 * made, and all begin at the first stage: as clips that are decoded each by itself. Then whole
 * rounds may be dealt out among devices. */
#define HEDDLE_ROUND_STAGE "round_stage"             /* int    */
#define HEDDLE_ROUND_INPUT "round_input"             /* string */
#define HEDDLE_ROUND_INDEPENDENT "round_independent" /* bool, optional: false */

#define HEDDLE_SERVICE_STAGES "heddle.stages/0"
typedef struct heddle_stages_service {
  /* In execute(): how many rounds to open beyond the one whose result is read; 0: one device does
   * all. Until end() what sessions of stages give stays where it is made: models and copies may
   * read it, ops take it along at a wait. [call] */
  uint32_t (*begin)(heddle_ctx*);
  /* All that writes the tensor is enqueued, and nothing will write it again: its readers on other
   * devices and on the host wait for that alone. For what is handed to the first stage, and for
   * what is read of a round; also where one device does all, and goes on with the next round
   * meanwhile. [call] */
  heddle_status* (*written)(heddle_ctx*, heddle_tensor*);
  /* Waits for the devices of all stages, and tells what has failed there. [call] */
  heddle_status* (*join)(heddle_ctx*);
  /* Later sessions are opened as ever, on the node's device. join() behind it says that the rounds
   * are given up, as for want of room: begin() gives 0 until the node's call ends. [call] */
  void (*end)(heddle_ctx*);
} heddle_stages_service;

#ifdef __cplusplus
}
#endif
#endif
