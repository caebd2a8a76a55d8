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
enum { ncclSum = 0, ncclMax = 2 };
enum { ncclUint8 = 1, ncclInt64 = 4 };

/* 10000 major + 100 minor + patch; needs no GPU. */
int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
/* What went wrong last, in words, or an empty string; the communicator is not read. */
const char *ncclGetLastError(void *communicator);

/* What the ranks of one group know each other by; made by one of them. */
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;
int ncclGetUniqueId(ncclUniqueId *id);

/*
 * The attributes of NCCL 2.14. Later versions have more at the end; they take `size` and `version` from here, and their
 * own defaults for the rest.
 */
typedef struct ncclConfig {
    unsigned long size;
    unsigned int magic;   /* NCCL_CONFIG_MAGIC */
    unsigned int version; /* NCCL_CONFIG_VERSION */
    int blocking;         /* 0: no call waits for other ranks; it returns ncclInProgress instead */
} ncclConfig;
#define NCCL_CONFIG_MAGIC 0xcafebeef
#define NCCL_CONFIG_VERSION 21400

/* A rank joins its group, on the device that is current. Each device once. */
int ncclCommInitRankConfig(void **communicator, int ranks, ncclUniqueId id, int rank, ncclConfig *config);
/*
 * Whether the last call on a communicator is still being posted (ncclInProgress), is posted (ncclSuccess), or something
 * failed, then or later. While it is in progress, nothing else may be called but this and ncclCommAbort, and no work may
 * be given to the stream.
 */
int ncclCommGetAsyncError(void *communicator, int *result);
/* Waits for the work of the communicator. Every rank destroys its own. */
int ncclCommDestroy(void *communicator);
/*
 * Instead of destroying it when a rank has failed: kernels of this communicator that wait for others end, and their
 * results mean nothing. Every rank aborts its own, while no other thread is in a call on it.
 */
int ncclCommAbort(void *communicator);

/*
 * Every rank's receive becomes the sum or maximum of all sends, in the library's own order, which integers do not depend on;
 * in place when they are one.
 */
int ncclAllReduce(const void *send, void *receive, unsigned long count, int type, int operation, void *communicator,
                  void *stream);

#ifdef __cplusplus
}
#endif

#endif
