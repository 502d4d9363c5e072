librg_transfer_a_SOURCES += runtime/transfer/routes/p2p/route.c
noinst_HEADERS += runtime/transfer/routes/p2p/route_dev.h
