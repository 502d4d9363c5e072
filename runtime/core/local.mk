noinst_LIBRARIES += librg_core.a
librg_core_a_SOURCES = \
	runtime/core/address.c runtime/core/address.h \
	runtime/core/bitset.c runtime/core/bitset.h \
	runtime/core/clock.c runtime/core/clock.h \
	runtime/core/cond.c runtime/core/cond.h \
	runtime/core/env.c runtime/core/env.h \
	runtime/core/escape.c runtime/core/escape.h \
	runtime/core/hash.c runtime/core/hash.h \
	runtime/core/log.c runtime/core/log.h \
	runtime/core/names.c \
	runtime/core/seq.h \
	runtime/core/settings.c runtime/core/settings.h \
	runtime/core/socket.c runtime/core/socket.h \
	runtime/core/thread.c runtime/core/thread.h

rg_unit_tests += runtime/core/test/test_core
runtime_core_test_test_core_SOURCES = runtime/core/test/test_core.c
runtime_core_test_test_core_LDADD = librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/core/test/test_address
runtime_core_test_test_address_SOURCES = runtime/core/test/test_address.c
runtime_core_test_test_address_LDADD = librg_core.a $(CMOCKA_LIBS)
if HAVE_CMOCKA
TESTS += runtime/core/test/address.t
endif
EXTRA_DIST += runtime/core/test/address.t
