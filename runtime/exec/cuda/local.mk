# Host C against the CUDA runtime's C interface; no kernels here.
librg_exec_a_SOURCES += \
	runtime/exec/cuda/cuda.h \
	runtime/exec/cuda/device.c \
	runtime/exec/cuda/memory.c \
	runtime/exec/cuda/stream.c
RG_CUDA_OBJECTS += \
	runtime/exec/cuda/device.o \
	runtime/exec/cuda/memory.o \
	runtime/exec/cuda/stream.o
