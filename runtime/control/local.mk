noinst_LIBRARIES += librg_control.a
librg_control_a_SOURCES = \
	runtime/control/agent.c runtime/control/agent.h \
	runtime/control/coordinator.c runtime/control/coordinator.h \
	runtime/control/driver.c runtime/control/driver.h \
	runtime/control/view.c runtime/control/view.h \
	runtime/control/wire.c runtime/control/wire.h
