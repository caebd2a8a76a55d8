package org.fedcomuon.internal;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.jspecify.annotations.Nullable;

/**
 * Finds and loads {@code libfedcomuon}, once per process: the file named by the system property
 * {@value #PATH_PROPERTY}, else the first in the directories of {@value #DIRECTORIES_PROPERTY}, else the one packaged
 * with these classes, unpacked to a per-user cache under the hash of its content. A failure is a result, not an
 * exception: {@link Missing} has the reason in one line.
 */
public final class NativeLibrary {
    /** Names a library file to load instead of the packaged one. */
    public static final String PATH_PROPERTY = "fedcomuon.native.library";

    /**
     * Names directories to look for native libraries in before those that are packaged, separated as on a class path.
     */
    public static final String DIRECTORIES_PROPERTY = "fedcomuon.native.path";

    /** Names the directory to unpack to, instead of {@code fedcomuon} in the user's cache directory. */
    public static final String CACHE_PROPERTY = "fedcomuon.cache";

    private static final String FILE_NAME = "libfedcomuon.so";

    private NativeLibrary() {}

    /** The result of loading. */
    public sealed interface Outcome permits Loaded, Missing {}

    /** The library is loaded from {@code file} and speaks our ABI version. */
    public record Loaded(Path file) implements Outcome {}

    /** The library cannot be used; {@code reason} is one line that names the file. */
    public record Missing(String reason) implements Outcome {}

    /** Loads the library on the first call; every call gives the same answer. */
    public static Outcome load() {
        return Once.OUTCOME;
    }

    private static final class Once {
        static final Outcome OUTCOME = findAndLoad();
    }

    private static Outcome findAndLoad() {
        String given = System.getProperty(PATH_PROPERTY);
        if (given != null) {
            Path file = Path.of(given).toAbsolutePath();
            return Files.isRegularFile(file)
                    ? load(file)
                    : new Missing("%s=%s: no such file".formatted(PATH_PROPERTY, given));
        }
        for (Path directory : directories()) {
            Path file = directory.resolve(FILE_NAME);
            if (Files.isRegularFile(file)) {
                return load(file);
            }
        }
        String platform = platform();
        try (InputStream packaged = packaged(FILE_NAME)) {
            return packaged == null
                    ? new Missing(
                            "no native library for %s: add the jar of org.fedcomuon:fedcomuon-native with the classifier %s-cpu, or name a file with -D%s=FILE"
                                    .formatted(platform, platform, PATH_PROPERTY))
                    : load(NativeCache.unpack(FILE_NAME, packaged.readAllBytes()));
        } catch (IOException e) {
            return new Missing("the native library cannot be unpacked to %s: %s; name another directory with -D%s=DIR"
                    .formatted(NativeCache.named(), e, CACHE_PROPERTY));
        }
    }

    /** Returns the directories that {@value #DIRECTORIES_PROPERTY} names. */
    static List<Path> directories() {
        return Stream.of(System.getProperty(DIRECTORIES_PROPERTY, "").split(File.pathSeparator, -1))
                .filter(directory -> !directory.isEmpty())
                .map(directory -> Path.of(directory).toAbsolutePath())
                .toList();
    }

    private static Outcome load(Path file) {
        try {
            // For a file that is not a library, the JVM would warn that it "might have disabled stack guard".
            if (!isElf(file)) {
                return new Missing("%s is no shared library".formatted(file));
            }
            System.load(file.toString());
        } catch (IOException e) {
            return new Missing("the native library cannot be read: " + e);
        } catch (UnsatisfiedLinkError e) {
            return new Missing("the native library does not load: " + e.getMessage());
        }
        // Looked up by hand: of a foreign library nothing may be assumed, not even that the symbols are there.
        var version = SymbolLookup.loaderLookup().find("fcm_abi_version");
        if (version.isEmpty()) {
            return new Missing("%s is no FedCoMuon library: it has no fcm_abi_version".formatted(file));
        }
        int theirs = call(version.get());
        int ours = FedComuonNative.FCM_ABI_VERSION();
        return theirs == ours
                ? new Loaded(file)
                : new Missing("%s has ABI version %d, but version %d is needed".formatted(file, theirs, ours));
    }

    private static boolean isElf(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return Arrays.equals(in.readNBytes(4), new byte[] {0x7f, 'E', 'L', 'F'});
        }
    }

    private static int call(MemorySegment abiVersion) {
        try {
            return (int) Linker.nativeLinker()
                    .downcallHandle(abiVersion, FunctionDescriptor.of(ValueLayout.JAVA_INT))
                    .invokeExact();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    /**
     * Returns a library as it is packaged, in this jar or in one for the platform, of whatever module; null if it is in
     * none.
     */
    static @Nullable InputStream packaged(String fileName) {
        return NativeLibrary.class
                .getClassLoader()
                .getResourceAsStream("org/fedcomuon/native/%s/%s".formatted(platform(), fileName));
    }

    /** Returns the name of this platform in resource paths, such as {@code linux-x86_64}. */
    static String platform() {
        String arch = System.getProperty("os.arch");
        return System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-" + (arch.equals("amd64") ? "x86_64" : arch);
    }
}
