noinst_LIBRARIES += librg_legacy.a
librg_legacy_a_SOURCES = \
	runtime/legacy/collectives.c \
	runtime/legacy/exchange.c \
	runtime/legacy/legacy.c runtime/legacy/legacy.h \
	runtime/legacy/reduce.c runtime/legacy/reduce.h \
	runtime/legacy/state.h

rg_unit_tests += runtime/legacy/test/test_legacy
runtime_legacy_test_test_legacy_SOURCES = runtime/legacy/test/test_legacy.c
runtime_legacy_test_test_legacy_LDADD = librg_legacy.a librg_engine.a \
	librg_core.a $(CMOCKA_LIBS)
