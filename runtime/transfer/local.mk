noinst_LIBRARIES += librg_transfer.a
librg_transfer_a_SOURCES = \
	runtime/transfer/arena.c runtime/transfer/arena.h \
	runtime/transfer/memory.h \
	runtime/transfer/route_table.c runtime/transfer/route_table.h \
	runtime/transfer/service.c runtime/transfer/service.h

include runtime/transfer/routes/null/local.mk
include runtime/transfer/routes/p2p/local.mk
