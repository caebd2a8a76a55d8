package org.fedcomuon.internal;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_error;
import org.jspecify.annotations.Nullable;

/**
 * Libraries of other devices that {@code libfedcomuon} takes in at run time, each once a process: the file named by a
 * system property; else the first of this name in the directories of {@value NativeLibrary#DIRECTORIES_PROPERTY}, or
 * beside a {@code libfedcomuon} that was named itself; else, of CUDA, the one packaged with these classes. Failing is
 * an answer, as with {@link NativeLibrary}, which comes first.
 */
public final class BackendLibrary {
    /** NVIDIA's GPUs. */
    public static final BackendLibrary CUDA =
            new BackendLibrary("fedcomuon.cuda.library", "libfedcomuon_cuda.so", true);

    /** Their simulation, for tests. It brings libraries of its own and so cannot be unpacked alone. */
    public static final BackendLibrary CUDASIM =
            new BackendLibrary("fedcomuon.cudasim.library", "libfedcomuon_cudasim.so", false);

    private final String property;
    private final String fileName;
    private final boolean packaged;
    private NativeLibrary.@Nullable Outcome outcome;

    private BackendLibrary(String property, String fileName, boolean packaged) {
        this.property = property;
        this.fileName = fileName;
        this.packaged = packaged;
    }

    /** Loads it on the first call; every call gives the same answer. */
    public synchronized NativeLibrary.Outcome load() {
        if (outcome == null) {
            outcome = findAndLoad();
        }
        return outcome;
    }

    private NativeLibrary.Outcome findAndLoad() {
        String given = System.getProperty(property);
        if (given != null) {
            Path file = Path.of(given).toAbsolutePath();
            return Files.isRegularFile(file)
                    ? load(file)
                    : new NativeLibrary.Missing("%s=%s: no such file".formatted(property, given));
        }
        List<Path> directories = directories();
        for (Path directory : directories) {
            Path file = directory.resolve(fileName);
            if (Files.isRegularFile(file)) {
                return load(file);
            }
        }
        try {
            Optional<Path> unpacked = packaged ? unpack() : Optional.empty();
            if (unpacked.isPresent()) {
                return load(unpacked.get());
            }
        } catch (IOException e) {
            return new NativeLibrary.Missing("%s cannot be unpacked: %s".formatted(fileName, e));
        }
        String tried = directories.isEmpty()
                ? "no %s is packaged with this version".formatted(fileName)
                : "no %s in %s"
                        .formatted(
                                fileName,
                                directories.stream().map(Path::toString).collect(Collectors.joining(" or ")));
        return new NativeLibrary.Missing("%s; name one with -D%s=FILE".formatted(tried, property));
    }

    private static List<Path> directories() {
        var all = new ArrayList<>(NativeLibrary.directories());
        String named = System.getProperty(NativeLibrary.PATH_PROPERTY);
        Path beside = named == null ? null : Path.of(named).toAbsolutePath().getParent();
        if (beside != null) {
            all.add(beside);
        }
        return all;
    }

    private Optional<Path> unpack() throws IOException {
        try (InputStream in = NativeLibrary.packaged(fileName)) {
            return in == null ? Optional.empty() : Optional.of(NativeCache.unpack(fileName, in.readAllBytes()));
        }
    }

    private static NativeLibrary.Outcome load(Path file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment error = fcm_error.allocate(arena);
            int status = FedComuonNative.fcm_backend_load(
                    arena.allocateFrom(file.toString()), arena.allocate(FedComuonNative.C_INT), error);
            return status == FedComuonNative.FCM_OK()
                    ? new NativeLibrary.Loaded(file)
                    : new NativeLibrary.Missing(fcm_error.message(error).getString(0));
        }
    }
}
