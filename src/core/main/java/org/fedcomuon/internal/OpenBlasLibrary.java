package org.fedcomuon.internal;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.openblas.global.openblas;
import org.fedcomuon.internal.bindings.openblas.OpenBlasNative;

/**
 * Loads OpenBLAS, once per process, from the file that JavaCPP keeps in its cache: libtorch's bindings load the same
 * file, so the process holds one copy of it. JavaCPP only unpacks here; its JNI wrapper (24 MB) is never loaded.
 *
 * <p>Threads are set to one at once. The callers run matrices side by side instead, which is faster for the sizes of
 * models, gives bit-identical results whatever the number of cores, and does not compete with libtorch's threads.
 */
public final class OpenBlasLibrary {
    /** In the order in which they must be unpacked: a library's own dependencies first. */
    private static final List<String> FILES =
            List.of("libgcc_s.so.1", "libquadmath.so.0", "libgfortran.so.5", "libopenblas.so.0");

    private OpenBlasLibrary() {}

    /** The result of loading: {@code reason} is empty when the library can be used. */
    public record Outcome(String config, String reason) {}

    /** Loads the library on the first call; every call gives the same answer. */
    public static Outcome load() {
        return Once.OUTCOME;
    }

    /**
     * How many threads OpenBLAS may use. For benchmarks that want it at its best; everything else leaves it at one.
     *
     * <p>libtorch maps a second copy under another name, which keeps a count of its own. Which of the two its products
     * run on depends on which was loaded first (both answer to the same soname), so a count is set on both.
     */
    public static void setThreads(int threads) {
        OpenBlasNative.openblas_set_num_threads(threads);
        setTorchThreads(threads);
    }

    private static void setTorchThreads(int threads) {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            Optional<String> copy = maps.filter(line -> line.contains("/libopenblas_nolapack.so"))
                    .map(line -> line.substring(line.indexOf('/')))
                    .findFirst();
            if (copy.isPresent()) {
                Linker.nativeLinker()
                        .downcallHandle(
                                SymbolLookup.libraryLookup(copy.get(), Arena.global())
                                        .findOrThrow("openblas_set_num_threads"),
                                FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT))
                        .invokeExact(threads);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    private static final class Once {
        static final Outcome OUTCOME = unpackAndLoad();
    }

    private static Outcome unpackAndLoad() {
        try {
            NativeLimits.lift();
        } catch (NativeLimits.RefusedException e) {
            return missing(String.valueOf(e.getMessage()));
        }
        String platform = Loader.getPlatform();
        try {
            File library = null;
            for (String name : FILES) {
                library = Loader.cacheResource(openblas.class, platform + "/" + name);
                if (library == null) {
                    return missing("no %s of org.bytedeco:openblas for %s is on the path".formatted(name, platform));
                }
            }
            System.load(library.getPath());
        } catch (IOException e) {
            return missing("OpenBLAS cannot be unpacked: " + e);
        } catch (UnsatisfiedLinkError e) {
            return missing("OpenBLAS does not load: " + e.getMessage());
        }
        bindAll();
        OpenBlasNative.openblas_set_num_threads(1);
        return new Outcome(OpenBlasNative.openblas_get_config().getString(0), "");
    }

    /**
     * Resolves every symbol now. libtorch brings the same names under another file name; what is resolved later might
     * come from there, and then the number of threads that we set would be that of the other copy.
     */
    private static void bindAll() {
        OpenBlasNative.cblas_sgemm$address();
        OpenBlasNative.cblas_dgemm$address();
        OpenBlasNative.cblas_ssyrk$address();
        OpenBlasNative.cblas_dsyrk$address();
        OpenBlasNative.cblas_ssymm$address();
        OpenBlasNative.cblas_dsymm$address();
        OpenBlasNative.LAPACKE_sgesdd_work$address();
        OpenBlasNative.LAPACKE_dgesdd_work$address();
        OpenBlasNative.LAPACKE_dsyevd_work$address();
        OpenBlasNative.openblas_set_num_threads$address();
        OpenBlasNative.openblas_get_num_threads$address();
        OpenBlasNative.openblas_get_config$address();
        OpenBlasNative.openblas_get_corename$address();
    }

    private static Outcome missing(String reason) {
        return new Outcome("", reason);
    }
}
