/*
 * Status codes, the same values on host and device.
 *
 * A leaf header: no includes, usable by every layer and by both compilers.
 * A function that can fail returns 0 or one of the negative values.
 */
#ifndef RG_STATUS_H
#define RG_STATUS_H

enum rg_status {
    RG_OK = 0,
    RG_EINVAL = -1,       /* an argument is out of its documented range */
    RG_ENOMEM = -2,       /* host or device memory exhausted */
    RG_ENODEV = -3,       /* the device asked for does not exist here */
    RG_ENOTSUP = -4,      /* not built in, or not possible on this device */
    RG_ETIMEDOUT = -5,    /* a deadline passed */
    RG_EABORTED = -6,     /* the epoch ended before the operation did */
    RG_EUNAVAILABLE = -7, /* the current view cannot serve the call */
    RG_EISOLATED = -8,    /* this side lost the majority of its group */
    RG_EBUSY = -9,        /* still in use, e.g. by a live captured graph */
    RG_EPOLICY = -10,     /* a wrong selection, or not the same at all ranks */
    RG_EBACKEND = -11,    /* the group's backend does not allow the call */
    RG_ENOSPC = -12,      /* the region or a workspace is too small */
    RG_ESYSTEM = -13,     /* a system or vendor call failed, see the log */
    RG_EPROTO = -14,      /* a malformed or unexpected control message */
    RG_ECONFIG = -15,     /* a setting or environment variable is wrong */
    RG_EFAILED = -16,     /* a route or a peer failed */
    RG_EPENDING = -17,    /* not finished yet */
    RG_ECLOSED = -18      /* the other side has gone */
};

#endif
