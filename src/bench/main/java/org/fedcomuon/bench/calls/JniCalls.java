package org.fedcomuon.bench.calls;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.fedcomuon.device.Devices;

/** The functions that our bindings call, bound by hand with JNI; {@code native/bench} has the native side. */
final class JniCalls {
    private JniCalls() {}

    /** Returns the path of a library that the build makes for the benchmarks. */
    static Path library(String name) {
        String path = System.getProperty("fedcomuon.native.path", "");
        return Arrays.stream(path.split(File.pathSeparator, -1))
                .map(part -> Path.of(part, "jni", name).toAbsolutePath())
                .filter(Files::exists)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException(
                        "no jni/%s in %s; the build makes it, where it finds jni.h".formatted(name, path)));
    }

    /** Loads the library after our own, so that both sides call the same copy of it. */
    static void load() {
        Devices.libraryInfo();
        System.load(library("libjni_calls.so").toString());
    }

    static native int abiVersion();

    static native int cublasVersion(long handle, long version);

    static native int cublasVersionArray(long handle, int[] version);

    static native int ema(
            long context, long clients, long n, double a, long x, long xStride, long y, long yStride, long error);

    /** Calls with pinned arrays, by {@code GetPrimitiveArrayCritical}. */
    static native int emaPinned(
            long context, long clients, long n, double a, float[] x, long xStride, float[] y, long yStride, long error);

    /** Calls with copies of the arrays, by {@code GetFloatArrayElements}. */
    static native int emaCopied(
            long context, long clients, long n, double a, float[] x, long xStride, float[] y, long yStride, long error);
}
