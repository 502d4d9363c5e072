noinst_LIBRARIES += librg_exec.a
librg_exec_a_SOURCES = \
	runtime/exec/backends.c \
	runtime/exec/comm.c runtime/exec/comm.h \
	runtime/exec/context.c runtime/exec/context.h \
	runtime/exec/device.h \
	runtime/exec/dispatch.c \
	runtime/exec/messages.c runtime/exec/messages.h \
	runtime/exec/graph.c \
	runtime/exec/hold.c runtime/exec/hold.h \
	runtime/exec/launch.c \
	runtime/exec/legacy_path.c runtime/exec/legacy_path.h \
	runtime/exec/locality.c runtime/exec/locality.h \
	runtime/exec/nearby.c runtime/exec/nearby.h \
	runtime/exec/plan_slot.c runtime/exec/plan_slot.h \
	runtime/exec/proxy_path.c runtime/exec/proxy_path.h \
	runtime/exec/routes.c runtime/exec/routes.h \
	runtime/exec/select.c runtime/exec/select.h

# The launch that keeps a held word, for each device.
RG_HELP_OBJECTS = runtime/device/help.o
if HAVE_CUDA
RG_HELP_OBJECTS += runtime/device/help.cu.o
endif
RG_DEV_OBJECTS += $(RG_HELP_OBJECTS)
librg_exec_a_LIBADD = $(RG_HELP_OBJECTS)
librg_exec_a_DEPENDENCIES = $(RG_HELP_OBJECTS)
EXTRA_DIST += runtime/device/help.c

runtime/device/help.o: runtime/device/help.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(RG_DEV_CC) -c -o $@ $<
runtime/device/help.cu.o: runtime/device/help.c
	$(rg_v_nvcc)$(MKDIR_P) $(@D) && $(RG_DEV_NVCC) -c -o $@ $<

include runtime/exec/emu/local.mk
if HAVE_CUDA
include runtime/exec/cuda/local.mk
endif

rg_unit_tests += runtime/exec/test/test_plan
runtime_exec_test_test_plan_SOURCES = runtime/exec/test/test_plan.c
runtime_exec_test_test_plan_LDADD = librg_exec.a librg_policy.a librg_control.a \
	librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/exec/test/test_emu
runtime_exec_test_test_emu_SOURCES = runtime/exec/test/test_emu.c
runtime_exec_test_test_emu_LDADD = librg_exec.a librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/exec/test/test_hold
runtime_exec_test_test_hold_SOURCES = runtime/exec/test/test_hold.c
runtime_exec_test_test_hold_LDADD = librg_exec.a librg_legacy.a librg_engine.a \
	librg_transfer.a librg_control.a librg_policy.a librg_core.a \
	$(HWLOC_LIBS) $(CMOCKA_LIBS)

rg_unit_tests += runtime/exec/test/test_locality
runtime_exec_test_test_locality_SOURCES = runtime/exec/test/test_locality.c
runtime_exec_test_test_locality_LDADD = librg_exec.a librg_policy.a librg_control.a \
	librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/exec/test/test_nearby
runtime_exec_test_test_nearby_SOURCES = runtime/exec/test/test_nearby.c
runtime_exec_test_test_nearby_LDADD = librg_exec.a $(HWLOC_LIBS) $(CMOCKA_LIBS)
