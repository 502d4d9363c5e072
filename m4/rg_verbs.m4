# RG_CHECK_VERBS
# Sets VERBS_CPPFLAGS, VERBS_LIBS and the conditional HAVE_VERBS.
AC_DEFUN([RG_CHECK_VERBS], [
RG_WITH([verbs], [build the RDMA parts; PATH is libibverbs' prefix])
AS_IF([test $rg_want_verbs != no], [_RG_VERBS_FIND])
AS_IF([test $rg_have_verbs = yes],
    [AC_DEFINE([HAVE_VERBS], [1], [libibverbs is built in.])])
AM_CONDITIONAL([HAVE_VERBS], [test $rg_have_verbs = yes])
AC_SUBST([VERBS_CPPFLAGS])
AC_SUBST([VERBS_LIBS])
])

AC_DEFUN([_RG_VERBS_FIND], [
VERBS_CPPFLAGS=
VERBS_LIBS=-libverbs
AS_IF([test -n "$rg_path_verbs"],
    [VERBS_CPPFLAGS="-isystem $rg_path_verbs/include"
     VERBS_LIBS="-L$rg_path_verbs/lib -libverbs"])
rg_save_CPPFLAGS=$CPPFLAGS
rg_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $VERBS_CPPFLAGS"
LIBS="$VERBS_LIBS $LIBS"
AC_MSG_CHECKING([for libibverbs])
AC_LINK_IFELSE(
    [AC_LANG_PROGRAM([[#include <infiniband/verbs.h>]],
        [[return ibv_get_device_list(0) != 0;]])],
    [AC_MSG_RESULT([yes])
     RG_WITH_FOUND([verbs], [libibverbs])],
    [AC_MSG_RESULT([no])
     RG_WITH_MISSING([verbs], [libibverbs not found])])
CPPFLAGS=$rg_save_CPPFLAGS
LIBS=$rg_save_LIBS
])
