# RG_WITH(NAME, HELP)
# Declares --with-NAME=yes|no|check|PATH. Sets rg_want_NAME to yes, no or
# check, rg_path_NAME to PATH or nothing, rg_have_NAME to no.
AC_DEFUN([RG_WITH], [
AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1@<:@=yes|no|check|PATH@:>@],
        [$2 @<:@check@:>@])],
    [], [with_$1=check])
rg_path_$1=
AS_CASE([$with_$1],
    [yes|check], [rg_want_$1=$with_$1],
    [no], [rg_want_$1=no],
    [/*], [rg_want_$1=yes; rg_path_$1=$with_$1],
    [AC_MSG_ERROR([--with-$1 takes yes, no, check or an absolute path, not '$with_$1'])])
rg_have_$1=no
rg_note_$1="switched off"
])

# RG_WITH_MISSING(NAME, REASON)
# The part cannot be built: an error if it was asked for.
AC_DEFUN([RG_WITH_MISSING], [
rg_have_$1=no
rg_note_$1="$2"
AS_IF([test "$rg_want_$1" = yes], [AC_MSG_ERROR([--with-$1: $2])])
])

# RG_WITH_FOUND(NAME, NOTE)
AC_DEFUN([RG_WITH_FOUND], [
rg_have_$1=yes
rg_note_$1="$2"
])
