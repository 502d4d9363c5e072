librg_exec_a_SOURCES += \
	runtime/exec/emu/device.c \
	runtime/exec/emu/emu.h \
	runtime/exec/emu/event.c \
	runtime/exec/emu/gang.c \
	runtime/exec/emu/stream.c \
	runtime/exec/emu/wait.c
