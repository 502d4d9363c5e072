noinst_LIBRARIES += librg_exec.a
librg_exec_a_SOURCES = \
	runtime/exec/backends.c \
	runtime/exec/comm.c runtime/exec/comm.h \
	runtime/exec/context.c runtime/exec/context.h \
	runtime/exec/device.h \
	runtime/exec/dispatch.c \
	runtime/exec/graph.c \
	runtime/exec/launch.c \
	runtime/exec/plan_slot.c runtime/exec/plan_slot.h

include runtime/exec/emu/local.mk
if HAVE_CUDA
include runtime/exec/cuda/local.mk
endif

rg_unit_tests += runtime/exec/test/test_plan
runtime_exec_test_test_plan_SOURCES = runtime/exec/test/test_plan.c
runtime_exec_test_test_plan_LDADD = librg_exec.a librg_control.a \
	librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/exec/test/test_emu
runtime_exec_test_test_emu_SOURCES = runtime/exec/test/test_emu.c
runtime_exec_test_test_emu_LDADD = librg_exec.a librg_core.a $(CMOCKA_LIBS)
