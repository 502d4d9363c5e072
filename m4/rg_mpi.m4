# RG_CHECK_MPI
# Asks the compiler wrapper for its flags, so that only the files that include
# mpi.h see them and every program is linked by $CC. Sets MPI_CPPFLAGS and
# MPI_LIBS; it is an error when there is no MPI.
AC_DEFUN([RG_CHECK_MPI], [
AC_ARG_VAR([MPICC], [MPI compiler wrapper whose flags are used])
AC_CHECK_PROGS([MPICC], [mpicc mpicc.openmpi mpicc.mpich])
AS_IF([test -z "$MPICC"],
    [AC_MSG_ERROR([no mpicc found; scripts/install-deps installs Open MPI])])
AC_MSG_CHECKING([for the flags of $MPICC])
# Open MPI answers --showme, MPICH and its derivatives -show.
rg_mpi_show=`$MPICC --showme 2>/dev/null || $MPICC -show 2>/dev/null`
MPI_CPPFLAGS=
MPI_LIBS=
for rg_word in $rg_mpi_show; do
    AS_CASE([$rg_word],
        [-I*|-D*], [MPI_CPPFLAGS="$MPI_CPPFLAGS $rg_word"],
        [-L*|-l*|-Wl,-rpath*], [MPI_LIBS="$MPI_LIBS $rg_word"])
done
AC_MSG_RESULT([$MPI_CPPFLAGS$MPI_LIBS])
AC_SUBST([MPI_CPPFLAGS])
AC_SUBST([MPI_LIBS])
rg_save_CPPFLAGS=$CPPFLAGS
rg_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
LIBS="$MPI_LIBS $LIBS"
AC_MSG_CHECKING([whether an MPI program links])
AC_LINK_IFELSE(
    [AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(0, 0);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$MPICC does not give usable flags])])
CPPFLAGS=$rg_save_CPPFLAGS
LIBS=$rg_save_LIBS
])
