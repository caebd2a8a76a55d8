/*
 * The few NCCL declarations that FedCoMuon calls, written from its documentation for jextract and for the simulated
 * library (libnccl.so.2). Enumerations are ints, communicators and streams untyped pointers.
 */
#ifndef FEDCOMUON_VENDOR_NCCL_H
#define FEDCOMUON_VENDOR_NCCL_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
};
enum { ncclSum = 0, ncclAvg = 4 };
enum { ncclFloat32 = 7, ncclFloat64 = 8 };

/* 10000 major + 100 minor + patch; needs no GPU. */
int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
/* What went wrong last, in words, or an empty string; the communicator is not read. */
const char *ncclGetLastError(void *communicator);

/* One communicator a device, all made by one thread; each device once. NULL for devices means 0, 1, ... */
int ncclCommInitAll(void **communicators, int count, const int *devices);
int ncclCommDestroy(void *communicator);
/* Instead of destroying it when a rank has failed: what the others wait for ends, and their results mean nothing. */
int ncclCommAbort(void *communicator);

/* Between start and end one thread calls for several devices; what end starts runs on the streams, after it returns. */
int ncclGroupStart(void);
int ncclGroupEnd(void);

/* Every rank's receive becomes the sum or mean of all sends, in the library's own order; in place when they are one. */
int ncclAllReduce(const void *send, void *receive, unsigned long count, int type, int operation, void *communicator,
                  void *stream);
/* Every rank's receive becomes the root's send. */
int ncclBroadcast(const void *send, void *receive, unsigned long count, int type, int root, void *communicator,
                  void *stream);

#ifdef __cplusplus
}
#endif

#endif
