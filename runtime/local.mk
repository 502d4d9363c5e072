noinst_HEADERS += \
	runtime/algo.h \
	runtime/regroup.h \
	runtime/status.h \
	runtime/types.h
