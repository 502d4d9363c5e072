noinst_LIBRARIES += librg_transfer.a
librg_transfer_a_SOURCES = \
	runtime/transfer/arena.c runtime/transfer/arena.h \
	runtime/transfer/memory.h \
	runtime/transfer/route_table.c runtime/transfer/route_table.h \
	runtime/transfer/service.c runtime/transfer/service.h

include runtime/transfer/routes/null/local.mk
include runtime/transfer/routes/p2p/local.mk
include runtime/transfer/routes/proxy/local.mk

rg_unit_tests += runtime/transfer/test/test_arena
runtime_transfer_test_test_arena_SOURCES = runtime/transfer/test/test_arena.c
runtime_transfer_test_test_arena_LDADD = librg_transfer.a librg_core.a \
	$(CMOCKA_LIBS)

rg_unit_tests += runtime/transfer/test/test_service
runtime_transfer_test_test_service_SOURCES = \
	runtime/transfer/test/test_service.c
runtime_transfer_test_test_service_LDADD = librg_transfer.a \
	librg_engine.a librg_core.a $(CMOCKA_LIBS)

rg_unit_tests += runtime/transfer/test/test_proxy
runtime_transfer_test_test_proxy_SOURCES = runtime/transfer/test/test_proxy.c
runtime_transfer_test_test_proxy_LDADD = librg_transfer.a librg_engine.a \
	librg_core.a $(CMOCKA_LIBS)
