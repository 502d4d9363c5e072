# Host C against the CUDA runtime's C interface; no kernels here.
librg_exec_a_SOURCES += \
	runtime/exec/cuda/device.c
RG_CUDA_OBJECTS += runtime/exec/cuda/device.o
