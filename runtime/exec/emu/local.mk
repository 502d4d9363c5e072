librg_exec_a_SOURCES += \
	runtime/exec/emu/device.c
