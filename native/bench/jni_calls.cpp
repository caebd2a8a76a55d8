// The functions that the bindings call, bound by hand with JNI: for org.fedcomuon.bench.calls.JniCalls.
#include <jni.h>

#include "fedcomuon.h"
#include "vendor/cublas.h"

namespace {

template <typename T> T *pointer(jlong address) { return reinterpret_cast<T *>(address); }

} // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_abiVersion(JNIEnv *, jclass) { return fcm_abi_version(); }

JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_cublasVersion(JNIEnv *, jclass, jlong handle, jlong version) {
    return cublasGetVersion_v2(pointer<void>(handle), pointer<int>(version));
}

/* What JCuda has in place of a pointer. */
JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_cublasVersionArray(JNIEnv *env, jclass, jlong handle,
                                                                             jintArray version) {
    jint answer = 0;
    const jint status = cublasGetVersion_v2(pointer<void>(handle), &answer);
    env->SetIntArrayRegion(version, 0, 1, &answer);
    return status;
}

JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_ema(JNIEnv *, jclass, jlong context, jlong clients, jlong n,
                                                              jdouble a, jlong x, jlong x_stride, jlong y,
                                                              jlong y_stride, jlong error) {
    return fcm_ema(pointer<fcm_context>(context), clients, n, a, pointer<const float>(x), x_stride, pointer<float>(y),
                   y_stride, pointer<fcm_error>(error));
}

JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_emaPinned(JNIEnv *env, jclass, jlong context, jlong clients,
                                                                    jlong n, jdouble a, jfloatArray x, jlong x_stride,
                                                                    jfloatArray y, jlong y_stride, jlong error) {
    void *from = env->GetPrimitiveArrayCritical(x, nullptr);
    void *to = env->GetPrimitiveArrayCritical(y, nullptr);
    const jint status = from == nullptr || to == nullptr
                            ? FCM_OUT_OF_MEMORY
                            : fcm_ema(pointer<fcm_context>(context), clients, n, a, static_cast<const float *>(from), x_stride,
                                      static_cast<float *>(to), y_stride, pointer<fcm_error>(error));
    if (to != nullptr) env->ReleasePrimitiveArrayCritical(y, to, 0);
    if (from != nullptr) env->ReleasePrimitiveArrayCritical(x, from, JNI_ABORT);
    return status;
}

JNIEXPORT jint JNICALL Java_org_fedcomuon_bench_calls_JniCalls_emaCopied(JNIEnv *env, jclass, jlong context, jlong clients,
                                                                    jlong n, jdouble a, jfloatArray x, jlong x_stride,
                                                                    jfloatArray y, jlong y_stride, jlong error) {
    jfloat *from = env->GetFloatArrayElements(x, nullptr);
    jfloat *to = env->GetFloatArrayElements(y, nullptr);
    const jint status = from == nullptr || to == nullptr
                            ? FCM_OUT_OF_MEMORY
                            : fcm_ema(pointer<fcm_context>(context), clients, n, a, from, x_stride, to, y_stride,
                                      pointer<fcm_error>(error));
    if (to != nullptr) env->ReleaseFloatArrayElements(y, to, 0);
    if (from != nullptr) env->ReleaseFloatArrayElements(x, from, JNI_ABORT);
    return status;
}

} // extern "C"
