noinst_HEADERS += \
	runtime/device/call.h \
	runtime/device/copy.h \
	runtime/device/dev.h \
	runtime/device/elem.h \
	runtime/device/entry.h \
	runtime/device/num.h \
	runtime/device/packet.h \
	runtime/device/plan.h \
	runtime/device/reduce.h \
	runtime/device/route.h \
	runtime/device/share.h \
	runtime/device/signal.h \
	runtime/device/team.h \
	runtime/device/transfer.h \
	runtime/device/word.h
