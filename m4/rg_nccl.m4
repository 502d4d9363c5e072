# RG_CHECK_NCCL
# NCCL is a peer in comparisons: its header is compiled against, its library
# is opened at run time. Sets NCCL_CPPFLAGS and the conditional HAVE_NCCL.
AC_DEFUN([RG_CHECK_NCCL], [
RG_WITH([nccl], [compare with NCCL; PATH holds include/nccl.h])
AS_IF([test $rg_want_nccl != no], [_RG_NCCL_FIND])
AS_IF([test $rg_have_nccl = yes],
    [AC_DEFINE([HAVE_NCCL], [1], [NCCL can be compared with.])])
AM_CONDITIONAL([HAVE_NCCL], [test $rg_have_nccl = yes])
AC_SUBST([NCCL_CPPFLAGS])
])

AC_DEFUN([_RG_NCCL_FIND], [
NCCL_CPPFLAGS=$CUDA_CPPFLAGS
AS_IF([test -n "$rg_path_nccl"],
    [NCCL_CPPFLAGS="-isystem $rg_path_nccl/include $CUDA_CPPFLAGS"])
AS_IF([test $rg_have_cuda = no],
    [RG_WITH_MISSING([nccl], [needs the CUDA device])],
    [rg_save_CPPFLAGS=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $NCCL_CPPFLAGS"
     AC_MSG_CHECKING([for nccl.h])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>]])],
         [AC_MSG_RESULT([yes])
          RG_WITH_FOUND([nccl], [header found; library opened at run time])],
         [AC_MSG_RESULT([no])
          RG_WITH_MISSING([nccl], [nccl.h not found])])
     CPPFLAGS=$rg_save_CPPFLAGS])
])
