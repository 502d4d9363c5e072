noinst_LIBRARIES += librg_recovery.a
librg_recovery_a_SOURCES = \
	runtime/recovery/ledger.c runtime/recovery/ledger.h \
	runtime/recovery/life.c \
	runtime/recovery/notices.c runtime/recovery/notices.h \
	runtime/recovery/outcome.c \
	runtime/recovery/recovery.h \
	runtime/recovery/worker.c

rg_unit_tests += runtime/recovery/test/test_ledger
runtime_recovery_test_test_ledger_SOURCES = runtime/recovery/test/test_ledger.c
runtime_recovery_test_test_ledger_LDADD = librg_recovery.a librg_control.a \
	librg_core.a $(CMOCKA_LIBS)
rg_unit_tests += runtime/recovery/test/test_notices
runtime_recovery_test_test_notices_SOURCES = \
	runtime/recovery/test/test_notices.c
runtime_recovery_test_test_notices_LDADD = librg_recovery.a $(CMOCKA_LIBS)
