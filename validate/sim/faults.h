/*
 * What goes wrong in a run: drawn from the seed, struck at its time.
 */
#ifndef RG_SIM_FAULTS_H
#define RG_SIM_FAULTS_H

#include <stdint.h>

struct sim_world;

/* Draws the network's character and the faults of the run. */
void sim_faults_draw(struct sim_world *world);
void sim_faults_strike(struct sim_world *world, uint32_t what);
/* A coordinator has sent the first message of a step of a change. */
void sim_faults_recovery(struct sim_world *world, int coordinator);
/* The end of all faults: links and processes are whole again. */
void sim_faults_heal(struct sim_world *world);

#endif
