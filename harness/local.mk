noinst_LIBRARIES += librg_harness.a
librg_harness_a_SOURCES = \
	harness/buffers.c harness/buffers.h \
	harness/call.c harness/call.h harness/call_launch.c \
	harness/datagen.c harness/datagen.h harness/datagen_dev.h \
	harness/fault_plan.c harness/fault_plan.h \
	harness/group.c harness/group.h \
	harness/hosts.c harness/hosts.h \
	harness/hub.c harness/hub.h \
	harness/input.c harness/input.h \
	harness/launch.c harness/launch.h \
	harness/launch_local.c harness/launch_mpi.c \
	harness/measure.c harness/measure.h \
	harness/options.c harness/options.h \
	harness/output.c harness/output.h \
	harness/peer.c harness/peer.h harness/peer_mpi.c \
	harness/preference.c harness/preference.h \
	harness/probe.c harness/probe.h \
	harness/process.c harness/process.h \
	harness/report.c harness/report.h \
	harness/session.c harness/session.h \
	harness/stats.c harness/stats.h \
	harness/supervision.h \
	harness/supervisor.c harness/supervisor.h \
	harness/survivors.c harness/survivors.h \
	harness/topo.c harness/topo.h \
	harness/verdict.c harness/verdict.h \
	harness/wait.c harness/wait.h \
	harness/watchdog.c harness/watchdog.h \
	harness/wire.c harness/wire.h \
	harness/worker.c harness/worker.h
RG_MPI_OBJECTS += harness/launch_mpi.o harness/peer_mpi.o

if HAVE_NCCL
librg_harness_a_SOURCES += harness/peer_nccl.c
RG_NCCL_OBJECTS += harness/peer_nccl.o
endif

# Fill and check kernels.
librg_harness_a_LIBADD = $(RG_DATAGEN_OBJECTS)
RG_DATAGEN_OBJECTS = harness/datagen_dev.o
if HAVE_CUDA
RG_DATAGEN_OBJECTS += harness/datagen_dev.cu.o
endif
RG_DEV_OBJECTS += $(RG_DATAGEN_OBJECTS)
EXTRA_DIST += harness/datagen_dev.c

harness/datagen_dev.o: harness/datagen_dev.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(RG_DEV_CC) -c -o $@ $<
harness/datagen_dev.cu.o: harness/datagen_dev.c
	$(rg_v_nvcc)$(MKDIR_P) $(@D) && $(RG_DEV_NVCC) -c -o $@ $<

rg_unit_tests += \
	harness/test/test_datagen harness/test/test_fault_plan \
	harness/test/test_figures \
	harness/test/test_measure harness/test/test_options \
	harness/test/test_session \
	harness/test/test_supervisor harness/test/test_topo \
	harness/test/test_wait
RG_HARNESS_TEST_LDADD = librg_harness.a librg_core.a $(MPI_LIBS) \
	$(CUDA_LIBS) $(HWLOC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS) -lm -lpthread
# Stands in for the runtime in whatever a test does not bring itself.
RG_FAKE_RUNTIME = harness/test/fake_runtime.c harness/test/fake_runtime.h

harness_test_test_datagen_SOURCES = harness/test/test_datagen.c
harness_test_test_datagen_LDADD = $(RG_DATAGEN_OBJECTS) $(CUDA_LIBS) \
	$(CMOCKA_LIBS) -lpthread
harness_test_test_fault_plan_SOURCES = harness/test/test_fault_plan.c
harness_test_test_fault_plan_LDADD = librg_harness.a $(CMOCKA_LIBS)
harness_test_test_figures_SOURCES = harness/test/test_figures.c \
	$(RG_FAKE_RUNTIME)
harness_test_test_figures_LDADD = $(RG_HARNESS_TEST_LDADD)
harness_test_test_measure_SOURCES = harness/test/test_measure.c \
	$(RG_FAKE_RUNTIME)
harness_test_test_measure_LDADD = $(RG_HARNESS_TEST_LDADD)
harness_test_test_options_SOURCES = harness/test/test_options.c \
	$(RG_FAKE_RUNTIME)
harness_test_test_options_LDADD = $(RG_HARNESS_TEST_LDADD)
harness_test_test_session_SOURCES = harness/test/test_session.c \
	$(RG_FAKE_RUNTIME)
harness_test_test_session_LDADD = $(RG_HARNESS_TEST_LDADD)
harness_test_test_supervisor_SOURCES = harness/test/test_supervisor.c \
	$(RG_FAKE_RUNTIME)
harness_test_test_supervisor_LDADD = $(RG_HARNESS_TEST_LDADD)
harness_test_test_topo_SOURCES = harness/test/test_topo.c
harness_test_test_topo_LDADD = librg_harness.a $(HWLOC_LIBS) $(CMOCKA_LIBS)
harness_test_test_wait_SOURCES = harness/test/test_wait.c
harness_test_test_wait_LDADD = librg_harness.a $(CMOCKA_LIBS) -lpthread
TESTS += harness/test/launch.t harness/test/supervise.t
EXTRA_DIST += harness/test/launch.t harness/test/supervise.t
