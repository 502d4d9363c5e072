# RG_CHECK_CUDA
# Finds nvcc and the static runtime, 12.5 or later for driver entry points by
# version, and proves that a kernel compiled by nvcc links into a program by
# $CC. Sets NVCC, NVCC_GENCODE, CUDA_CPPFLAGS,
# CUDA_LIBS and the conditional HAVE_CUDA. The driver library is not linked:
# programs start on a machine without a GPU.
AC_DEFUN([RG_CHECK_CUDA], [
RG_WITH([cuda], [build the CUDA device; PATH is the toolkit])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags added to every nvcc command])
AC_ARG_VAR([RG_CUDA_ARCHES],
    [compute capabilities to build for, such as "90 100"; default 90])
: ${RG_CUDA_ARCHES=90}
AS_IF([test $rg_want_cuda != no], [_RG_CUDA_FIND])
AS_IF([test $rg_have_cuda = yes],
    [AC_DEFINE([HAVE_CUDA], [1], [The CUDA device is built in.])])
AM_CONDITIONAL([HAVE_CUDA], [test $rg_have_cuda = yes])
AC_SUBST([NVCC_GENCODE])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBS])
])

AC_DEFUN([_RG_CUDA_FIND], [
AS_IF([test -n "$rg_path_cuda"], [: ${NVCC=$rg_path_cuda/bin/nvcc}])
AC_PATH_PROG([NVCC], [nvcc], [],
    [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
AS_IF([test ! -x "$NVCC"],
    [RG_WITH_MISSING([cuda], [nvcc not found])],
    [_RG_CUDA_FLAGS
     _RG_CUDA_PROBE])
])

# The toolkit lies two folders above the real nvcc; layouts differ below it.
AC_DEFUN([_RG_CUDA_FLAGS], [
NVCC_GENCODE=
for rg_arch in $RG_CUDA_ARCHES; do
    NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$rg_arch,code=sm_$rg_arch"
done
rg_cuda_root=`readlink -f "$NVCC"`
rg_cuda_root=`AS_DIRNAME(["$rg_cuda_root"])`
rg_cuda_root=`AS_DIRNAME(["$rg_cuda_root"])`
CUDA_CPPFLAGS=
for rg_dir in "$rg_cuda_root/include" "$rg_cuda_root"/targets/*/include; do
    AS_IF([test -z "$CUDA_CPPFLAGS" && test "$rg_dir" != /usr/include &&
           test -f "$rg_dir/cuda_runtime_api.h"],
        [CUDA_CPPFLAGS="-isystem $rg_dir"])
done
CUDA_LIBS=
for rg_dir in "$rg_cuda_root/lib64" "$rg_cuda_root"/targets/*/lib; do
    AS_IF([test -z "$CUDA_LIBS" && test -f "$rg_dir/libcudart_static.a"],
        [CUDA_LIBS="-L$rg_dir"])
done
CUDA_LIBS="$CUDA_LIBS -lcudart_static -lpthread -ldl -lrt"
])

AC_DEFUN([_RG_CUDA_PROBE], [
AC_MSG_CHECKING([whether $NVCC compiles a kernel that links])
cat >conftest_kernel.cu <<_RGEOF
#include <cuda_runtime_api.h>
#if CUDART_VERSION < 12050
#error older than 12.5
#endif
__global__ void probe(int *word) { *word = 1; }
extern "C" int launch(int *word)
{
    void *args@<:@@:>@ = {&word};
    return cudaLaunchKernel((const void *)probe, 1, 1, args, 0, 0);
}
_RGEOF
rg_cuda_works=no
rg_save_LIBS=$LIBS
AS_IF([$NVCC -x cu -std=c++17 $NVCC_GENCODE $NVCCFLAGS -c \
       -o conftest_kernel.o conftest_kernel.cu >&AS_MESSAGE_LOG_FD 2>&1],
    [for rg_extra in "" -lstdc++; do
         LIBS="conftest_kernel.o $CUDA_LIBS $rg_extra $rg_save_LIBS"
         AS_IF([test $rg_cuda_works = no],
             [AC_LINK_IFELSE(
                 [AC_LANG_PROGRAM([[int launch(int *);]],
                     [[return launch(0);]])],
                 [rg_cuda_works=yes
                  CUDA_LIBS="$CUDA_LIBS $rg_extra"])])
     done])
LIBS=$rg_save_LIBS
rm -f conftest_kernel.cu conftest_kernel.o
AC_MSG_RESULT([$rg_cuda_works])
AS_IF([test $rg_cuda_works = yes],
    [rg_version=`$NVCC --version | sed -n 's/.*release \([[0-9.]]*\).*/\1/p'`
     RG_WITH_FOUND([cuda], [nvcc $rg_version, sm $RG_CUDA_ARCHES])],
    [RG_WITH_MISSING([cuda], [$NVCC cannot build a kernel or is older than 12.5, see config.log])])
])
