package org.fedcomuon.internal;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Where native libraries are unpacked to, ours and those of others: directories of this user alone, never a directory
 * for temporary files, where another user could have put a library of the same name before us.
 */
public final class NativeCache {
    /** The property by which a user chooses where JavaCPP unpacks. */
    private static final String JAVACPP_PROPERTY = "org.bytedeco.javacpp.cachedir";

    private static final String JAVACPP_PROPERTY_OF_OLD = "org.bytedeco.javacpp.cacheDir";
    private static final String TEMPORARY = "java.io.tmpdir";

    private NativeCache() {}

    /** Returns the directory as it is named, whether it can be used or not. */
    static Path named() {
        String given = System.getProperty(NativeLibrary.CACHE_PROPERTY);
        return given != null ? Path.of(given).toAbsolutePath() : UserHome.cache();
    }

    /**
     * Returns the directory, there and looked at.
     *
     * @throws IOException when it cannot be made, or others could change what is in it
     */
    static Path directory() throws IOException {
        return PrivateDirectory.make(named(), System.getProperty(NativeLibrary.CACHE_PROPERTY) != null);
    }

    /**
     * Unpacks a file, unless another process of this user has already done so. An existing file is trusted only if its
     * content is equal.
     */
    static Path unpack(String fileName, byte[] content) throws IOException {
        Path directory = directory();
        String stem = fileName.substring(0, fileName.lastIndexOf('.'));
        Path file = directory.resolve("%s-%s.so".formatted(stem, sha256(content).substring(0, 32)));
        if (PrivateDirectory.isOwn(file) && Arrays.equals(Files.readAllBytes(file), content)) {
            return file;
        }
        Path fresh = Files.createTempFile(directory, stem + "-", ".part");
        try {
            Files.write(fresh, content);
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(fresh);
        }
        return file;
    }

    /**
     * Chooses where JavaCPP unpacks, before its first use, unless the user has chosen. By default it would use a
     * directory for temporary files with a predictable name where the home directory is not writable.
     *
     * @return the reason why there is no safe place and JavaCPP must not be used, if so
     */
    static Optional<String> settleJavaCpp() {
        return settleJavaCpp(UserHome.directory());
    }

    static Optional<String> settleJavaCpp(Path home) {
        if (System.getProperty(JAVACPP_PROPERTY) != null || System.getProperty(JAVACPP_PROPERTY_OF_OLD) != null) {
            return Optional.empty();
        }
        Path usual = home.resolve(Path.of(".javacpp", "cache"));
        String reason;
        try {
            System.setProperty(JAVACPP_PROPERTY, javaCpp(usual, false).toString());
            return Optional.empty();
        } catch (IOException e) {
            reason = e.toString();
        }
        try {
            boolean vouched = System.getProperty(NativeLibrary.CACHE_PROPERTY) != null;
            Path ours = javaCpp(directory().resolve("javacpp"), vouched);
            System.setProperty(JAVACPP_PROPERTY, ours.toString());
            return Optional.empty();
        } catch (IOException e) {
            return Optional.of(
                    "no safe place for JavaCPP's libraries: neither %s (%s) nor %s (%s); set HOME, or name one with -D%s=DIR"
                            .formatted(usual, reason, named(), e, NativeLibrary.CACHE_PROPERTY));
        }
    }

    /** Returns the place for JavaCPP, which silently tries the next one where it may not write. */
    private static Path javaCpp(Path directory, boolean vouched) throws IOException {
        Path made = PrivateDirectory.make(directory, vouched);
        if (!Files.isWritable(made) || !Files.isReadable(made) || !Files.isExecutable(made)) {
            throw new AccessDeniedException(made.toString());
        }
        return made;
    }

    /**
     * Runs {@code loading}, which unpacks libraries to wherever temporary files go and takes what it finds there: for
     * its time that is a new directory, which is deleted afterwards. What is loaded stays loaded.
     *
     * @throws IOException when no such directory can be made; nothing was run
     */
    public static void withOwnTemporaryDirectory(Runnable loading) throws IOException {
        Path directory = Files.createTempDirectory(directory(), "load-");
        // Others that look at this moment get a directory that is as good; the JDK itself looked long ago.
        synchronized (NativeCache.class) {
            @Nullable String before = System.getProperty(TEMPORARY);
            System.setProperty(TEMPORARY, directory.toString());
            try {
                loading.run();
            } finally {
                if (before == null) {
                    System.clearProperty(TEMPORARY);
                } else {
                    System.setProperty(TEMPORARY, before);
                }
                delete(directory);
            }
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        }
    }

    private static String sha256(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java platform has SHA-256", e);
        }
    }
}
