bin_PROGRAMS += validate/rg_sim
validate_rg_sim_SOURCES = \
	validate/sim/faults.c validate/sim/faults.h \
	validate/sim/oracle.c validate/sim/oracle.h \
	validate/sim/plant.c validate/sim/plant.h \
	validate/sim/program.c validate/sim/program.h \
	validate/sim/queue.c validate/sim/queue.h \
	validate/sim/random.h \
	validate/sim/rg_sim.c \
	validate/sim/world.c validate/sim/world.h
validate_rg_sim_LDADD = librg_control.a librg_core.a
dist_man1_MANS += validate/sim/rg_sim.1
TESTS += validate/sim/test/sim.t
EXTRA_DIST += validate/sim/test/sim.t

# Minutes: large jobs.
check-long-sim: validate/rg_sim
	validate/rg_sim --seeds 2000 --ranks 64
	validate/rg_sim --seeds 20 --ranks 10000
check-long: check-long-sim
.PHONY: check-long-sim
