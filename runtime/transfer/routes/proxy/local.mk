librg_transfer_a_SOURCES += \
	runtime/transfer/routes/proxy/proxy.c \
	runtime/transfer/routes/proxy/proxy.h \
	runtime/transfer/routes/proxy/route.c
noinst_HEADERS += runtime/transfer/routes/proxy/route_dev.h
