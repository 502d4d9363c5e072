noinst_LIBRARIES += librg_engine.a
librg_engine_a_SOURCES = \
	runtime/engine/engine.c runtime/engine/engine.h \
	runtime/engine/provider.h \
	runtime/engine/shm/shm.c \
	runtime/engine/tcp/handshake.c \
	runtime/engine/tcp/keyed.c runtime/engine/tcp/keyed.h \
	runtime/engine/tcp/stream.c \
	runtime/engine/tcp/tcp.c runtime/engine/tcp/tcp.h

rg_unit_tests += runtime/engine/test/test_engine
runtime_engine_test_test_engine_SOURCES = runtime/engine/test/test_engine.c
runtime_engine_test_test_engine_LDADD = librg_engine.a librg_core.a \
	$(CMOCKA_LIBS)
