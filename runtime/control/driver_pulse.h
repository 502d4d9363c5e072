/*
 * The pulse: how others of this host learn at once that this process has died.
 *
 * A process closes its descriptors late in its death, when its memory has been
 * torn down; with a GPU's mappings that takes a tenth of a second and more. But
 * a thread with a descriptor table of its own gives that up as soon as the
 * thread has died, and a killed process kills its threads first. So the writing
 * end of a pipe lives in the table of a thread that does nothing else, and
 * whoever has the reading end sees the end of file.
 */
#ifndef RG_CONTROL_DRIVER_PULSE_H
#define RG_CONTROL_DRIVER_PULSE_H

struct rg_pulse;

/*
 * RG_OK, RG_ENOMEM, RG_ESYSTEM (logged), or RG_ENOTSUP where the system has no
 * separate descriptor tables.
 */
int rg_pulse_create(int rank, struct rg_pulse **pulse_out);
/* Ends the thread: the others see what they see at a death. Accepts null. */
void rg_pulse_destroy(struct rg_pulse *pulse);
/* The reading end, to be handed to others; stays the pulse's. */
int rg_pulse_fd(const struct rg_pulse *pulse);

#endif
