noinst_LIBRARIES += librg_control.a
librg_control_a_SOURCES = \
	runtime/control/agent.c runtime/control/agent.h \
	runtime/control/agent_elect.c runtime/control/agent_follow.c \
	runtime/control/agent_state.h \
	runtime/control/coordinator.c runtime/control/coordinator.h \
	runtime/control/coordinator_change.c \
	runtime/control/coordinator_claim.c \
	runtime/control/coordinator_gather.c \
	runtime/control/coordinator_member.c \
	runtime/control/coordinator_plan.c \
	runtime/control/coordinator_state.h \
	runtime/control/driver.c runtime/control/driver.h \
	runtime/control/driver_bootstrap.c runtime/control/driver_bootstrap.h \
	runtime/control/driver_link.c runtime/control/driver_link.h \
	runtime/control/driver_loop.c runtime/control/driver_state.h \
	runtime/control/driver_pulse.c runtime/control/driver_pulse.h \
	runtime/control/driver_socket.c runtime/control/driver_socket.h \
	runtime/control/machine.c runtime/control/machine.h \
	runtime/control/message.c runtime/control/message.h \
	runtime/control/pairs.c runtime/control/pairs.h \
	runtime/control/view.c runtime/control/view.h \
	runtime/control/wire.c runtime/control/wire.h

rg_control_test_libs = librg_control.a librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/control/test/test_wire
runtime_control_test_test_wire_SOURCES = runtime/control/test/test_wire.c
runtime_control_test_test_wire_LDADD = $(rg_control_test_libs)

rg_unit_tests += runtime/control/test/test_machines
runtime_control_test_test_machines_SOURCES = \
	runtime/control/test/test_machines.c
runtime_control_test_test_machines_LDADD = $(rg_control_test_libs)

rg_unit_tests += runtime/control/test/test_membership
runtime_control_test_test_membership_SOURCES = \
	runtime/control/test/test_membership.c
runtime_control_test_test_membership_LDADD = $(rg_control_test_libs)

rg_unit_tests += runtime/control/test/test_driver
runtime_control_test_test_driver_SOURCES = runtime/control/test/test_driver.c
runtime_control_test_test_driver_LDADD = $(rg_control_test_libs)

rg_unit_tests += runtime/control/test/test_driver_death
runtime_control_test_test_driver_death_SOURCES = \
	runtime/control/test/test_driver_death.c
runtime_control_test_test_driver_death_LDADD = $(rg_control_test_libs)

rg_unit_tests += runtime/control/test/test_pulse
runtime_control_test_test_pulse_SOURCES = runtime/control/test/test_pulse.c
runtime_control_test_test_pulse_LDADD = $(rg_control_test_libs)
