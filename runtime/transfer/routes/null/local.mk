librg_transfer_a_SOURCES += runtime/transfer/routes/null/route.c
noinst_HEADERS += runtime/transfer/routes/null/route_dev.h
