noinst_HEADERS += \
	runtime/device/dev.h \
	runtime/device/mailbox.h \
	runtime/device/num.h \
	runtime/device/plan.h \
	runtime/device/region.h \
	runtime/device/route.h \
	runtime/device/signal.h \
	runtime/device/team.h \
	runtime/device/transfer.h \
	runtime/device/word.h
